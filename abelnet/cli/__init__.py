"""Command-line interface. Importing it imports neither torch nor numpy: each command imports the library on use."""

from __future__ import annotations

__all__ = ["app", "main"]

import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn

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


class _Stopped(BaseException):
    """Raised by a signal that asks this process to end; no handler of exceptions takes it for an error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number  # as shells report it


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)  # the second one ends the process at once
    raise _Stopped(number)


def main() -> None:
    """Runs the command line; errors, full disks and Ctrl-C are printed in one line, without a traceback."""
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        app()
    except AbelnetError as error:
        _fail(str(error), 2)
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        _fail(f"{place}{error.strerror or error}", 2)
    except _Stopped as stop:
        resumes = sys.argv[1:2] == ["synthetic"] or sys.argv[1:3] == ["analogies", "run"]
        _fail(f"interrupted{'; run the same command again to resume' if resumes else ''}", stop.exit_code)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _fail(message: str, exit_code: int) -> NoReturn:
    typer.secho(f"abelnet: {' '.join(message.splitlines())}", fg="red", err=True)
    raise SystemExit(exit_code) from None
