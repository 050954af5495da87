"""Saving: every operation comes back in another process, bit for bit, from one file; and nothing else loads."""

from __future__ import annotations

import json
import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases import BIJECTIONS, FAMILY_CASES, LAWS, VECTOR_CASES, vectors
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import abelnet
from abelnet import AbelianGroup, AbelianNet, AbelnetError, Affine, Chain, Generator, LawRegressor, Operation
from abelnet.nn import MLP, DeepSets
from abelnet.saving import checksum

MUTATIONS = int(os.environ.get("ABELNET_FUZZ", "200"))
DATA = Path(__file__).parent / "data"
CASES = {
    f"{bijection}-{law}-{dtype}": Operation(BIJECTIONS[bijection](dtype), LAWS[law]())
    for bijection in BIJECTIONS
    for law in LAWS
    for dtype in (torch.float32, torch.float64)
} | {
    f"{name}-sum": Operation(Generator(3, kind, parameters, dtype=torch.float64), abelnet.Sum())
    for name, (kind, parameters, _, _) in FAMILY_CASES.items()
}
CASES |= {
    f"{name}-vectors-{dtype}": AbelianGroup(make(dtype))
    for name, (make, _, _) in VECTOR_CASES.items()
    for dtype in (torch.float32, torch.float64)
}
SCRIPT = """
import sys, torch, abelnet
from pathlib import Path
folder = Path(sys.argv[1])
results = {}
torch.set_num_threads(1)  # as in the tests
before = torch.random.get_rng_state()
for path in sorted(path for path in folder.iterdir() if path.is_dir()):
    operation = abelnet.load(path)
    x = torch.load(folder / "x.pt")[path.name]
    results[path.name] = (operation(x, x.flip(0)), operation.reduce(x))
assert torch.equal(before, torch.random.get_rng_state())
torch.save(results, folder / "results.pt")
"""


def elements(name: str) -> torch.Tensor:
    vector, _, dtype = name.partition("-vectors-torch.")
    if dtype:
        return vectors(vector, 6, dtype=getattr(torch, dtype))
    low, high = -3.0, 3.0
    if name.removesuffix("-sum") in FAMILY_CASES:
        _, _, low, high = FAMILY_CASES[name.removesuffix("-sum")]
        low, high = max(low, -2.0), min(high, 2.0)
    generator = torch.Generator().manual_seed(0)
    x = low + (high - low) * (0.2 + 0.6 * torch.rand(6, 3, generator=generator, dtype=torch.float64))
    return x if name.endswith(("float64", "-sum")) else x.float()


def test_every_operation_comes_back_in_a_fresh_process_bit_for_bit(tmp_path: Path) -> None:
    for name, operation in CASES.items():
        assert abelnet.save(operation, tmp_path / name) == tmp_path / name / "model.safetensors"
        assert [path.name for path in (tmp_path / name).iterdir()] == ["model.safetensors"]
    torch.save({name: elements(name) for name in CASES}, tmp_path / "x.pt")
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=True)
    results = torch.load(tmp_path / "results.pt")
    assert set(results) == set(CASES)
    for name, operation in CASES.items():
        x = elements(name)
        pair, fold = results[name]
        # Sums beyond the image of a generator are NaN.
        exactly = {"rtol": 0, "atol": 0, "equal_nan": True, "msg": name}
        torch.testing.assert_close(pair, operation(x, x.flip(0)), **exactly)
        torch.testing.assert_close(fold, operation.reduce(x), **exactly)
        assert pair.dtype == operation(x, x).dtype


def test_a_spline_keeps_its_bound_and_smallest_slope(tmp_path: Path) -> None:
    spline = abelnet.RationalQuadraticSpline(1, bins=4, bound=7.0, min_slope=0.05, dtype=torch.float64)
    torch.nn.init.normal_(spline.raw_heights, generator=torch.Generator().manual_seed(0))
    abelnet.save(AbelianGroup(spline), tmp_path)
    loaded = abelnet.load(tmp_path).bijection
    assert (loaded.bound, loaded.min_slope) == (7.0, 0.05)
    x = torch.linspace(-9, 9, 50, dtype=torch.float64)[:, None]
    assert torch.equal(loaded(x), spline(x))


