"""Label elements of a trained model: each class is found by the element that results are closest to."""

from __future__ import annotations

import torch

from abelnet.nn import LabelDecoder
from abelnet.training import Settings, train


def test_labels_are_learned() -> None:
    x = torch.randn(120, 4, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()
    decoder = LabelDecoder(4, 4, seed=0)
    cross_entropy = lambda model, batch: torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
    train(decoder, (x, y), cross_entropy, settings=Settings(epochs=60, lr=0.05))
    assert (decoder(x).argmax(-1) == y).float().mean() > 0.9
    nearest = torch.cdist(x, decoder.labels).argmin(-1)
    assert torch.equal(decoder(x).argmax(-1), nearest)
