"""Export with dynamic shapes: every bijection with every law, by torch.export and in ONNX Runtime."""

from __future__ import annotations

import copy
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from cases import BIJECTIONS, FAMILY_CASES, LAWS, VECTOR_CASES, monomial
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.fx.passes.dialect.common.cse_pass import CSEPass

import abelnet
from abelnet import AbelnetError, Bijection, Law
from abelnet.bijections import Implicit
from abelnet.bijections.terms import Curve, Power
from abelnet.integrations.onnx import export_onnx
from abelnet.nn import GatedBank, SetModel

WANTED = os.environ.get("ABELNET_EXPORT", "")  # "all", or names of laws
ALL = WANTED != ""
DIM = 4  # an even number, as weighted means need
# Coefficients of polynomials, one channel each: their programs differ in these constants alone.
SIDE_BY_SIDE = {
    "polynomial_small": (1e-9, 0.0),
    "polynomial_negative": (-0.5, 0.3),
    "polynomial_shifted": (0.0, 0.7),
    "polynomial_zero": (0.0, 0.0),
}
OF_EVEN_DIMENSIONS = {"weighted_mean"}
EVERY_LAW: dict[str, Callable[[int], Law]] = (
    {
        name: lambda dim, law=law: law()  # type: ignore[misc]
        for name, law in LAWS.items()
        if name not in SIDE_BY_SIDE
    }
    | {
        "polynomials": lambda dim: abelnet.Polynomial(
            *torch.tensor([*SIDE_BY_SIDE.values()][:dim], dtype=torch.float64).T
        ),
        "polynomial_mixed": lambda dim: abelnet.Polynomial(
            torch.tensor([0.0, 0.5, -2.0, 1.0][:dim], dtype=torch.float64)
        ),
        "mean": lambda dim: abelnet.Mean(),
        "capped": lambda dim: abelnet.CappedSum(2.0),
        "weighted_mean": lambda dim: abelnet.WeightedMean(rate=1.5),
    }
)
CURVE = Curve(0, [-3.0, -1.0, 0.5, 3.0], [-5.0, -2.0, 0.0, 4.0])
SCALARS: dict[str, Callable[[torch.dtype], Bijection]] = (
    {
        name: lambda dtype, make=make: make(dtype, dim=DIM)  # type: ignore[misc]
        for name, make in BIJECTIONS.items()
    }
    | {
        f"generator_{name}": lambda dtype, case=case: abelnet.Generator(DIM, case[0], case[1], dtype=dtype)  # type: ignore[misc]
        for name, case in FAMILY_CASES.items()
    }
    | {
        "even": lambda dtype: abelnet.Even(abelnet.Generator(DIM, "positive power", [2.0], dtype=dtype)),
        "polyline": lambda dtype: abelnet.Monotonic(DIM, groups=4, units=5, seed=1, dtype=dtype).snapshot(),
    }
)
VECTORS = VECTOR_CASES | {
    "curves": (
        lambda dtype: abelnet.Triangular(2, [[monomial(CURVE)], [monomial(CURVE, 1)]], [[1.0]] * 2, dtype=dtype),
        [0.6, -3],
        [3, 3],
    ),
    "implicit_curve": (
        lambda dtype: Implicit(
            2,
            [[monomial(CURVE), monomial(Power(1, 3.0))], [monomial(1), monomial(Power(0, 3.0))]],
            [[1.0, 1 / 3], [2.0, -1 / 3]],
            known=torch.cartesian_prod(torch.linspace(-2, 2, 9), torch.linspace(-2, 2, 9)),
            dtype=dtype,
        ),
        [-2, -2],
        [2, 2],
    ),
}
MAKERS = SCALARS | {name: case[0] for name, case in VECTORS.items()}
# Bijection and laws; the target test-export has all with all.
SOME = {
    "monotonic": ["product"],
    "glow": ["sum"],
    "generator_positive_power": ["sum", "weighted_mean"],
    "generator_exponential": ["polynomial_mixed"],
    "implicit": ["sum"],
}


def laws_of(name: str) -> list[str]:
    """Every law of elements of this number of dimensions, or those that are wanted."""
    chosen = list(EVERY_LAW) if WANTED == "all" else WANTED.split(",")
    return [law for law in chosen if law not in OF_EVEN_DIMENSIONS or MAKERS[name](torch.float32).dim % 2 == 0]


PAIRS = {name: laws_of(name) for name in MAKERS} if ALL else SOME
# Bijection, dtype, and whether in ONNX Runtime as well.
CASES = (
    [(name, dtype, True) for name in PAIRS for dtype in (torch.float32, torch.float64)]
    if ALL
    else [(name, torch.float32, False) for name in PAIRS] + [("generator_positive_power", torch.float64, True)]
)
SIZES = [(1, 1), (7, 1023), (2, 1025), (1, 5000), *([(4096, 1)] if ALL else [])]
OF_ONNX = [(1, 1), (7, 30), (2, 1000), (4096, 1)]
ROWS = Dim("rows")