def test_what_is_trained_and_what_is_not_comes_back(tmp_path: Path) -> None:
    frozen = Affine(1).requires_grad_(False)
    abelnet.save(AbelianNet(Chain(frozen, Affine(1)), gamma=0.25), tmp_path)
    loaded = abelnet.load(tmp_path)
    assert isinstance(loaded, AbelianNet)
    assert {name for name, p in loaded.named_parameters() if not p.requires_grad} == {
        "bijection.bijections.0.log_scale",
        "bijection.bijections.0.shift",
    }
    assert loaded.law.gamma.requires_grad
    assert loaded.law.gamma.item() == 0.25


def test_a_shared_gamma_stays_shared_and_what_was_saved_is_the_start(tmp_path: Path) -> None:
    # Files of before, when one gamma was the default, have a list of one number.
    for gamma in ([0.5], [0.5, -1.0, 2.0]):
        abelnet.save(AbelianNet(Generator(3, "power", [2.0]), gamma=gamma), tmp_path)
        loaded = abelnet.load(tmp_path)
        torch.nn.init.zeros_(loaded.law.gamma)
        torch.nn.init.ones_(loaded.bijection.values[0])
        loaded.reset_parameters()
        assert loaded.law.gamma.tolist() == gamma
        assert loaded.bijection.values[0].tolist() == [2.0] * 3


def test_float16_at_rest_comes_back_in_its_own_dtype(tmp_path: Path) -> None:
    group = AbelianGroup(abelnet.glow(4, layers=1, hidden=8, seed=0, dtype=torch.float64))
    abelnet.save(group, tmp_path, half=True)
    loaded = abelnet.load(tmp_path)
    x = torch.randn(3, 4, dtype=torch.float64)
    torch.testing.assert_close(loaded(x, x), group(x, x), rtol=1e-2, atol=1e-2)
    stored = load_file(tmp_path / "model.safetensors")
    assert {str(tensor.dtype) for tensor in stored.values()} == {"torch.float16", "torch.int64"}


@pytest.mark.parametrize(
    "model", [DeepSets(2, 1, 3, 4), DeepSets(2, 3, 5, 7), MLP([2, 4, 1])], ids=["flat", "deep", "mlp"]
)
def test_baselines_come_back(model: torch.nn.Module, tmp_path: Path) -> None:
    abelnet.save(model, tmp_path)  # type: ignore[arg-type]
    x = torch.randn(3, 4, 2)
    assert torch.equal(abelnet.load(tmp_path)(x), model(x))


def test_a_folder_of_version_0_1_0_still_loads() -> None:
    folder = DATA / "law-0.1.0"
    model = abelnet.load(folder)
    assert isinstance(model, LawRegressor)
    # What it computes, also for negative numbers; version 0.1.0 printed (x^2 + y^2)^(1/2).
    assert model.laws_[0].formula == "x∘y = g⁻¹(g(x) + g(y)), g(x) = sign(x)·|x|^2"
    assert model.laws_[2].formula == "x∘y = x + y − x·y"
    rows = np.loadtxt(folder / "elements.csv", delimiter=",")
    sets = [rows[rows[:, 0] == i, 1:] for i in range(20)]
    expected = np.loadtxt(folder / "predictions.csv", delimiter=",")
    np.testing.assert_allclose(model.predict(sets), expected, rtol=1e-13, atol=1e-13)  # some are sums that cancel


