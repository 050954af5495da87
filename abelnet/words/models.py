r"""Analogy models for :math:`a : b = c : ?`: offsets, of the vectors themselves or in coordinates that are learned."""

from __future__ import annotations

__all__ = [
    "AnalogyEnsemble",
    "AnalogyModel",
    "AnalogyNetwork",
    "GroupAnalogy",
    "Offset",
    "OffsetMLP",
    "default_model",
    "named_model",
    "named_models",
]

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from abelnet.bijections import glow
from abelnet.checks import check_count
from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.nn.baselines import MLP
from abelnet.operation import AbelianGroup
from abelnet.saving import load

EMBEDDED = "agn.glove.6B.100d.safetensors"
# Answers decoded at a time: memory does not grow with the number of questions.
_ANSWERS = 8192


class AnalogyModel(Configurable, nn.Module, ABC):
    r"""Answers :math:`a : b = c : ?` by an offset in coordinates :math:`\varphi`, read by a decoder :math:`\psi`.

    .. math:: \psi(\varphi(b) - \varphi(a) + \varphi(c))

    From several pairs :math:`a_i : b_i` with weights :math:`w_i`, it is
    :math:`\psi(\varphi(c) + \sum_i w_i (\varphi(b_i) - \varphi(a_i)))`.
    """

    @property
    def dim(self) -> int | None:
        """Number of dimensions :math:`d` of the vectors; None if it may be any."""
        return None

    @abstractmethod
    def encode(self, x: Tensor) -> Tensor:
        r"""Maps vectors :math:`(*, d)` to the coordinates :math:`\varphi` in which offsets are taken."""

    @abstractmethod
    def decode(self, u: Tensor) -> Tensor:
        r"""Maps coordinates :math:`(*, d)` to predictions."""

    def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """Maps three tensors :math:`(*, d)` to a prediction :math:`(*, d)`."""
        return self.decode(self.encode(b) - self.encode(a) + self.encode(c))

    def analogies(self, elements: Tensor, index: Tensor) -> Tensor:
        r"""Answers many analogies between few elements, each of which is encoded once.

        Arguments:
            elements: Vectors, with shape :math:`(m, d)`.
            index: Rows of :math:`a, b, c`, with shape :math:`(n, 3)`.

        Returns:
            Predictions, with shape :math:`(n, d)`.
        """
        encoded = self.encode(elements)
        # As an embedding, whose gradient is faster than that of an index.
        parts = (F.embedding(part, encoded) for part in torch.split(index, _ANSWERS))
        return torch.cat([self.decode(u[:, 1] - u[:, 0] + u[:, 2]) for u in parts])

    def completions(self, elements: Tensor, pairs: Tensor, queries: Tensor, weights: Tensor) -> Tensor:
        r"""Answers queries from several pairs, with each element encoded once.

        Arguments:
            elements: Vectors, with shape :math:`(m, d)`.
            pairs: Rows of :math:`a_i` and :math:`b_i`, with shape :math:`(p, 2)`.
            queries: Rows of :math:`c`, with shape :math:`(n)`.
            weights: Weight of each pair for each query, with shape :math:`(n, p)`: :math:`1 / p` for their mean.

        Returns:
            Predictions, with shape :math:`(n, d)`.

        Example:
            >>> elements = torch.tensor([[0.0], [1.0], [0.0], [3.0], [10.0]])
            >>> pairs, queries = torch.tensor([[0, 1], [2, 3]]), torch.tensor([4])
            >>> Offset().completions(elements, pairs, queries, torch.tensor([[0.5, 0.5]]))
            tensor([[12.]])
        """
        encoded = self.encode(elements)
        a, b = F.embedding(pairs, encoded).unbind(1)
        return self.decode(F.embedding(queries, encoded) + weights @ (b - a))


class Offset(AnalogyModel):
    r"""Model WV: the offset of the vectors themselves, :math:`b - a + c`.

    Example:
        >>> Offset()(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), torch.tensor([2.0, 0.0]))
        tensor([2., 1.])
    """

    def encode(self, x: Tensor) -> Tensor:
        return x

    def decode(self, u: Tensor) -> Tensor:
        return u

    def config(self) -> dict[str, Any]:
        return {}


class AnalogyNetwork(AnalogyModel):
    r"""A model with parameters.

    Arguments:
        dim: Number of dimensions :math:`d`.
        layers: Number of layers, of whatever kind the network has.
        hidden: Width of the hidden layers.
    """

    def __init__(self, dim: int, layers: int, hidden: int) -> None:
        super().__init__()
        self._dim, self.layers, self.hidden = dim, check_count("layers", layers), check_count("hidden", hidden)

    @property
    def dim(self) -> int:
        return self._dim

    def config(self) -> dict[str, Any]:
        return {"dim": self.dim, "layers": self.layers, "hidden": self.hidden}


class OffsetMLP(AnalogyNetwork):
    r"""Model WV+MLP: :math:`\operatorname{MLP}(b - a + c)`.

    Arguments:
        dim: Number of dimensions :math:`d`.
        layers: Number of linear layers.
        hidden: Width of the hidden layers.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> OffsetMLP(100, seed=0)(*torch.randn(3, 7, 100)).shape
        torch.Size([7, 100])
    """

    def __init__(self, dim: int, layers: int = 4, hidden: int = 223, *, seed: int | None = None) -> None:
        super().__init__(dim, layers, hidden)
        self.mlp = MLP([dim, *[hidden] * (layers - 1), dim], seed=seed)

    def encode(self, x: Tensor) -> Tensor:
        return x

    def decode(self, u: Tensor) -> Tensor:
        return self.mlp(u)  # type: ignore[no-any-return]


