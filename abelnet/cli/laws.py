"""Commands that learn laws from tables and apply them: arguments only."""

from __future__ import annotations

__all__ = ["app"]

from pathlib import Path
from typing import Annotated

import typer

from abelnet.cli import terminal
from abelnet.cli.help import examples

app = typer.Typer(rich_markup_mode=None)

_Set = Annotated[
    str | None,
    typer.Option("--set", help="Column with the multiset of each row; if not given, each row is a multiset."),
]
_Value = Annotated[
    list[str],
    typer.Option("--value", help="Column of numbers, may be repeated: coordinates with --set, elements otherwise."),
]


@app.command(
    epilog=examples(
        "abelnet learn returns.csv --set account --value return --target total --out law",
        "abelnet learn causes.csv --value first --value second --target both --out law",
        "abelnet learn bodies.csv --set id --value m --value x --target M --target X --out law",
    )
)
def learn(
    file: Annotated[Path, typer.Argument(help="Table of examples: .csv, .tsv, .gz of these, or .parquet.")],
    value: _Value,
    target: Annotated[list[str], typer.Option("--target", help="Column of results, one per coordinate.")],
    out: Annotated[Path, typer.Option(help="Output folder for the law and the report.")],
    set_column: _Set = None,
    seed: Annotated[int, typer.Option(min=0, max=2**62, help="Random seed for the held-out examples.")] = 0,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Skip multisets with missing numbers, and rows without a set.")
    ] = False,
    only: Annotated[
        str | None, typer.Option("--only", help="folds or means: search commutative, associative laws alone, or means.")
    ] = None,
) -> None:
    """Learn the law behind a table of examples.

    The law is the aggregation that produces the results: a commutative, associative operation, possibly capped, or a
    mean; as a formula if there is one (symbolic regression), as a trained curve otherwise. With --set, several --value
    columns are coordinates of vectors, such as mass and place, which may mix.
    """
    from abelnet.engines.learning import learn_table
    from abelnet.engines.tables import Columns
    from abelnet.reporting.laws import law_overview, write_law

    columns = Columns(tuple(value), set_column, tuple(target))
    with terminal.status("reading") as update:
        model = learn_table(file, columns, seed=seed, skip_missing=skip_missing, only=only, on_step=update)
    report = write_law(model, out, columns)
    terminal.show(law_overview(model, columns))
    terminal.say_written([out, report])


@app.command(
    epilog=examples(
        "abelnet apply law months.csv --set account --value return --out totals.csv",
        "abelnet apply law months.csv --set account --value return --out totals.csv --intervals",
    )
)
def apply(
    model: Annotated[Path, typer.Argument(help="Folder written by abelnet learn.")],
    file: Annotated[Path, typer.Argument(help="Table to apply the law to: .csv, .tsv, .gz of these, or .parquet.")],
    value: _Value,
    out: Annotated[Path, typer.Option(help="CSV file to write, one row per multiset.")],
    set_column: _Set = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Write the 95 % interval of each result, in columns low and high.")
    ] = False,
    for_spreadsheets: Annotated[
        bool,
        typer.Option("--for-spreadsheets", help="Write an apostrophe before names that spreadsheets run as formulas."),
    ] = False,
) -> None:
    """Aggregate the multisets of a table by a learned law.

    Multisets may have any size, and their rows any order.
    """
    from abelnet.discovery.estimator import LawRegressor
    from abelnet.engines.tables import Columns, apply_law

    rows = 0
    with terminal.status("reading") as update:

        def on_rows(more: int) -> None:
            nonlocal rows
            rows += more
            update(f"aggregating: {rows:,} rows")

        law = LawRegressor.load(model)
        columns = Columns(tuple(value), set_column)
        done = apply_law(
            law, file, columns, out, intervals=intervals, for_spreadsheets=for_spreadsheets, on_rows=on_rows
        )
    terminal.say(f"written: {out}, {done.sets:,} multisets of {rows:,} rows")
    if done.extrapolated:
        terminal.say(
            f"extrapolated: {done.extrapolated:,} of {done.sets:,} multisets, with elements or results outside the "
            "range of the examples; see the column extrapolated"
        )
    if done.without_result:
        terminal.say(f"without a result: {done.without_result:,} multisets, whose cells are empty")