def test_folders_of_the_first_format_load_for_ever() -> None:
    """Saved when the format was 1; these files are never written again."""
    folder = DATA / "format-1"
    known = json.loads((folder / "expected.json").read_text())
    values, ptr = torch.tensor(known["values"], dtype=torch.float64), torch.tensor(known["ptr"])
    operation, bank, law = (abelnet.load(folder / name) for name in ("operation", "bank", "law"))
    results = known["results"]
    torch.testing.assert_close(operation.reduce(values, ptr=ptr).tolist(), results["operation"], rtol=1e-12, atol=0)
    torch.testing.assert_close(bank.eval()(values.float(), ptr=ptr).tolist(), results["bank"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(law.predict(known["sets"]), results["law"], rtol=1e-12)
    assert law.feature_names_in_.tolist() == known["names"]


def write(folder: Path, content: Any, tensors: dict[str, torch.Tensor]) -> None:
    """Writes a model file as a hostile user would, with the right checksum."""
    text = json.dumps(content)
    metadata = None if content is None else {"abelnet": text, "checksum": checksum(text, tensors)}
    save_file(tensors, folder / "model.safetensors", metadata)


def nested(depth: int) -> Any:
    return [] if depth == 0 else [nested(depth - 1)]


def affine(**config: Any) -> dict[str, Any]:
    return {"format": 1, "model": {"$class": "abelnet.bijections.Affine", "config": config}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"format": 99}, "format: expected 1, got 99"),
        ({"format": 1, "model": nested(40)}, "expected at most 32 levels"),
        ({"format": 1, "model": [0] * 200_000}, "expected at most 100000 values"),
        (affine(dim=10**12), "dim: expected at most 1024, got 1000000000000"),
        (affine(dim=True), "written by abelnet.save|expected"),
        (affine(dim="2"), "dim: expected"),
        ({"format": 1, "model": {"$class": ["abelnet"], "config": {}}}, "written by abelnet.save"),
        ({"format": 1, "model": {"$class": "abelnet.laws.Sum"}}, "written by abelnet.save"),
        ([1], "configuration: expected an object, got list"),
        ({"format": 1, "model": {"$class": "os.system", "config": {}}}, "expected the class os.system, got none"),
        ({"format": 1, "model": {"$class": "abelnet.__main__.main", "config": {}}}, "got none; pass classes="),
        (
            {"format": 1, "model": {"$class": "abelnet.files.replacing", "config": {}}},
            "the name of a configurable class",
        ),
        ({"format": 1, "model": {"$class": "abelnet.laws.Nothing", "config": {}}}, "written by abelnet.save"),
        ({"format": 1, "model": {"$class": "abelnet.lows.Sum", "config": {}}}, "No module named 'abelnet.lows'"),
        (affine(dim=10**400), "dim: expected at most 1024"),
        ({"format": 1, "model": {"$class": "abelnet.laws.Sum", "config": {"x": 1}}}, "written by abelnet.save"),
        ({"format": 1, "model": {"$class": "abelnet.laws.Sum", "config": {}}}, "got other as well"),
        ({"format": 1, "model": {"$class": "abelnet.bijections.Affine", "config": {"dim": 2}}}, "expected log_scale"),
        (None, "got another safetensors file"),
    ],
)
def test_bad_files(content: Any, message: str, tmp_path: Path) -> None:
    write(tmp_path, content, {"other": torch.zeros(1)})
    with pytest.raises(AbelnetError, match=message):
        abelnet.load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(AbelnetError, match=r"expected a model written by abelnet\.save"):
        abelnet.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("values.0", torch.tensor([math.nan]), "values.0: expected finite numbers"),
        ("values.0", torch.tensor([math.inf]), "values.0: expected finite numbers"),
        ("values.0", torch.tensor([0.0]), "p: expected a finite number other than 0, got"),
        ("values.0", torch.tensor([2.0, 2.0]), r"values.0: expected shape \(1,\), got \(2,\)"),
        ("values.0", torch.tensor([2]), "values.0: expected torch.float32, got torch.int64"),
    ],
)
def test_bad_tensors(name: str, value: torch.Tensor, message: str, tmp_path: Path) -> None:
    model = {"$class": "abelnet.bijections.Generator", "config": {"dim": 1, "kind": "power", "parameters": [2.0]}}
    write(tmp_path, {"format": 1, "model": model}, {name: value})
    with pytest.raises(AbelnetError, match=message):
        abelnet.load(tmp_path)


@pytest.mark.parametrize(
    ("model", "name", "value", "message"),
    [
        (AbelianGroup(Affine(2)), "bijection.log_scale", [0.0, 800.0], "expected an operation with finite results"),
        (AbelianGroup(Affine(2)), "bijection.log_scale", [0.0, -800.0], "expected an operation with finite results"),
        (AbelianGroup(Affine(2)), "bijection.shift", [1e30, 0.0], "shift: expected numbers whose square is finite"),
        (AbelianGroup(Generator(1, "power", [0.5])), "bijection.values.0", [1e-30], "with finite results, got none"),
        (AbelianGroup(abelnet.Permutation(2)), "bijection.order", [0, 0], "order: expected each of 0 to 1 once, got"),
        (AbelianGroup(abelnet.Permutation(2)), "bijection.order", [0, 9], "order: expected each of 0 to 1 once, got"),
        (MLP([1, 1]), "biases.0", torch.zeros(1, 1).half(), r"one dtype, got torch\.float16 and torch\.float32"),
        (AbelianGroup(Affine(1)), "bijection.shift", torch.zeros(1).double(), "bijection: expected parameters of one"),
    ],
)
def test_numbers_that_are_no_model_are_refused(model: Any, name: str, value: Any, message: str, tmp_path: Path) -> None:
    path = abelnet.save(model, tmp_path)
    tensors = load_file(path)
    tensors[name] = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=tensors[name].dtype)
    with safe_open(path, "pt") as file:
        content = json.loads(file.metadata()["abelnet"])
    write(tmp_path, content, tensors)
    with pytest.raises(AbelnetError, match=message):
        abelnet.load(tmp_path)