class GroupAnalogy(AnalogyNetwork):
    r"""Model WV+AGN: :math:`b \circ a^{-1} \circ c = \varphi^{-1}(\varphi(b) - \varphi(a) + \varphi(c))`.

    From several pairs it is :meth:`~abelnet.Operation.translation` of the pairs, combined with :math:`c`. With a gain
    of 0, :math:`\varphi` is initialized to a permutation and the model to exactly :math:`b - a + c`.

    Arguments:
        dim: Number of dimensions :math:`d`, at least 2.
        layers: Number of couplings of :func:`~abelnet.bijections.glow`.
        hidden: Width of the hidden layers of their networks.
        gain: Initial scale of their last layers; 1 in the paper.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> a, b, c = torch.randn(3, 7, 100)
        >>> torch.allclose(GroupAnalogy(100, gain=0)(a, b, c), b - a + c, atol=1e-5)
        True
    """

    def __init__(
        self, dim: int, layers: int = 5, hidden: int = 151, *, gain: float = 1.0, seed: int | None = None
    ) -> None:
        super().__init__(dim, layers, hidden)
        self.group = AbelianGroup(glow(dim, layers, hidden, gain=gain, seed=seed))

    def encode(self, x: Tensor) -> Tensor:
        u: Tensor = self.group.bijection(x)
        return u

    def decode(self, u: Tensor) -> Tensor:
        return self.group.bijection.inverse(u)

    def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        # All three are encoded in one pass.
        return self.group.analogy(a, b, c)


class AnalogyEnsemble(AnalogyModel):
    r"""Ensemble of models: the mean of their predictions, each of norm 1.

    .. math:: \varphi(x) = (\varphi_1(x), \dots, \varphi_m(x)), \quad
        \psi(u) = \frac{1}{m} \sum_j \frac{\psi_j(u_j)}{\lVert \psi_j(u_j) \rVert}

    Cosines to the prediction rank words as the means of the cosines to :math:`\psi_1, \dots, \psi_m` do. An ensemble of
    groups computes in their direct product, in which a word :math:`x` is :math:`(x, \dots, x)`.

    Arguments:
        models: The models, whose coordinates have the same number of dimensions.

    Example:
        >>> ensemble = AnalogyEnsemble(*(GroupAnalogy(6, layers=2, hidden=8, seed=seed) for seed in range(3)))
        >>> ensemble(*torch.randn(3, 7, 6)).norm(dim=-1).le(1 + 1e-6).all()
        tensor(True)
    """

    def __init__(self, *models: AnalogyModel) -> None:
        super().__init__()
        for model in models:
            if not isinstance(model, AnalogyModel):
                raise AbelnetError(f"models: expected AnalogyModel instances, got {type(model).__name__}")
        dims = {model.dim for model in models} - {None}
        if not models or len(dims) > 1:
            raise AbelnetError(
                f"models: expected one or more with equal dim, got {len(models)} with {sorted(map(str, dims))}"
            )
        self.models = nn.ModuleList(models)

    def __iter__(self) -> Iterator[AnalogyModel]:
        return iter(cast("list[AnalogyModel]", list(self.models)))

    @property
    def dim(self) -> int | None:
        return next((model.dim for model in self if model.dim is not None), None)

    def encode(self, x: Tensor) -> Tensor:
        return torch.cat([model.encode(x) for model in self], -1)

    def decode(self, u: Tensor) -> Tensor:
        parts = zip(self, u.chunk(len(self.models), -1), strict=True)
        return torch.stack([F.normalize(model.decode(part), dim=-1) for model, part in parts]).mean(0)

    def config(self) -> dict[str, Any]:
        return {"models": list(self)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        return cls(*config["models"])


def default_model() -> GroupAnalogy:
    """Returns the pretrained model WV+AGN that ships with the package, for 100-d GloVe vectors like the bundled ones.

    Example:
        >>> default_model().dim
        100
    """
    with resources.as_file(resources.files("abelnet.words") / "data" / EMBEDDED) as path:
        model: GroupAnalogy = load(path)
    return model.eval()


def named_model(name: str, dim: int) -> AnalogyModel:
    """Returns a model by name.

    Arguments:
        name: ``"wv"`` for :math:`b - a + c`, ``"agn"`` for the pretrained model, or a folder written by
            :func:`abelnet.save`.
        dim: Number of dimensions of the vectors, which the model must match.

    Example:
        >>> named_model("wv", 100)
        Offset()
    """
    if name == "wv":
        return Offset()
    if name != "agn" and not Path(name).exists():
        raise AbelnetError(f"model: expected wv, agn or the folder of a model, got {name!r}")
    model = default_model() if name == "agn" else load(name)
    if not isinstance(model, AnalogyModel):
        raise AbelnetError(f"model: expected an analogy model, got {type(model).__name__}: {name}")
    if model.dim not in (None, dim):
        raise AbelnetError(f"model: expected a model for {dim}-d vectors, got {model.dim}-d: {name}")
    return model.eval()


def named_models(names: Sequence[str], dim: int) -> dict[str, AnalogyModel]:
    """Returns models by name, as :func:`named_model` does each, under short titles: the last part of a path.

    Example:
        >>> list(named_models(["wv", "agn"], 100))
        ['wv', 'agn']
    """
    names = list(dict.fromkeys(names))
    titles = [Path(name).resolve().name for name in names]
    return {
        title if titles.count(title) == 1 else name: named_model(name, dim)
        for title, name in zip(titles, names, strict=True)
    }
