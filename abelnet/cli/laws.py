"""Commands that learn laws from tables and apply them: arguments only."""

from __future__ import annotations

__all__ = ["app"]

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abelnet.cli import terminal
from abelnet.cli.help import Seed, completing, examples, listed
from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from abelnet.discovery.estimator import LawRegressor

app = typer.Typer(rich_markup_mode=None)

_FORMATS = ("sql", "python", "javascript", "latex", "onnx")
_DIALECTS = ("duckdb", "postgres", "sqlite", "datafusion", "polars", "clickhouse", "spark")

_Set = Annotated[
    str | None,
    typer.Option("--set", help="Column with the multiset of each row; if not given, each row is a multiset."),
]
_Value = Annotated[
    list[str],
    typer.Option("--value", help="Column of numbers, may be repeated: coordinates with --set, elements otherwise."),
]

_Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", help="Character between the cells of CSV; found in the header if not given."),
]
_Decimal = Annotated[
    str | None, typer.Option("--decimal", help="Separator of decimals in CSV, . or , ; found in the rows if not given.")
]
_MemoryLimit = Annotated[
    str | None,
    typer.Option("--memory-limit", help="Memory for the table, such as 2GB; the rest goes to temporary files."),
]


@app.command(
    epilog=examples(
        "abelnet learn returns.csv --set account --value return \\\n    --target total --out law",
        "abelnet learn causes.csv --value a --value b --target both --out law",
        "abelnet learn bodies.csv --set id --value m --value x \\\n    --target M --target X --out law",
    )
)
def learn(
    file: Annotated[
        Path,
        typer.Argument(help="Table: .csv, .tsv, .jsonl, .gz of these, .parquet, a folder or a pattern."),
    ],
    value: _Value,
    target: Annotated[list[str], typer.Option("--target", help="Column of results, one per coordinate.")],
    out: Annotated[Path, typer.Option(help="Output folder for the law and the report.")],
    set_column: _Set = None,
    seed: Seed = 0,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Skip multisets with missing numbers or names.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            help="folds or means: search commutative, associative laws alone, or means.",
            autocompletion=completing(("folds", "means")),
        ),
    ] = None,
    delimiter: _Delimiter = None,
    decimal: _Decimal = None,
    memory_limit: _MemoryLimit = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show all evidence for the law, or against any.")] = False,
) -> None:
    """Learn the law behind a table of examples.

    The law is the aggregation that produces the results: a commutative, associative operation, possibly capped, or a
    mean; as a formula if there is one, as a curve otherwise. With --set, several --value columns are coordinates of
    vectors, such as mass and place, which may mix.
    """
    from abelnet.engines.columns import Columns
    from abelnet.engines.learning import learn_table
    from abelnet.engines.sources import Reading

    columns = Columns(tuple(value), set_column, tuple(target))
    reading = Reading(delimiter, decimal, memory_limit, apart=True)
    try:
        with terminal.status("reading") as update:
            model = learn_table(
                file, columns, seed=seed, skip_missing=skip_missing, only=only, reading=reading, on_step=update
            )
    except AbelnetError as error:
        if error.details and not verbose:
            raise AbelnetError(f"{error}; --verbose shows the evidence") from error
        raise
    # Here, because these import PyTorch, which is not to be in memory with the database.
    from abelnet.reporting.laws import law_overview, write_law

    report = write_law(model, out, columns, str(file))
    terminal.show(law_overview(model, columns, full=verbose))
    terminal.say_written([out, report])