def test_an_inverse_order_of_another_permutation_is_refused(tmp_path: Path) -> None:
    path = abelnet.save(AbelianGroup(abelnet.Permutation(3, order=[1, 2, 0])), tmp_path)
    tensors = load_file(path)
    tensors["bijection.inverse_order"] = tensors["bijection.order"].clone()
    with safe_open(path, "pt") as file:
        content = json.loads(file.metadata()["abelnet"])
    write(tmp_path, content, tensors)
    with pytest.raises(AbelnetError, match="inverse_order: expected the inverse of order"):
        abelnet.load(tmp_path)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_laws_of_any_scale_and_domain_come_back(scale: float, tmp_path: Path) -> None:
    for kind, parameters in (("exponential", [1 / scale]), ("arctanh", [scale]), ("arcsinh", [scale])):
        generator = Generator(1, kind, parameters, dtype=torch.float64)
        abelnet.save(AbelianGroup(generator), tmp_path)
        x = torch.tensor([[0.1 * scale]], dtype=torch.float64)
        assert torch.equal(abelnet.load(tmp_path)(x, x), AbelianGroup(generator)(x, x))
    narrow = Affine(1, dtype=torch.float64)
    torch.nn.init.constant_(narrow.shift, -100.0)
    abelnet.save(AbelianGroup(Chain(narrow, Generator(1, "logit", dtype=torch.float64))), tmp_path)
    assert abelnet.load(tmp_path).bijection.domain[0] == 100


def center_of_mass(**changes: Any) -> dict[str, Any]:
    """A configuration, with some arguments of the bijection or of its last factor changed."""
    factor = {"coordinate": 1, "exponent": 1.0} | {
        key: changes.pop(key) for key in ("coordinate", "exponent") & changes.keys()
    }
    power = {"$class": "abelnet.bijections.terms.Power", "config": factor}
    mass = {"$class": "abelnet.bijections.terms.Power", "config": {"coordinate": 0, "exponent": 1.0}}
    terms = [
        [{"$class": "abelnet.bijections.terms.Monomial", "config": {"factors": factors}}]
        for factors in ([mass], [mass, power])
    ]
    config = {"dim": 2, "invariants": terms, "coefficients": [[1.0], [1.0]], "signs": [1, 0], "origin": [0.0, 0.0]}
    return {"format": 1, "model": {"$class": "abelnet.bijections.Triangular", "config": config | changes}}


def planar(**changes: Any) -> list[Any]:
    config = {"plane": "polar", "part": 0, "first": 0, "second": 1} | changes
    return [[{"$class": "abelnet.bijections.terms.Planar", "config": config}] for _ in range(2)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exponent": 0}, "exponent: expected a number other than 0, got 0"),
        ({"exponent": {"$float": "nan"}}, "exponent: expected a number , got nan"),
        ({"exponent": {"$float": "inf"}}, "exponent: expected a number"),
        ({"exponent": "1"}, "exponent: expected float, got '1'"),
        ({"exponent": 10**400}, "exponent: expected at most 1024, got 1000"),
        ({"coordinate": 2}, "invariants: expected terms of 2 coordinates, got"),
        ({"coordinate": -1}, "coordinate: expected at least 0, got -1"),
        ({"coordinate": 1.5}, "coordinate: expected int, got 1.5"),
        ({"coordinate": 10**12}, "coordinate: expected at most 1024, got 1000000000000"),
        ({"dim": 10**9}, "dim: expected at most 1024, got 1000000000"),
        ({"dim": 1000}, "invariants: expected 1000 lists of terms, got 2"),
        ({"invariants": []}, "invariants: expected 2 lists of terms, got 0"),
        ({"invariants": [[1], [2]]}, "invariants: expected Sequence"),
        ({"invariants": [[0.0] * 60_000] * 2}, "expected at most 100000 values"),
        ({"invariants": planar()}, "expected each to bring in one coordinate"),
        ({"invariants": planar(plane="spiral")}, "plane: expected one of polar, inversion, split, Lorentz, Cartesian"),
        ({"invariants": planar(part=2)}, "part: expected 0 or 1, got 2"),
        ({"invariants": planar(second=0)}, "first, second: expected different coordinates, got 0 twice"),
        ({"coefficients": [[1.0, 2.0], [1.0]]}, "coefficients: expected one for each term"),
        ({"coefficients": [[1.0], "x"]}, "coefficients: expected Sequence"),
        ({"signs": [3, 0]}, "signs: expected 2 of -1, 0 and 1"),
        ({"signs": [0.5, 0]}, "signs: expected Sequence"),
        ({"origin": [0.0]}, "origin: expected 2 finite numbers"),
        ({"origin": [{"$float": "nan"}, 0.0]}, "origin: expected 2 finite numbers"),
    ],
)
def test_forged_invariants_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    tensors = {"coefficients.0": torch.ones(1), "coefficients.1": torch.ones(1)}
    write(tmp_path, center_of_mass(), tensors)
    assert isinstance(abelnet.load(tmp_path), abelnet.Triangular)
    write(tmp_path, center_of_mass(**changes), tensors)
    with pytest.raises(AbelnetError, match=message):
        abelnet.load(tmp_path)


