"""Command-line interface. Importing it imports neither torch nor numpy: each command imports the library on use."""

from __future__ import annotations

__all__ = ["app", "main"]

import io
import signal
import sys
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

import abelnet
from abelnet.cli import analogies, experiments, explore, laws, terminal, words
from abelnet.cli.help import examples
from abelnet.errors import AbelnetError
from abelnet.reporting.printable import printable

# Exit code of Unix tools whose reader has left: 128 plus SIGPIPE.
_BROKEN_PIPE = 141
# The base class of wrong options and arguments. It is click's, which some versions of typer import and some bundle.
_UsageError: Any = next(base for base in typer.BadParameter.mro() if base.__name__ == "ClickException")

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
app.add_typer(explore.app)
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
    terminal.prepare()
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = app(standalone_mode=False)
    except _UsageError as error:
        _show_usage(error)
        code = error.exit_code
    except AbelnetError as error:
        terminal.say_error(str(error))
        code = 2
    except OSError as error:  # such as a full disk, or a folder that is not writable
        place = "" if error.filename is None else f"{error.filename}: "
        terminal.say_error(f"{place}{error.strerror or error}")
        code = 2
    except _Stopped as stop:
        resumes = sys.argv[1:2] == ["synthetic"] or sys.argv[1:3] == ["analogies", "run"]
        terminal.say_error(f"interrupted{'; run the same command again to resume' if resumes else ''}")
        code = stop.exit_code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    raise SystemExit(code or (_BROKEN_PIPE if terminal.reader_is_gone() else 0))


def _show_usage(error: Any) -> None:
    shown = io.StringIO()
    error.show(shown)
    for line in shown.getvalue().splitlines():
        typer.echo(printable(line), err=True)
