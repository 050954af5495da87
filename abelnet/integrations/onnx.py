r"""Operations as ONNX models, to run without Python, as in ONNX Runtime; requires the extra ``abelnet[onnx]``."""

from __future__ import annotations

__all__ = ["export_onnx"]

import copy
import importlib
import warnings
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from abelnet.checks import check_count
from abelnet.errors import AbelnetError, needs_extra
from abelnet.files import replacing

Layout = Literal["pair", "sets", "mask", "ptr", "index"]


def export_onnx(
    model: nn.Module,
    path: str | Path,
    layout: Layout = "ptr",
    *,
    dim: int | None = None,
    dim_size: int | None = None,
) -> None:
    r"""Writes an operation, or a set-pooling layer or set model, as an ONNX file, atomically.

    The file is for any number of sets and elements. Its output is named ``result``, its inputs depend on the layout:

    ==========  ========================================================  =================================
    layout      inputs                                                    result
    ==========  ========================================================  =================================
    ``pair``    ``x`` :math:`(B, d)`, ``y`` :math:`(B, d)`                :math:`x \circ y`, :math:`(B, d)`
    ``sets``    ``values`` :math:`(B, n, d)`                              one element per set, :math:`(B, d)`
    ``mask``    ``values`` :math:`(B, n, d)`, ``mask`` :math:`(B, n)`     the same
    ``ptr``     ``values`` :math:`(N, d)`, ``ptr`` :math:`(B + 1)`        the same
    ``index``   ``values`` :math:`(N, d)`, ``index`` :math:`(N)`          the same, with :math:`B` fixed
    ==========  ========================================================  =================================

    Values are not checked there: an element outside the domain, or an empty set without an identity, gives no error
    but a meaningless number.

    Arguments:
        model: An :class:`~abelnet.Operation`, or a module that is called with values and the keyword ``mask``, ``ptr``
            or ``index``, such as :class:`~abelnet.Aggregation` and :class:`~abelnet.nn.GatedBank`.
        path: The file to write.
        layout: How sets are given.
        dim: Number of dimensions :math:`d` of an element; that of the model if None.
        dim_size: Number of sets :math:`B`; needed for ``index``.

    Example:
        >>> import numpy as np, onnxruntime, tempfile
        >>> from abelnet import AbelianGroup, Generator
        >>> norm = AbelianGroup(Generator(1, "power", [2.0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_onnx(norm, Path(folder) / "norm.onnx")
        ...     session = onnxruntime.InferenceSession(Path(folder) / "norm.onnx")
        >>> values, ptr = np.array([[3.0], [4.0], [7.0]], np.float32), np.array([0, 2, 3])
        >>> session.run(None, {"values": values, "ptr": ptr})[0].tolist()
        [[5.0], [7.0]]
    """
    with needs_extra("onnx", "export_onnx"):
        importlib.import_module("onnx")
        importlib.import_module("onnxscript")
    if (dim_size is None) == (layout == "index"):
        raise AbelnetError(
            f"dim_size: expected an integer with index, and None otherwise, got {dim_size} with {layout}"
        )
    d = check_count("dim", dim if dim is not None else getattr(model, "dim", None))
    like = next(model.parameters(), torch.empty(0))
    x = torch.ones(6, d, dtype=like.dtype, device=like.device)
    padded, elements, sets = ({0: "sets", 1: "elements"}, {0: "elements"}, {0: "sets"})
    places = torch.tensor([0, 1, 2, 0, 1, 2], device=like.device)
    inputs: dict[str, tuple[tuple[str, Tensor, dict[int, str]], ...]] = {
        "pair": (("x", x, sets), ("y", x.clone(), sets)),  # one tensor would be one input
        "sets": (("values", x.reshape(2, 3, d), padded),),
        "mask": (("values", x.reshape(2, 3, d), padded), ("mask", places.reshape(2, 3) < 2, padded)),
        "ptr": (("values", x, elements), ("ptr", torch.tensor([0, 1, 3, 6], device=like.device), {0: "ends"})),
        "index": (("values", x, elements), ("index", places, elements)),
    }
    if layout not in inputs:
        raise AbelnetError(f"layout: expected one of {', '.join(inputs)}, got {layout!r}")
    names, tensors, dynamic = zip(*inputs[layout], strict=True)
    own = copy.deepcopy(model)  # whose mode is left as it is
    module = own if layout == "pair" else _Fold(own, layout, dim_size)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "# The axis name")  # it warns of names that two inputs share
        program = torch.onnx.export(
            module.eval(),
            tensors,
            dynamo=True,
            verbose=False,
            input_names=names,
            output_names=["result"],
            dynamic_shapes=dynamic,
        )
    with replacing(Path(path)) as temporary:
        cast("Any", program).save(temporary)


class _Fold(nn.Module):
    """Module whose call folds sets in one layout."""

    def __init__(self, model: nn.Module, layout: str, dim_size: int | None) -> None:
        super().__init__()
        self.model, self.layout = model, layout
        self.options = {} if dim_size is None else {"dim_size": dim_size}

    def forward(self, values: Tensor, sets: Tensor | None = None) -> Tensor:
        layout = {} if sets is None else {self.layout: sets}
        fold = getattr(self.model, "reduce", self.model)
        result: Tensor = fold(values, **layout, **self.options)
        return result