def test_points_that_an_inverse_starts_from_are_in_the_file_once(tmp_path: Path) -> None:
    path = abelnet.save(AbelianGroup(VECTOR_CASES["implicit"][0](torch.float64)), tmp_path)
    with safe_open(path, "pt") as file:
        content = json.loads(file.metadata()["abelnet"])
    config = content["model"]["config"]["bijection"]["config"]
    tensors = load_file(path)
    assert config["known"] == len(tensors["bijection.known"]) == 81
    for value, message in ((0, "known: expected at least 1, got 0"), (80, r"known: expected shape \(80, 2\), got")):
        config["known"] = value
        write(tmp_path, content, tensors)
        with pytest.raises(AbelnetError, match=message):
            abelnet.load(tmp_path)


def test_vector_operations_without_results_are_refused(tmp_path: Path) -> None:
    path = abelnet.save(AbelianGroup(VECTOR_CASES["center_of_mass"][0](torch.float64)), tmp_path)
    tensors = load_file(path)
    tensors["bijection.coefficients.0"] = torch.zeros(1, dtype=torch.float64)
    with safe_open(path, "pt") as file:
        content = json.loads(file.metadata()["abelnet"])
    write(tmp_path, content, tensors)
    with pytest.raises(AbelnetError, match="expected an operation with finite results"):
        abelnet.load(tmp_path)


def test_only_regular_files_in_the_folder_are_read(tmp_path: Path) -> None:
    saved = abelnet.save(AbelianGroup(Affine(1)), tmp_path / "real")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "model.safetensors").symlink_to(saved)
    with pytest.raises(AbelnetError, match="expected a regular file in"):
        abelnet.load(tmp_path / "link")
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / "model.safetensors")
    with pytest.raises(AbelnetError, match="expected a regular file in"):
        abelnet.load(tmp_path / "fifo")


FORGED = {
    "a law of another type": (["laws", 0, "config", "seen"], [], "seen: expected Seen | None, got []"),
    "an error that is text": (["laws", 0, "config", "rmse"], "0", "rmse: expected float, got '0'"),
    "a candidate of two parts": (["laws", 0, "config", "tried"], [["sum", 0]], "tried: expected Sequence"),
    "an eigenvalue that is none": (["laws", 0, "config", "eigenvalues"], {"group": None}, "eigenvalues: expected dict"),
    "an integer beyond any float": (["laws", 0, "config", "explained"], 10**400, "explained: expected float, got 1000"),
    "a seed that is true": (["seed"], True, "seed: expected int, got True"),
}


@pytest.mark.parametrize("name", FORGED)
def test_arguments_of_another_type_are_refused(name: str, tmp_path: Path) -> None:
    path, value, message = FORGED[name]
    model = LawRegressor().fit([[1, 2], [2, 2], [3, 1], [2, 3], [4, 1]], [3, 4, 4, 5, 5])
    with safe_open(abelnet.save(model, tmp_path), "pt") as file:
        content = json.loads(file.metadata()["abelnet"])
    *lead, last = path
    parent = content["model"]["config"]
    for key in lead:
        parent = parent[key]
    parent[last] = value
    write(tmp_path, content, {})
    with pytest.raises(AbelnetError, match=re.escape(message)):
        abelnet.load(tmp_path)


def test_a_forged_even_curve_is_refused(tmp_path: Path) -> None:
    path = abelnet.save(AbelianGroup(abelnet.Even(Generator(1, "positive power", [2.0]))), tmp_path)
    with safe_open(path, "pt") as file:
        content = json.loads(file.metadata()["abelnet"].replace("positive power", "power"))
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    write(tmp_path, content, tensors)
    with pytest.raises(AbelnetError, match="expected curves on the positive numbers, got one on all real numbers"):
        abelnet.load(tmp_path)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int64, torch.float32])