@app.command(
    epilog=examples(
        "abelnet apply law months.csv --set account --value return --out totals.csv",
        "abelnet apply law 'months/*.parquet' --set account --value return \\\n    --out bank.duckdb --table totals",
    )
)
def apply(
    model: Annotated[Path, typer.Argument(help="Folder written by abelnet learn.")],
    file: Annotated[
        Path,
        typer.Argument(help="Table: .csv, .tsv, .jsonl, .gz of these, .parquet, a folder or a pattern."),
    ],
    value: _Value,
    out: Annotated[
        Path, typer.Option(help="File to write, one row per multiset: CSV, .parquet, or a .duckdb or .sqlite database.")
    ],
    set_column: _Set = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Write the 95 % interval of each result, in columns low and high.")
    ] = False,
    for_spreadsheets: Annotated[
        bool,
        typer.Option("--for-spreadsheets", help="Write an apostrophe before names that spreadsheets run as formulas."),
    ] = False,
    table: Annotated[str, typer.Option("--table", help="Table to write in a database; it is replaced.")] = "results",
    delimiter: _Delimiter = None,
    decimal: _Decimal = None,
    memory_limit: _MemoryLimit = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", help="Address of a Dask scheduler; its workers read the files and aggregate."),
    ] = None,
) -> None:
    """Aggregate the multisets of a table by a learned law.

    Multisets may have any size, and their rows any order. Results are sorted by the names of the multisets.
    """
    rows = 0
    with terminal.status("reading") as update:
        from abelnet.discovery.estimator import LawRegressor
        from abelnet.engines.applying import apply_law
        from abelnet.engines.columns import Columns
        from abelnet.engines.sources import Reading

        def on_rows(more: int) -> None:
            nonlocal rows
            rows += more
            update(f"aggregating: {rows:,} rows")

        law, columns = LawRegressor.load(model), Columns(tuple(value), set_column)
        reading = Reading(delimiter, decimal, memory_limit, apart=True)
        if scheduler is None:
            done = apply_law(
                law,
                file,
                columns,
                out,
                table=table,
                intervals=intervals,
                for_spreadsheets=for_spreadsheets,
                reading=reading,
                on_rows=on_rows,
            )
        elif intervals or memory_limit is not None:
            raise AbelnetError("scheduler: expected neither --intervals nor --memory-limit beside it, got one of them")
        else:
            from abelnet.engines.cluster import apply_on_cluster

            done = apply_on_cluster(
                law,
                file,
                columns,
                out,
                scheduler,
                table=table,
                for_spreadsheets=for_spreadsheets,
                reading=reading,
                on_rows=on_rows,
            )
    terminal.say(f"written: {out}, {done.sets:,} multisets of {rows:,} rows")
    if done.extrapolated:
        terminal.say(
            f"extrapolated: {done.extrapolated:,} of {done.sets:,} multisets, with elements or results outside the "
            "range of the examples; see the column extrapolated"
        )
    if done.without_result:
        terminal.say(f"without a result: {done.without_result:,} multisets, whose cells are empty")


@app.command(
    epilog=examples(
        "abelnet export law --to sql --dialect postgres --table months \\\n    --set account --value return",
        "abelnet export law --to python --out law.py",
    )
)
def export(
    model: Annotated[Path, typer.Argument(help="Folder written by abelnet learn.")],
    to: Annotated[str, typer.Option("--to", help=f"{listed(_FORMATS)}.", autocompletion=completing(_FORMATS))],
    table: Annotated[str, typer.Option("--table", help="SQL: name of the table.")] = "elements",
    set_columns: Annotated[
        list[str] | None,
        typer.Option("--set", help="SQL: column with the multiset of each row, may be repeated; else one multiset."),
    ] = None,
    value: Annotated[
        list[str] | None, typer.Option("--value", help="SQL: column of numbers, one per coordinate; else value.")
    ] = None,
    dialect: Annotated[
        str,
        typer.Option("--dialect", help=f"SQL: {listed(_DIALECTS)}.", autocompletion=completing(_DIALECTS)),
    ] = "duckdb",
    out: Annotated[Path | None, typer.Option(help="File to write; else the text is printed.")] = None,
) -> None:
    """Export a learned law, to run where the data are.

    SQL is one query with native aggregates, for tables in databases and data frames; Python and JavaScript are a
    function without dependencies; ONNX is a model for its runtimes.
    """
    with terminal.status("loading"):
        from abelnet.discovery.estimator import LawRegressor
        from abelnet.engines.export import export_law
        from abelnet.files import write_text
        from abelnet.sql import DIALECTS

        law = LawRegressor.load(model)
    if to == "onnx":
        _export_onnx(law, out)
        return
    text = export_law(law, to, table=table, set=set_columns or (), value=value or (), dialect=dialect)
    if to == "sql" and DIALECTS[dialect].needs:
        typer.echo(f"{dialect} needs {DIALECTS[dialect].needs}", err=True)
    if out is None:
        for line in text.splitlines():
            terminal.say(line)
    else:
        write_text(out, text + "\n")
        terminal.say_written([out])


def _export_onnx(law: LawRegressor, out: Path | None) -> None:
    if out is None or len(law.laws_) != 1:
        got = "none" if out is None else f"{len(law.laws_)} laws"
        raise AbelnetError(f"out: expected a file to write, and a model of one law, for onnx, got {got}")
    from abelnet.integrations.onnx import export_onnx

    with terminal.status("exporting"):
        export_onnx(law.laws_[0].operation, out)
    terminal.say_written([out])
