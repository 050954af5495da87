"""Tables: long and wide, in parts, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

from abelnet import AbelnetError, Multisets
from abelnet.discovery.estimator import LawRegressor
from abelnet.engines import reading, tables
from abelnet.engines.learning import learn_table


def test_wide_form_and_parquet(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    table = generator.uniform(-5, 5, (80, 3))
    table[::3, 2] = np.nan
    columns = {"a": table[:, 0], "b": table[:, 1], "c": table[:, 2], "y": np.nansum(table, 1)}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "wide.parquet")
    model = learn_table(tmp_path / "wide.parquet", tables.Columns(("a", "b", "c"), targets=("y",)))
    assert [law.formula for law in model.laws_] == ["x∘y = x + y"]
    (tmp_path / "wide.csv").write_text("a,b\n1,2\n,3\n,\n")
    applied = tables.apply_law(model, tmp_path / "wide.csv", tables.Columns(("a", "b")), tmp_path / "r.csv")
    assert applied == 3
    assert (tmp_path / "r.csv").read_text().split() == ["row,result", "2,3.0", "3,3.0", "4,0.0"]


def test_vectors(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    lines = ["s,u,v,tu,tv"]
    for i in range(60):
        values = generator.uniform(0.5, 2, (3, 2))
        targets = f"{float(values[:, 0].sum())!r},{float(values[:, 1].max())!r}"
        lines += [f"{i},{float(u)!r},{float(v)!r},{targets}" for u, v in values]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    model = learn_table(tmp_path / "t.csv", tables.Columns(("u", "v"), "s", ("tu", "tv")))
    assert [law.formula for law in model.laws_] == ["x∘y = x + y", "x∘y = max(x, y)"]
    tables.apply_law(model, tmp_path / "t.csv", tables.Columns(("u", "v"), "s"), tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith("s,result_u,result_v\n0,")


def test_in_parts_whatever_the_order(returns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = tables.Columns(("x",), "account", ("y",))
    whole = Multisets.join(list(tables.examples_in(returns, columns)))
    monkeypatch.setattr(reading, "_ROWS", 7)
    parts = list(tables.examples_in(returns, columns))
    assert len(parts) > 10
    joined = Multisets.join(parts)
    assert torch.equal(joined.values, whole.values)
    assert torch.equal(joined.ptr, whole.ptr)
    assert torch.equal(joined.targets, whole.targets)
    lines = returns.read_text().splitlines()
    body = lines[1:]
    np.random.default_rng(0).shuffle(body)
    monkeypatch.setattr(reading, "_ROWS", 1000)
    returns.write_text("\n".join([lines[0], *body]))
    (scattered,) = tables.examples_in(returns, columns)
    assert len(scattered) == len(whole)
    # Each set has all of its elements, and its own result.
    torch.testing.assert_close(scattered.sum((1 + scattered.values).log())[:, 0].expm1(), scattered.targets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a header line"),
        ("s,x\n1,2\n", "expected a column y"),
        ("s,x,y\n1,two,3\n", "line 2: expected a number in column x, got 'two'"),
        ("s,x,y\n1,,3\n1,2,3\n", "1 sets with missing ones, the first 1; use --skip-missing"),
        ("s,x,y\n1,2,3\n1,1,4\n", "expected the same on each row of a set"),
        ("s,x,y\n1,2\n", "line 2: expected 3 cells, got 2"),
    ],
)
def test_bad_tables(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(AbelnetError, match=message):
        list(tables.examples_in(tmp_path / "t.csv", tables.Columns(("x",), "s", ("y",))))


def test_missing_numbers_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("s,x,y\n1,,3\n1,2,3\n2,1,4\n2,3,4\n")
    columns = tables.Columns(("x",), "s", ("y",))
    parts = tables.examples_in(tmp_path / "t.csv", columns, skip_missing=True)
    (part,) = parts
    assert (part.values[:, 0].tolist(), part.ptr.tolist(), part.targets.tolist()) == ([1.0, 3.0], [0, 2], [4.0])


def test_bad_columns(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match="target: expected 2 columns"):
        tables.Columns(("u", "v"), "s", ("t",))
    with pytest.raises(AbelnetError, match=r"no such file: .*missing.csv"):
        tables.read_rows(tmp_path / "missing.csv", tables.Columns(("u",)))
    with pytest.raises(AbelnetError, match="no such file"):
        LawRegressor.load(tmp_path)
