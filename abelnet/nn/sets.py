r"""Set models with free input and output dimensions: an encoder, an aggregation, a decoder."""

from __future__ import annotations

__all__ = ["SetModel"]

from collections.abc import Sequence
from typing import Any, Literal, Self

from torch import Tensor, nn

from abelnet.aggregation import Aggregation
from abelnet.bijections.base import draw_seeds
from abelnet.checks import check_count
from abelnet.config import Configurable
from abelnet.errors import AbelnetError
from abelnet.multisets import Multisets, MultisetValues
from abelnet.nn.aggregations import make_aggregation
from abelnet.nn.baselines import MLP
from abelnet.nn.labels import LabelDecoder
from abelnet.operation import Operation
from abelnet.pooling import Pooling


class SetModel(Configurable, nn.Module):
    r"""Permutation-invariant function of a multiset, for regression and classification of sets.

    .. math:: f(\{x_1, \dots, x_n\}) = \rho(\eta(x_1) \circ \dots \circ \eta(x_n))

    The encoder :math:`\eta` maps elements to those of the aggregation :math:`\circ`, and the decoder :math:`\rho` maps
    its result to the output, so that elements and outputs have any dimensions. With a
    :class:`~abelnet.nn.LabelDecoder` the result is compared with learned label elements.

    With an operation, or layers made of operations, what is between encoder and decoder is exact: states of parts of a
    set merge to that of the set.

    Arguments:
        encoder: Module that maps elements, :math:`(N, d)`, to :math:`(N, c)`.
        aggregation: The aggregation of :math:`c` channels: any :class:`~abelnet.pooling.Pooling`, such as
            :class:`~abelnet.Aggregation` or :class:`~abelnet.nn.GatedBank`, or an operation.
        decoder: Module that maps results, :math:`(*, c)`, to outputs, :math:`(*, k)`.

    Example:
        >>> import torch
        >>> model = SetModel.build(3, 10, channels=16, seed=0)
        >>> points = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
        >>> model(points, ptr=torch.tensor([0, 5, 20])).shape  # logits of 10 classes for sets of 5 and 15 points
        torch.Size([2, 10])

        A weight counts an element that many times:

        >>> once = model(points[:2], element_weights=torch.tensor([2.0, 1.0]))
        >>> torch.allclose(once, model(points[[0, 0, 1]]), atol=1e-6)
        True
    """

    def __init__(self, encoder: nn.Module, aggregation: Pooling | Operation, decoder: nn.Module) -> None:
        super().__init__()
        if isinstance(aggregation, Operation):
            aggregation = Aggregation(aggregation)
        for name, part, kind in (
            ("encoder", encoder, nn.Module),
            ("aggregation", aggregation, Pooling),
            ("decoder", decoder, nn.Module),
        ):
            if not isinstance(part, kind):
                raise AbelnetError(f"{name}: expected a {kind.__name__}, got {type(part).__name__}")
        self.encoder, self.aggregation, self.decoder = encoder, aggregation, decoder

    @classmethod
    def build(
        cls,
        inputs: int,
        outputs: int,
        *,
        aggregation: str | Pooling | Operation = "weighted-mean",
        channels: int = 64,
        encoder_hidden: Sequence[int] = (64, 64),
        decoder_hidden: Sequence[int] | None = (64,),
        initialization: Literal["linear", "he"] = "linear",
        seed: int | None = None,
    ) -> Self:
        """Builds a model of two multilayer perceptrons.

        Arguments:
            inputs: Number of dimensions of an element.
            outputs: Number of outputs.
            aggregation: The aggregation, or its name in :func:`~abelnet.nn.make_aggregation`.
            channels: Number of channels, if the aggregation is given by its name.
            encoder_hidden: Widths of the hidden layers of the encoder.
            decoder_hidden: Widths of the hidden layers of the decoder; if None, outputs are compared with learned label
                elements, by a :class:`~abelnet.nn.LabelDecoder`.
            initialization: How both perceptrons are initialized, see :class:`~abelnet.nn.MLP`: ``"he"`` learns faster,
                and suits classification; ``"linear"`` starts small, and is often more accurate on smooth functions.
            seed: Random seed; torch's global generator is used if not given.

        Example:
            >>> import torch
            >>> SetModel.build(2, 3, decoder_hidden=None, seed=0)(torch.randn(7, 4, 2)).shape
            torch.Size([7, 3])
        """
        check_count("inputs", inputs)
        check_count("outputs", outputs)
        first, second, third = [None] * 3 if seed is None else draw_seeds(seed, 3)
        if isinstance(aggregation, str):
            aggregation = make_aggregation(aggregation, channels, seed=second)
        width = aggregation.dim if isinstance(aggregation, Operation) else aggregation.channels
        encoder = MLP([inputs, *encoder_hidden, width], initialization, seed=first)
        decoder: nn.Module
        if decoder_hidden is None:
            decoder = LabelDecoder(width, outputs, seed=third)
        else:
            decoder = MLP([width, *decoder_hidden, outputs], initialization, seed=third)
        return cls(encoder, aggregation, decoder)

    def reset_parameters(self, seed: int | None = None) -> None:
        """Resets encoder, aggregation and decoder to initial values.

        Arguments:
            seed: Random seed; torch's global generator is used if not given.
        """
        parts: list[Any] = [self.encoder, self.aggregation, self.decoder]
        for part, own in zip(parts, [None] * 3 if seed is None else draw_seeds(seed, 3), strict=True):
            part.reset_parameters(own)

    def forward(
        self,
        values: MultisetValues,
        *,
        mask: Tensor | None = None,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        element_weights: Tensor | Sequence[Tensor] | None = None,
    ) -> Tensor:
        r"""Returns the output of each set, :math:`(*, k)` or :math:`(B, k)`.

        Arguments:
            values: Elements, :math:`(*, n, d)`, or :math:`(N, d)` with ``index`` or ``ptr``, or a list of tensors
                :math:`(n_i, d)`, or :class:`~abelnet.Multisets`.
            mask: True for elements, False for padding, :math:`(*, n)`.
            index: Set of each element, :math:`(N)`, in any order.
            ptr: Offset of each set, and :math:`N`, as in CSR, :math:`(B + 1)`.
            dim_size: Number of sets :math:`B` with ``index``.
            element_weights: How many times each element counts, :math:`(*, n)`, :math:`(N)` or a list; once if None.
                In sums and means it may be any number of 0 or more, in a maximum what counts is whether it is 0.
        """
        result: Tensor = self.decoder(
            self.embed(values, mask=mask, index=index, ptr=ptr, dim_size=dim_size, element_weights=element_weights)
        )
        return result

    def embed(self, values: MultisetValues, **layout: Any) -> Tensor:
        r"""Returns the aggregated element of each set before the decoder, :math:`(*, c)` or :math:`(B, c)`.

        Arguments are those of the model itself.

        Example:
            >>> import torch
            >>> SetModel.build(2, 3, channels=8).embed([torch.randn(4, 2), torch.randn(1, 2)]).shape
            torch.Size([2, 8])
        """
        multisets = Multisets.of(values, _dim(values), **layout)
        return self.aggregation(multisets.with_values(self.encoder(multisets.values)))  # type: ignore[no-any-return]

    def config(self) -> dict[str, Any]:
        return {"encoder": self.encoder, "aggregation": self.aggregation, "decoder": self.decoder}


def _dim(values: MultisetValues) -> int:
    """Returns the number of dimensions of an element."""
    if isinstance(values, Multisets):
        return values.dim
    one = values if isinstance(values, Tensor) else next(iter(values), None)
    if not isinstance(one, Tensor) or one.ndim == 0:
        got = type(values if one is None else one).__name__
        raise AbelnetError(f"values: expected a tensor, a list of tensors or Multisets, got {got}")
    return one.shape[-1]
