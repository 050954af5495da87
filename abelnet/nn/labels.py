r"""Label elements: results of an aggregation are classified by the learned element that they are closest to."""

from __future__ import annotations

__all__ = ["LabelDecoder"]

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from abelnet.checks import check_count, check_values
from abelnet.config import Configurable
from abelnet.errors import AbelnetError


class LabelDecoder(Configurable, nn.Module):
    r"""Logits of classes by comparison with learned label elements, as the paper suggests for classification.

    .. math:: z_k = -s \, \lVert y - \ell_k \rVert^2 \quad \text{or} \quad
        z_k = s \, \frac{y \cdot \ell_k}{\lVert y \rVert \, \lVert \ell_k \rVert}

    A label :math:`\ell_k` is an element of the same space as the result :math:`y` of a set, so that labels can be
    combined by the operation as sets are. It has :math:`k c + 1` parameters, fewer than a perceptron.

    Arguments:
        channels: Number of channels :math:`c` of results.
        count: Number of labels :math:`k`.
        similarity: ``"distance"`` or ``"cosine"``.
        seed: Random seed; torch's global generator is used if not given.

    Example:
        >>> decoder = LabelDecoder(4, 3, seed=0)
        >>> decoder(decoder.labels.detach()).argmax(-1)
        tensor([0, 1, 2])
    """

    def __init__(
        self,
        channels: int,
        count: int,
        similarity: Literal["distance", "cosine"] = "distance",
        *,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        check_count("channels", channels)
        check_count("count", count)
        if similarity not in ("distance", "cosine"):
            raise AbelnetError(f'similarity: expected "distance" or "cosine", got {similarity!r}')
        self.similarity = similarity
        self.labels = nn.Parameter(torch.empty(count, channels))
        self.log_scale = nn.Parameter(torch.empty(()))
        self.reset_parameters(seed)

    def reset_parameters(self, seed: int | None = None) -> None:
        """Draws labels from a standard normal distribution, and resets the scale."""
        generator = None if seed is None else torch.Generator(self.labels.device).manual_seed(seed)
        nn.init.normal_(self.labels, generator=generator)
        # Differences of logits are of the size of 1 for results that are as far apart as labels.
        count = self.labels.shape[-1]
        nn.init.constant_(self.log_scale, -math.log(count) if self.similarity == "distance" else math.log(10.0))

    def forward(self, y: Tensor) -> Tensor:
        """Maps results :math:`(*, c)` to logits :math:`(*, k)`."""
        check_values("y", y, self.labels.shape[-1])
        scale = self.log_scale.exp()
        if self.similarity == "cosine":
            return scale * nn.functional.linear(
                nn.functional.normalize(y, dim=-1), nn.functional.normalize(self.labels, dim=-1)
            )
        # Without the square of y, which is the same for all labels, there is nothing to cancel.
        return scale * (2 * nn.functional.linear(y, self.labels) - self.labels.square().sum(-1))

    def config(self) -> dict[str, Any]:
        count, channels = self.labels.shape
        return {"channels": channels, "count": count, "similarity": self.similarity}

    def extra_repr(self) -> str:
        count, channels = self.labels.shape
        return f"channels={channels}, count={count}, similarity={self.similarity!r}"
