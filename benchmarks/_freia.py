"""Model WV+AGN built with FrEIA, used idiomatically: a network of couplings and permutations, called three times."""

from __future__ import annotations

import warnings

from torch import Tensor, nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import FrEIA.framework
    import FrEIA.modules


class FreiaAnalogy(nn.Module):
    def __init__(self, dim: int, layers: int, hidden: int) -> None:
        super().__init__()

        def subnet(width_in: int, width_out: int) -> nn.Module:
            return nn.Sequential(
                nn.Linear(width_in, hidden),
                nn.ReLU(),
                nn.Linear(hidden, hidden),
                nn.ReLU(),
                nn.Linear(hidden, width_out),
            )

        self.network = FrEIA.framework.SequenceINN(dim)
        for seed in range(layers):
            self.network.append(FrEIA.modules.GLOWCouplingBlock, subnet_constructor=subnet, clamp=2.0)
            self.network.append(FrEIA.modules.PermuteRandom, seed=seed)

    def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        encode = lambda x: self.network(x)[0]
        result: Tensor = self.network(encode(b) - encode(a) + encode(c), rev=True)[0]
        return result
