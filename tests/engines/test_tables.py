"""Tables: long and wide, in parts, and what is wrong with them."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from awkward_tables import CASES, Case, read_sums, sum_model

from abelnet import (
    AbelianGroup,
    AbelnetError,
    ExtrapolationWarning,
    Generator,
    Maximum,
    Multisets,
    Operation,
    Sum,
    cli,
)
from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.intervals import Ensemble
from abelnet.discovery.report import LearnedLaw
from abelnet.engines import tables
from abelnet.engines.applying import apply_law
from abelnet.engines.columns import Columns
from abelnet.engines.learning import learn_table
from abelnet.engines.reading import open_table
from abelnet.engines.sources import Reading

ROOT = Path(__file__).parent.parent.parent


def test_wide_form_and_parquet(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    table = generator.uniform(-5, 5, (80, 3))
    table[::3, 2] = np.nan
    columns = {"a": table[:, 0], "b": table[:, 1], "c": table[:, 2], "y": np.nansum(table, 1)}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "wide.parquet")
    model = learn_table(tmp_path / "wide.parquet", Columns(("a", "b", "c"), targets=("y",)))
    assert [law.formula for law in model.laws_] == ["x∘y = x + y"]
    (tmp_path / "wide.csv").write_text("a,b\n1,2\n,3\n,\n")
    applied = apply_law(model, tmp_path / "wide.csv", Columns(("a", "b")), tmp_path / "r.csv")
    assert applied.sets == 3
    assert (tmp_path / "r.csv").read_text().split() == ["row,result,extrapolated", "2,3.0,no", "3,3.0,no", "4,0.0,no"]


@pytest.mark.skipif(duckdb.__version__ < "2", reason="DuckDB has no limit for queries")
def test_a_query_may_have_most_of_the_memory(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("s,x\na,1\n")
    with open_table(tmp_path / "t.csv", Columns(("x",), "s"), Reading(memory_limit="1GiB")) as table:
        assert str(table.database.run("SELECT current_setting('operator_memory_limit')")[0][0]).startswith("614.")


def test_too_little_memory_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("s,x\n" + "a,1\n" * 100)
    for limit in ("1KB", "10KB", "1MB"):
        with pytest.raises(AbelnetError, match="memory-limit: expected"):
            apply_law(
                sum_model(),
                tmp_path / "t.csv",
                Columns(("x",), "s"),
                tmp_path / "r.csv",
                reading=Reading(memory_limit=limit),
            )


def test_vectors(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    lines = ["s,u,v,tu,tv"]
    for i in range(60):
        values = generator.uniform(0.5, 2, (3, 2))
        targets = f"{float(values[:, 0].sum())!r},{float(values[:, 1].max())!r}"
        lines += [f"{i},{float(u)!r},{float(v)!r},{targets}" for u, v in values]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    model = learn_table(tmp_path / "t.csv", Columns(("u", "v"), "s", ("tu", "tv")))
    assert [law.formula for law in model.laws_] == ["x∘y = x + y", "x∘y = max(x, y)"]
    apply_law(model, tmp_path / "t.csv", Columns(("u", "v"), "s"), tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith("s,result_u,result_v,extrapolated\n0,")


@pytest.mark.parametrize("names", [["a", "b", "c", "é"], ["-2", "3", "10", "x", "y"], [-2, 3, 10, 1000]])
def test_results_are_in_the_order_of_names(names: list[str] | list[int], tmp_path: Path) -> None:
    """Numbers as such, before other names; in a column of numbers and in one of text."""
    table = pa.table({"s": names[::-1], "x": [1.0] * len(names)})
    apply_law(sum_model(), table, Columns(("x",), "s"), tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(encoding="utf-8") as file:
        assert [row["s"] for row in csv.DictReader(file)] == list(map(str, names))


def test_in_parts_whatever_the_order(returns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = Columns(("x",), "account", ("y",))
    whole = Multisets.join(list(tables.examples_in(returns, columns)))
    monkeypatch.setattr(tables, "_ROWS", 7)
    parts = list(tables.examples_in(returns, columns))
    assert len(parts) > 10
    joined = Multisets.join(parts)
    assert torch.equal(joined.values, whole.values)
    assert torch.equal(joined.ptr, whole.ptr)
    assert torch.equal(joined.targets, whole.targets)
    lines = returns.read_text().splitlines()
    body = lines[1:]
    np.random.default_rng(0).shuffle(body)
    monkeypatch.setattr(tables, "_ROWS", 1000)
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
        ("s,x,y\n1,2,3\n1,1e400,3\n", "line 3: expected a finite number in column x of set 1, got 1e400"),
        ("s,x,y\n1,2,-inf\n", "line 2: expected a finite number in column y of set 1, got -inf"),
        ('s,x,y\n"1\n\n1",2,3\n1,two,3\n', "line 5: expected a number in column x, got 'two'"),
        ("s,x,y,x\n1,2,3,4\n", "expected one column x, got several of that name"),
    ],
)
def test_bad_tables(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(AbelnetError, match=message):
        list(tables.examples_in(tmp_path / "t.csv", Columns(("x",), "s", ("y",))))


def test_missing_numbers_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("s,x,y\n1,,3\n1,2,3\n2,1,4\n2,3,4\n")
    columns = Columns(("x",), "s", ("y",))
    parts = tables.examples_in(tmp_path / "t.csv", columns, skip_missing=True)
    (part,) = parts
    assert (part.values[:, 0].tolist(), part.ptr.tolist(), part.targets.tolist()) == ([1.0, 3.0], [0, 2], [4.0])


def test_bad_columns(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match="target: expected 2 columns"):
        Columns(("u", "v"), "s", ("t",))
    for twice in (("u", "u"), None, ()), (("u", "v"), None, ("u",)), (("u",), "u", ()):
        with pytest.raises(AbelnetError, match="value, target, set: expected different columns, got u twice"):
            Columns(*twice)
    with pytest.raises(AbelnetError, match=r"no such file: .*missing.csv"):
        list(tables.examples_in(tmp_path / "missing.csv", Columns(("u",))))
    with pytest.raises(AbelnetError, match="no such file"):
        LawRegressor.load(tmp_path)


def fitted(operation: Operation) -> LawRegressor:
    """A model with a law that needs no examples."""
    law = LearnedLaw(operation, "a law", 0.0, 1.0)
    return LawRegressor.from_config(LawRegressor().get_params() | {"flat": True, "laws": [law]})


SUM = Operation(Generator(1, "affine", dtype=torch.float64), Sum())
MAXIMUM = Operation(Generator(1, "affine", dtype=torch.float64), Maximum())


def applied(operation: Operation, path: Path, columns: Columns, **options: bool) -> list[list[str]]:
    out = path.with_name("results.csv")
    apply_law(fitted(operation), path, columns, out, **options)
    return list(csv.reader(out.read_text(encoding="utf-8").splitlines()))


def test_a_row_without_numbers_is_the_identity_or_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('note,a,b\n"two\nlines",1,2\n,,\n,3,\n')
    columns = Columns(("a", "b"))
    assert [row[:2] for row in applied(SUM, path, columns)] == [
        ["row", "result"],
        ["2", "3.0"],
        ["4", "0.0"],
        ["5", "3.0"],
    ]
    (tmp_path / "results.csv").unlink()
    with pytest.raises(
        AbelnetError, match=r"t\.csv, line 4: expected at least one element, since x∘y = max\(x, y\) has"
    ):
        applied(MAXIMUM, path, columns)
    parallel = Operation(Generator(1, "power", [-1.0], dtype=torch.float64), Sum())  # its identity is infinite
    with pytest.raises(AbelnetError, match=r"line 4: expected at least one element"):
        applied(parallel, path, columns)
    assert not (tmp_path / "results.csv").exists()


def test_table_and_law_are_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("not a table")
    (tmp_path / "link.csv").symlink_to(path)
    for out in (path, tmp_path / "link.csv", tmp_path / "." / "t.csv"):
        with pytest.raises(AbelnetError, match="out: expected another file than the table"):
            apply_law(fitted(SUM), path, Columns(("x",)), out)
    with pytest.raises(AbelnetError, match="out: expected a file to write, got the folder"):
        apply_law(fitted(SUM), path, Columns(("x",)), tmp_path)
    with pytest.raises(AbelnetError, match=r"out: expected a CSV file to write, got .*, the name of a saved model"):
        apply_law(fitted(SUM), path, Columns(("x",)), tmp_path / "model.safetensors")
    assert path.read_text() == "not a table"


def test_formulas_are_text_for_spreadsheets(tmp_path: Path) -> None:
    names = ["=cmd()", "+1", "-1", "@sum", "\tx", "plain", "a=b", "'="]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["=s,x", *(f"{name},1" for name in names)]))
    columns = Columns(("x",), "=s")
    title, *found = [row[0] for row in applied(SUM, path, columns)]
    assert (title, sorted(found)) == ("=s", sorted(names))
    title, *found = [row[0] for row in applied(SUM, path, columns, for_spreadsheets=True)]
    assert (title, sorted(found)) == ("'=s", sorted(["'=cmd()", "'+1", "'-1", "'@sum", "'\tx", "plain", "a=b", "'="]))


def test_a_result_that_is_no_number_is_an_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,x\na,1\nb,1e308\nb,1e308\n")
    columns = Columns(("x",), "s")
    assert applied(SUM, path, columns)[1:] == [["a", "1.0", "no"], ["b", "", "no"]]
    assert apply_law(fitted(SUM), path, columns, tmp_path / "r.csv") == (2, 0, 1)


def test_what_is_extrapolated_is_marked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,x\na,1\na,2\nb,5\nb,6\nc,9\nd,3\nd,-1\n")
    model = LawRegressor().fit([[1, 2], [2, 2], [3, 1], [2, 3], [4, 1]], [3, 4, 4, 5, 5])
    done = apply_law(model, path, Columns(("x",), "s"), tmp_path / "r.csv")
    # A result out of range, an element out of range, and an element out of range with a result in it.
    assert [row.split(",")[2] for row in (tmp_path / "r.csv").read_text().split()] == [
        "extrapolated",
        "no",
        "yes",
        "yes",
        "yes",
    ]
    assert done == (4, 3, 0)
    with pytest.warns(
        ExtrapolationWarning, match=r"predict: 1 of 2 sets .* outside the range of the examples \(1 to 5\)"
    ):
        model.predict([[1, 2], [5, 6]])


def test_intervals_are_those_of_predict(tmp_path: Path) -> None:
    def norm(p: float) -> Operation:
        return AbelianGroup(Generator(1, "positive power", [p], dtype=torch.float64))

    path, out = tmp_path / "t.csv", tmp_path / "r.csv"
    path.write_text("s,u,v\na,3,1\nb,1,1\na,4,1\na,1,2\n")  # rows of a set anywhere
    ensembles = [Ensemble([norm(1.9), norm(2.1)], [0.5, 0.5], 9), Ensemble([norm(1.0)], [1.0], 9)]
    laws = [LearnedLaw(norm(p), "law", 0.0, 1.0, ensemble=one) for p, one in zip((2.0, 1.0), ensembles, strict=True)]
    model = LawRegressor.from_config(LawRegressor().get_params() | {"flat": False, "laws": laws})
    assert apply_law(model, path, Columns(("u", "v"), "s"), out, intervals=True) == (2, 0, 0)
    head, *rows = csv.reader(out.read_text().splitlines())
    assert head == ["s", "result_u", "low_u", "high_u", "result_v", "low_v", "high_v", "extrapolated"]
    low, high = model.predict_interval([[[3.0, 1.0], [4.0, 1.0], [1.0, 2.0]], [[1.0, 1.0]]])
    found = np.array([[float(cell) for cell in row[1:-1]] for row in rows])
    np.testing.assert_allclose(found[:, [1, 4]], low)
    np.testing.assert_allclose(found[:, [2, 5]], high)
    assert found[0, 1] < found[0, 0] < found[0, 2]
    with pytest.raises(AbelnetError, match="law: expected one that was learned with intervals, got one without"):
        apply_law(fitted(SUM), path, Columns(("u",), "s"), out, intervals=True)


def test_an_element_outside_the_domain_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,x\na,3\nb,3\nb,-4\n")
    norm = AbelianGroup(Generator(1, "positive power", [2.0], dtype=torch.float64))
    with pytest.raises(
        AbelnetError, match=r"t\.csv, line 4, set b: expected an element of the domain of the law, x ≥ 0, got -4"
    ):
        applied(norm, path, Columns(("x",), "s"))


def test_a_missing_number_is_named_by_line_and_set(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('s,x\n"a\nb",1\nc,\n')
    with pytest.raises(AbelnetError, match=r"t\.csv, line 4: expected a number in each column, got none in set c"):
        applied(SUM, path, Columns(("x",), "s"))


def test_rows_without_a_set_are_skipped_in_learning_if_asked(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("s,x,y\n1,2,3\n,7,8\n 	,7,8\n1,1,3\n")
    columns = Columns(("x",), "s", ("y",))
    with pytest.raises(AbelnetError, match="line 3: expected the name of a set in column s, got none"):
        list(tables.examples_in(tmp_path / "t.csv", columns))
    (part,) = tables.examples_in(tmp_path / "t.csv", columns, skip_missing=True)
    assert (part.values[:, 0].tolist(), part.ptr.tolist(), part.targets.tolist()) == ([2.0, 1.0], [0, 2], [3.0])


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model of the sum."""
    folder = tmp_path_factory.mktemp("sum")
    sum_model().save(folder)
    return folder


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_awkward_tables(
    case: Case, sums: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = case.write(tmp_path), tmp_path / "sums.out"
    options = ["--set", "s", "--value", "x", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["abelnet", "apply", str(sums), str(path), *options])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    shown = capsys.readouterr()
    if isinstance(case.expected, dict):
        assert (stop.value.code, shown.err) == (0, "")
        assert read_sums(out) == case.expected
    else:
        assert (stop.value.code, shown.out, out.exists()) == (2, "", False)
        assert shown.err.startswith("abelnet: ")
        assert shown.err.count("\n") == 1
        assert case.expected in shown.err
        assert len(shown.err) < 600
    # Learning reads the same sets, or refuses the table for the same reason.
    columns = Columns(("x",), "s")
    try:
        examples = list(tables.examples_in(path, columns))
    except AbelnetError:
        assert isinstance(case.expected, str)
    else:
        found = [x for part in examples for x in part.sum(part.values)[:, 0].tolist()]
        if isinstance(case.expected, dict):
            assert sorted(found) == sorted(case.expected.values())
        else:
            assert not found  # nothing to learn from is found later


def test_a_table_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,x\na,1\n")
    path.chmod(0)
    try:
        path.read_bytes()
    except PermissionError:
        with pytest.raises(AbelnetError, match=r"t\.csv: expected a readable file, got: Permission denied"):
            applied(SUM, path, Columns(("x",), "s"))
    else:  # the superuser may read everything
        assert applied(SUM, path, Columns(("x",), "s")) == [["s", "result", "extrapolated"], ["a", "1.0", "no"]]


def test_a_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,x\na,1\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(AbelnetError, match=r"t\.csv: expected a readable file, got: Permission denied"):
        list(tables.examples_in(path, Columns(("x",), "s")))


def test_names_of_awkward_tables_differ() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60


def test_the_listing_is_current() -> None:
    spec = importlib.util.spec_from_file_location("list_tables", ROOT / "tools" / "list_tables.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run python tools/list_tables.py"


def test_only_the_last_rows_are_scattered(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("s,x,y\na,1,3\nb,5,5\na,2,3\n")
    (part,) = tables.examples_in(tmp_path / "t.csv", Columns(("x",), "s", ("y",)))
    assert (part.values[:, 0].tolist(), part.ptr.tolist(), part.targets.tolist()) == (
        [1.0, 2.0, 5.0],
        [0, 2, 3],
        [3.0, 5.0],
    )