def test_half_precision_is_read_from_float16_only(dtype: torch.dtype, tmp_path: Path) -> None:
    path = abelnet.save(AbelianGroup(Generator(1, "power", [2.0])), tmp_path, half=True)
    with safe_open(path, "pt") as file:
        content = json.loads(file.metadata()["abelnet"])
        tensors = {name: file.get_tensor(name).to(dtype) for name in file.keys()}  # noqa: SIM118
    write(tmp_path, content, tensors)
    with pytest.raises(AbelnetError, match=f"expected float16, to load as a floating-point dtype, got {dtype}"):
        abelnet.load(tmp_path)


def test_loading_does_not_import_the_compiler(tmp_path: Path) -> None:
    """Comparing tensors without memory would import torch._dynamo: seconds, and 75 MB."""
    even = abelnet.Even(Generator(1, "positive power", [2.0]))
    for name, operation in {
        "generator": AbelianGroup(Generator(1, "logarithm", [2.0])),
        "even": abelnet.Operation(even, abelnet.Polynomial(0.5)),
        "constant": abelnet.Operation(Generator(1, "power", [3.0]), abelnet.Constant(7.0)),
        "net": abelnet.AbelianNet(Chain(abelnet.Affine(1), abelnet.Monotonic(1, seed=0))),
        "glow": AbelianGroup(abelnet.glow(3, layers=3, hidden=4, seed=0)),
        "vectors": AbelianGroup(VECTOR_CASES["pooled_variance"][0](torch.float64)),
        "implicit": AbelianGroup(VECTOR_CASES["implicit"][0](torch.float64)),
    }.items():
        abelnet.save(operation, tmp_path / name)
    script = (
        "import sys, pathlib, abelnet\n"
        "for folder in pathlib.Path(sys.argv[1]).iterdir():\n"
        "    abelnet.load(folder)\n"
        "print(sorted({'torch._dynamo', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    """Any changed byte is refused or changes nothing: never a traceback, never another result."""
    group = AbelianGroup(Chain(Generator(1, "power", [2.0]), abelnet.RationalQuadraticSpline(1, bins=3, bound=7.0)))
    path = abelnet.save(group, tmp_path)
    original = path.read_bytes()
    x = torch.tensor([[0.5], [2.0], [3.0]])
    expected = group.reduce(x)
    generator = random.Random(0)
    refused: list[str] = []
    for _ in range(MUTATIONS):
        mutated = bytearray(original)
        for _ in range(generator.choice([1, 1, 2, 8])):
            kind, place = generator.randrange(4), generator.randrange(len(mutated) or 1)
            if kind == 0 and mutated:
                mutated[place] = generator.randrange(256)
            elif kind == 1:
                del mutated[place : place + generator.randrange(1, 9)]
            elif kind == 2:
                mutated[place:place] = bytes(generator.randrange(256) for _ in range(generator.randrange(1, 9)))
            else:
                mutated = mutated[:place] or mutated
        path.write_bytes(mutated)
        try:
            loaded = abelnet.load(tmp_path)
        except AbelnetError as error:
            refused.append(str(error))
        else:
            assert torch.equal(loaded.reduce(x), expected)
    assert len(refused) > 0.9 * MUTATIONS
    assert not any("\n" in message for message in refused)


@pytest.mark.parametrize("part", ["tensors", "configuration"])
def test_the_checksum_covers_tensors_and_configuration(part: str, tmp_path: Path) -> None:
    path = abelnet.save(AbelianGroup(abelnet.RationalQuadraticSpline(1, bins=3, bound=7.0)), tmp_path)
    content = bytearray(path.read_bytes())
    place = len(content) - 2 if part == "tensors" else content.index(b"7.0")
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(AbelnetError, match="checksum: expected"):
        abelnet.load(tmp_path)


def test_bad_objects(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match=r"model: expected an object with config\(\)"):
        abelnet.save(torch.nn.Linear(1, 1), tmp_path)

    class Nameless(abelnet.Bijection):
        forward = inverse = log_abs_det = lambda self, x: x

    with pytest.raises(AbelnetError, match="expected Nameless to define config"):
        abelnet.save(AbelianGroup(Nameless(1)), tmp_path)
    assert list(tmp_path.iterdir()) == []
