"""Functions in Python and JavaScript give the results of operations."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases import ELEMENTWISE, VECTOR_CASES
from sql_cases import SCALAR, multisets

from abelnet import AbelianGroup, Operation, Polynomial
from abelnet.engines.code import function_of

CASES: dict[str, tuple[Operation, Any, Any]] = SCALAR | {
    "pooled variance": (AbelianGroup(VECTOR_CASES["pooled_variance"][0](torch.float64)), [1, -3, 0], [20, 3, 9]),
    "phasors": (AbelianGroup(VECTOR_CASES["phasors"][0](torch.float64)), [0.5, -3.1], [3, 3.1]),
    "splines": (Operation(ELEMENTWISE["spline"](torch.float64), Polynomial(0.2)), [-1, -1, -1], [1, 1, 1]),
}


def sets_of(name: str) -> tuple[Operation, list[Any], torch.Tensor]:
    """Returns an operation, sets as plain lists, and their results."""
    operation, low, high = CASES[name]
    sets = multisets(lambda g, n: g.uniform(low, high, (n, operation.dim)), largest=300)
    with torch.no_grad():
        results = operation.reduce([torch.from_numpy(one) for one in sets])
    return operation, [(one[:, 0] if operation.dim == 1 else one).tolist() for one in sets], results


def is_close(found: Any, results: torch.Tensor) -> bool:
    got = np.array(found, dtype=np.float64).reshape(results.shape)
    return np.allclose(got, results.numpy(), rtol=1e-9, atol=1e-15, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_python_functions(name: str) -> None:
    operation, sets, results = sets_of(name)
    names: dict[str, Any] = {}
    exec(function_of([(operation, range(operation.dim))], "python", 'a "name"\n\\'), names)
    assert is_close([names["aggregate"](one) for one in sets], results)
    with pytest.raises(ValueError, match="expected at least one"):
        names["aggregate"]([])


def test_elements_outside_the_domain_raise_and_results_that_do_not_exist_are_nan() -> None:
    names: dict[str, Any] = {}
    exec(function_of([(SCALAR["odds"][0], [0])], "python", ""), names)
    with pytest.raises(ValueError, match=r"elements: expected .*, got 1\.5"):
        names["aggregate"]([0.5, 1.5])
    short = Operation(SCALAR["capped norm"][0].bijection, Polynomial(0.0, -1.0))
    exec(function_of([(short, [0])], "python", ""), names)
    assert math.isnan(names["aggregate"]([0.1, 0.2]))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_javascript_functions(tmp_path: Path) -> None:
    cases, expected = [], {}
    for i, name in enumerate(CASES):
        operation, sets, results = sets_of(name)
        code = function_of([(operation, range(operation.dim))], "javascript", "a */ name")
        (tmp_path / f"law{i}.mjs").write_text(code, encoding="utf-8")
        cases.append(sets)
        expected[name] = results
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    lines = ['import fs from "fs";', 'const cases = JSON.parse(fs.readFileSync("cases.json"));', "const found = [];"]
    lines += [f'found.push(cases[{i}].map((await import("./law{i}.mjs")).aggregate));' for i in range(len(cases))]
    (tmp_path / "run.mjs").write_text("\n".join([*lines, "console.log(JSON.stringify(found));"]))
    done = subprocess.run(["node", "run.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    for (name, results), found in zip(expected.items(), json.loads(done.stdout), strict=True):
        assert is_close(found, results), name
