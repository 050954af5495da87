"""Command-line interface. Importing it imports neither torch nor numpy: each command imports the library on use."""

from __future__ import annotations

__all__ = ["app", "main"]

from typing import Annotated

import typer

import abelnet
from abelnet.cli import analogies, experiments, laws, words
from abelnet.cli.help import examples
from abelnet.errors import AbelnetError

app = typer.Typer(
    help="Learn how things combine: commutative, associative operations from examples.",
    epilog=examples(
        "abelnet learn returns.csv --set account --value return --target total --out law",
        "abelnet words ask king man woman",
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(laws.app)
app.add_typer(experiments.app)
app.add_typer(analogies.app, name="analogies")
app.add_typer(words.app, name="words")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"abelnet {abelnet.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line; an ``AbelnetError`` is printed in one line, without a traceback."""
    try:
        app()
    except AbelnetError as error:
        typer.secho(f"abelnet: {' '.join(str(error).splitlines())}", fg="red", err=True)
        raise SystemExit(2) from None
