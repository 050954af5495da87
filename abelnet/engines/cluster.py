"""Laws applied to tables by a Dask cluster, whose workers read the files themselves; the extra ``dask``."""

from __future__ import annotations

__all__ = ["apply_on_cluster"]

import secrets
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from abelnet.discovery.estimator import LawRegressor, places
from abelnet.engines.applying import Applied, count_results, results_query
from abelnet.engines.columns import Columns
from abelnet.engines.dask import aggregate
from abelnet.engines.database import open_database
from abelnet.engines.sources import Reading, files_of
from abelnet.engines.text import check_header, layout_of
from abelnet.engines.writing import check_out, write_results
from abelnet.errors import AbelnetError, needs_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    import dask.dataframe as dd
    import pandas as pd

_SECONDS_TO_CONNECT = 20
_SETS_OF_A_PARTITION = 200_000  # of results; each partition has to fit in the memory of a worker


def apply_on_cluster(
    model: LawRegressor,
    source: str | Path,
    columns: Columns,
    out: str | Path,
    address: str,
    *,
    table: str = "results",
    sets: int = 1_000_000,
    for_spreadsheets: bool = False,
    reading: Reading | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Applied:
    """Aggregates each set of a table as :func:`~abelnet.engines.applying.apply_law` does, but on a cluster.

    Workers read the files, so that they must see them under the same paths, and must have abelnet installed. Running
    states are merged between workers; this process receives one row per set, and writes the file.

    Arguments:
        model: The fitted model.
        source: A ``.csv``, ``.tsv``, ``.txt`` or ``.jsonl`` file, possibly with ``.gz``, a ``.parquet`` file, a folder
            or a glob pattern of these.
        columns: Columns of the table in long form; ``targets`` are not read.
        out: File to write: CSV, ``.parquet``, or a ``.duckdb`` or ``.sqlite`` database.
        address: Address of the scheduler, such as ``"tcp://10.0.0.1:8786"``.
        table: Name of the table in a database.
        sets: About how many sets there are, which decides into how many partitions states are merged.
        for_spreadsheets: Whether to write an apostrophe before names that a spreadsheet would run as formulas.
        reading: How to read the table; the memory limit is that of the workers.
        on_rows: Called with the number of rows when they are aggregated.

    Returns:
        Numbers of sets.
    """
    if columns.set is None:
        raise AbelnetError("set: expected the column of the sets, got none; a cluster takes tables in long form alone")
    dim = sum(map(len, model.blocks_))
    if columns.dim != dim:
        raise AbelnetError(f"value: expected {dim} columns, one per learned coordinate, got {columns.dim}")
    out, columns = Path(out), Columns(columns.values, columns.set)
    check_out(out, source)
    with _connected(address), _reported(source):
        frame = _frame(files_of(source), columns, reading or Reading())
        found = _results(frame, model, columns, max(1, sets // _SETS_OF_A_PARTITION))
    if not len(found):
        raise AbelnetError(f"{source}: expected at least one row, got none")
    if on_rows is not None:
        on_rows(int(found.pop("rows").sum()))
    with open_database() as database:
        database.add("results", found)
        query = results_query(database, columns, intervals=False)
        write_results(database, query, out, table, for_spreadsheets=for_spreadsheets)
        return count_results(database, dim)


@contextmanager
def _connected(address: str) -> Iterator[None]:
    with needs_extra("dask", "scheduler"):
        from distributed import Client
    try:
        client = Client(address, timeout=_SECONDS_TO_CONNECT)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise AbelnetError(f"scheduler: expected the address of one that runs, got {address}: {error}") from None
    with client:
        yield


@contextmanager
def _reported(source: str | Path) -> Iterator[None]:
    """Turns what pandas says of a table on a worker into one line."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        if isinstance(error, AbelnetError):
            raise
        reason = " ".join(str(error).split())
        raise AbelnetError(
            f"{source}: expected a table that the workers can read, got: {reason:.200}; without --scheduler the place "
            "is named"
        ) from None


def _frame(paths: list[Path], columns: Columns, reading: Reading) -> dd.DataFrame:
    """Returns the rows: sets as text, and their numbers."""
    import dask.dataframe as dd

    assert columns.set is not None
    parts, types = [], {columns.set: "string", **dict.fromkeys(columns.numbers, "float64")}
    for path in paths:
        name = path.name.lower()
        if name.endswith(".parquet"):
            part = dd.read_parquet(path, columns=list(columns.all))
        elif ".jsonl" in name or ".ndjson" in name:
            part = dd.read_json(path, lines=True)
            check_header(path, list(part.columns), columns)
            part = part[list(columns.all)]
        else:
            layout = layout_of(path, columns, reading.delimiter, reading.decimal)
            part = dd.read_csv(
                path,
                sep=layout.delimiter,
                decimal=layout.decimal,
                usecols=list(columns.all),
                dtype=types,
                encoding="utf-8-sig",
                keep_default_na=True,
                blocksize=None if name.endswith(".gz") else "default",
            )
        parts.append(part.astype(types))
    return dd.concat(parts) if len(parts) > 1 else parts[0]


def _results(frame: dd.DataFrame, model: LawRegressor, columns: Columns, split: int) -> pd.DataFrame:
    """Returns the sets ``s``, their results ``y0``, ``y1``, …, whether these are ``strange``, and their rows."""
    import dask
    from dask.dataframe.dispatch import make_meta

    by, numbers = str(columns.set), columns.values
    marked = frame.map_partitions(_Marking(model, columns), meta=make_meta(frame).assign(strange=False, rows=1))
    ends = marked.groupby(by).agg({"strange": "max", "rows": "sum"}, split_out=split)
    folds = [
        aggregate(marked, by, [numbers[i] for i in block], law.operation, split_out=split)
        for law, block in zip(model.laws_, model.blocks_, strict=True)
    ]
    tables: tuple[pd.DataFrame, ...] = dask.compute(ends, *folds)
    found = tables[0].rename_axis(index="s")
    for law, block, table in zip(model.laws_, model.blocks_, tables[1:], strict=True):
        results = torch.from_numpy(table.reindex(found.index).to_numpy(copy=True))
        for i, y in zip(block, results.T, strict=True):
            found[f"y{i}"] = y.numpy()
        for seen, y in zip(law.ranges, results.T, strict=False):
            found["strange"] |= (~seen.covers(y)).numpy()
    return found.reset_index().astype({"strange": bool})


class _Marking:
    """Checks a partition and adds which of its elements are outside the range of the examples."""

    def __init__(self, model: LawRegressor, columns: Columns) -> None:
        self.laws, self.blocks, self.columns = model.laws_, model.blocks_, columns
        self.token = secrets.token_hex()

    def __dask_tokenize__(self) -> str:
        return self.token

    def __call__(self, part: pd.DataFrame) -> pd.DataFrame:
        columns = self.columns
        numbers = part[list(columns.values)].to_numpy(np.float64, copy=True)
        names = part[columns.set]
        if (names.isna() | (names.str.strip() == "")).any():
            raise AbelnetError(f"set: expected the name of a set in column {columns.set} of each row, got none in some")
        if not np.isfinite(numbers).all():
            raise AbelnetError(
                f"value: expected a finite number in each row of columns {', '.join(columns.values)}, got others"
            )
        values, strange = torch.from_numpy(numbers), torch.zeros(len(part), dtype=torch.bool)
        for law, block in zip(self.laws, self.blocks, strict=True):
            law.check_domain(values[:, places(block)], lambda row: f"set {names.iloc[row]}")
            for i, seen in zip(block, law.ranges, strict=False):
                strange |= ~seen.covers(values[:, i])
        return part.assign(strange=strange.numpy(), rows=1)