class Operations(nn.Module):
    """Operations over one bijection, applied to pairs and to sets by ptr; the first of them to padded sets as well."""

    def __init__(self, name: str, laws: Sequence[str], dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.bijection = MAKERS[name](dtype)
        dim = self.bijection.dim
        self.operations = nn.ModuleList(abelnet.Operation(self.bijection, EVERY_LAW[law](dim)) for law in laws)

    def forward(self, x: Tensor, y: Tensor, padded: Tensor, mask: Tensor, values: Tensor, ptr: Tensor) -> list[Tensor]:
        found = [self.operations[0].reduce(padded, mask=mask)]  # type: ignore[operator]
        for one in self.operations:
            found += [one(x, y), one.reduce(values, ptr=ptr)]  # type: ignore[operator]
        return found


def elements(name: str, *shape: int, seed: int = 0) -> Tensor:
    """Elements of the domain, of about the size that float32 folds without overflow."""
    generator = torch.Generator().manual_seed(seed)
    if name in VECTORS:
        low, high = torch.tensor(VECTORS[name][1:], dtype=torch.float32)
        return torch.lerp(low, high, torch.rand(*shape, len(low), generator=generator))
    if not name.startswith("generator_"):
        return torch.randn(*shape, DIM, generator=generator)
    low, high = FAMILY_CASES[name.removeprefix("generator_")][2:]
    if low > 3:
        middle = (low + high) / 2
        low, high = middle - 3, middle + 3
    low, high = max(low, -3.0), min(high, 3.0) if high > -3 else high
    return low + (high - low) * (0.05 + 0.9 * torch.rand(*shape, DIM, generator=generator))


def batch(name: str, count: int, size: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    """Pairs, padded sets with their mask, and the same number of sets by ptr, of all sizes up to one."""
    mask = torch.rand(count, size, generator=torch.Generator().manual_seed(seed)) < 0.7
    mask[:, 0] = True
    ends = torch.cat((torch.zeros(1, dtype=torch.long), torch.tensor([size] + [1 + size // 3] * (count - 1)).cumsum(0)))
    x, y = (elements(name, count, seed=seed + k) for k in (1, 2))
    padded, values = elements(name, count, size, seed=seed + 3), elements(name, int(ends[-1]), seed=seed + 4)
    return x.to(dtype), y.to(dtype), padded.to(dtype), mask, values.to(dtype), ends


def shapes() -> tuple[dict[int, Any], ...]:
    pairs, sets, size, ends = Dim("pairs"), Dim("sets"), Dim("size"), Dim("ends")
    return {0: pairs}, {0: pairs}, {0: sets, 1: size}, {0: sets, 1: size}, {0: ROWS}, {0: ends}


def jittered(x: Tensor, seed: int) -> Tensor:
    """Moves numbers up or down, by about what rounding amounts to in a fold of a thousand elements."""
    if not x.is_floating_point():
        return x
    signs = 2.0 * torch.randint(0, 2, x.shape, generator=torch.Generator().manual_seed(seed), dtype=x.dtype) - 1
    return x * (1 + {torch.float32: 5e-7, torch.float64: 1e-13}[x.dtype] * signs)


def assert_equal(model: Operations, arguments: tuple[Tensor, ...], got: Sequence[Tensor]) -> None:
    """Asserts that results are equal to 1e-5, or as far as rounding leaves so much: of torch, and of the elements.

    In float64 this holds for every number, in float32 compared with the largest entry of a result.
    """
    plain = model(*arguments)
    wide = copy.deepcopy(model).double()(*(x.double() if x.is_floating_point() else x for x in arguments))
    moved = [model(*(jittered(x, seed) for x in arguments)) for seed in range(4)]
    for result, one, exact, *draws in zip(got, plain, wide, *moved, strict=True):
        spread = torch.stack([(draw.double() - one).abs() for draw in (exact, *draws)]).amax(0)
        size = one.double().abs()
        if result.dtype == torch.float32:
            size, spread = (part.amax(-1, keepdim=True) for part in (size, spread))
        is_close = (result.double() - one).abs() <= 1e-5 * (1 + size) + 2 * spread
        is_same = is_close | (result == one) | (result.isnan() & one.isnan())
        is_lost = ~(spread.isfinite() & (size < 1e30)) & ~(one.isnan() & exact.isnan())
        assert bool((is_same | is_lost).all())


def check(
    model: Operations, name: str, dtype: torch.dtype, sizes: Sequence[tuple[int, int]], run: Callable[..., Any]
) -> None:
    """Compares a model with a program of it on numbers of sets and the size of the largest of them."""
    for count, size in sizes:
        arguments = batch(name, count, size, seed=size, dtype=dtype)
        with torch.no_grad(), abelnet.set_checks_enabled(False):
            assert_equal(model, arguments, run(*arguments))


def shorten(program: ExportedProgram) -> None:
    """Computes once what operations have in common, and drops the rest: the time to convert is that of the length."""
    graph = CSEPass()(program.graph_module).graph_module.graph
    for node in list(graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:  # which ONNX does not have
            graph.erase_node(node)
    graph.eliminate_dead_code()
    assert len(graph.nodes) < len(program.graph.nodes)
    program.graph_module.graph = graph


@pytest.fixture
def _without_collection() -> Iterator[None]:
    """Collects no garbage, which takes a tenth of the time: millions of small objects are kept to the end."""
    gc.disable()
    yield
    gc.enable()


def test_laws_side_by_side() -> None:
    law = EVERY_LAW["polynomials"](DIM)
    u, v = batch("affine", 5, 1, dtype=torch.float64)[:2]
    for channel, name in enumerate(SIDE_BY_SIDE):
        alone = LAWS[name]().combine(u, v)[:, channel]
        torch.testing.assert_close(law.combine(u, v)[:, channel], alone, rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:# The axis name")  # two inputs share it
@pytest.mark.usefixtures("_without_collection")
@pytest.mark.parametrize(("name", "dtype", "in_onnx"), CASES, ids=str)
def test_one_program_for_all_sizes(name: str, dtype: torch.dtype, in_onnx: bool, tmp_path: Path) -> None:
    model = Operations(name, PAIRS[name], dtype).eval()
    program = torch.export.export(model, batch(name, 3, 4, dtype=dtype), dynamic_shapes=shapes())
    check(model, name, dtype, SIZES, program.module())
    if not in_onnx:
        return
    shorten(program)
    written = torch.onnx.export(program, dynamo=True, verbose=False)
    assert written is not None
    written.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")

    def run(*arguments: Tensor) -> list[Tensor]:
        feed = {one.name: x.numpy() for one, x in zip(session.get_inputs(), arguments, strict=True)}
        return [torch.from_numpy(one) for one in session.run(None, feed)]

    check(model, name, dtype, OF_ONNX, run)


def test_every_layout_as_a_file(tmp_path: Path) -> None:
    model = abelnet.AbelianGroup(abelnet.Affine(2)).train()
    x = torch.randn(2, 4, 2)
    mask = torch.tensor([[True, False, True, True], [True, True, False, False]])
    expected = {
        "pair": ({"x": x[0], "y": x[1]}, x[0] + x[1]),
        "sets": ({"values": x}, x.sum(1)),
        "mask": ({"values": x, "mask": mask}, (x * mask[..., None]).sum(1)),
        "ptr": ({"values": x[0], "ptr": torch.tensor([0, 4])}, x[0].sum(0, keepdim=True)),
        "index": (
            {"values": x[0], "index": torch.tensor([1, 0, 1, 1])},
            torch.stack((x[0, 1], x[0, [0, 2, 3]].sum(0))),
        ),
    }
    expected = expected if ALL else {layout: expected[layout] for layout in ("pair", "ptr", "index")}
    for layout, (feed, result) in expected.items():
        path = tmp_path / f"{layout}.onnx"
        export_onnx(model, path, layout, dim_size=2 if layout == "index" else None)  # type: ignore[arg-type]
        session = onnxruntime.InferenceSession(path)
        (got,) = session.run(["result"], {name: one.numpy() for name, one in feed.items()})
        torch.testing.assert_close(torch.from_numpy(got), result)
    assert model.training
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(f"{layout}.onnx" for layout in expected)


@pytest.mark.parametrize("layer", ["aggregation", "bank", "context"] if ALL else ["aggregation"])
def test_layers(layer: str, tmp_path: Path) -> None:
    group = abelnet.AbelianGroup(abelnet.Generator(2, "positive power", [2.0]))
    model = {
        "aggregation": lambda: abelnet.Aggregation(group),
        "bank": lambda: GatedBank(2, seed=0).eval(),
        "context": lambda: SetModel.build(2, 3, aggregation="context", channels=16, seed=0),
    }[layer]()
    if layer == "context":
        nn.init.normal_(model.aggregation.shift)
    export_onnx(model, tmp_path / "layer.onnx", "ptr", dim=2)
    session = onnxruntime.InferenceSession(tmp_path / "layer.onnx")
    for sizes in ([1], [3, 40, 2], [1000]):
        values = 0.5 + torch.rand(sum(sizes), 2)
        ptr = torch.tensor([0, *sizes]).cumsum(0)
        (got,) = session.run(None, {"values": values.numpy(), "ptr": ptr.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), model(values, ptr=ptr).detach(), rtol=1e-5, atol=1e-5)


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = abelnet.AbelianGroup(abelnet.Affine(2))
    with pytest.raises(AbelnetError, match="layout: expected one of pair, sets, mask, ptr, index, got 'csr'"):
        export_onnx(group, tmp_path / "a.onnx", "csr")  # type: ignore[arg-type]
    with pytest.raises(AbelnetError, match="dim_size: expected an integer with index"):
        export_onnx(group, tmp_path / "a.onnx", "index")
    with pytest.raises(AbelnetError, match="dim: expected"):
        export_onnx(nn.Linear(2, 2), tmp_path / "a.onnx")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(AbelnetError, match=r'onnxscript is not installed; pip install "abelnet\[onnx\]"'):
        export_onnx(group, tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())
