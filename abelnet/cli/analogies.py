"""Commands ``abelnet analogies ...``: arguments only."""

from __future__ import annotations

__all__ = ["app"]

import os
from pathlib import Path
from typing import Annotated

import typer

from abelnet.cli import terminal
from abelnet.cli.help import METHODS, Seed, completing, examples, listed

app = typer.Typer(
    help="The paper's analogy experiment.",
    epilog=examples("abelnet analogies run --quick"),
    no_args_is_help=True,
    rich_markup_mode=None,
)

_MODELS = ("wv", "wv_mlp", "wv_agn", "anchored", "anchored_80", "several", "several_80", "ensemble", "ensemble_80")
_Out = Annotated[Path, typer.Option(help="Output folder for results and models; an interrupted run resumes from it.")]


@app.command(
    epilog=examples("abelnet analogies run --quick", "abelnet analogies run --vectors GoogleNews.bin --bats BATS_3.0")
)
def run(
    out: _Out = Path("analogies"),
    vectors: Annotated[Path | None, typer.Option(help="Word vector file; the bundled vectors by default.")] = None,
    bats: Annotated[Path | None, typer.Option(help="BATS folder; by default the Google pairs are split.")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help=f"{listed(_MODELS)}; may be repeated; all by default.", autocompletion=completing(_MODELS)),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of splits, each with its own training run.")] = 3,
    seed: Seed = 0,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Number of training epochs; 100 for the paper's models by default.")
    ] = None,
    trials: Annotated[
        int, typer.Option(min=0, help="Trials of a search of the paper's space; 0 uses the paper's choice.")
    ] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of words, most frequent first.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of single-threaded processes.")] = os.cpu_count() or 1,
    quick: Annotated[bool, typer.Option("--quick", help="1 seed and 5 epochs: a smoke test, not a result.")] = False,
) -> None:
    """Train and test the analogy models.

    Trains WV+MLP and WV+AGN on BATS, tests them on BATS and the Google test set, and compares with the paper.
    """
    with terminal.status("loading"):
        from abelnet.experiments.analogies.experiment import MODELS, AnalogyExperiment, run_analogies

    experiment = AnalogyExperiment(
        vectors=None if vectors is None else str(vectors.resolve()),
        bats=None if bats is None else str(bats.resolve()),
        models=tuple(model or MODELS),
        seeds=1 if quick else seeds,
        seed=seed,
        epochs=5 if quick else epochs,
        trials=trials,
        limit=limit,
    )
    with terminal.progress("training") as on_progress:
        run_analogies(
            experiment,
            out,
            jobs=jobs,
            on_unit=lambda text: terminal.say(f"done: {text}"),
            on_progress=on_progress,
        )
    table(out)


@app.command(epilog=examples("abelnet analogies table --out analogies"))
def table(out: _Out = Path("analogies")) -> None:
    """Show the tables of a finished run.

    Also writes them as Markdown and HTML.
    """
    with terminal.status("loading"):
        from abelnet.experiments.analogies.experiment import read_analogies
        from abelnet.reporting.analogies import analogy_report
        from abelnet.reporting.writing import write_report

        report = analogy_report(read_analogies(out))
        written = write_report(report, out, "tables")
    terminal.show(report)
    terminal.say_written(written)


@app.command(
    epilog=examples("abelnet analogies several --out analogies", "abelnet analogies several --shots 5 --method joined")
)
def several(
    out: _Out = Path("analogies"),
    shots: Annotated[
        list[str] | None,
        typer.Option(help="Number of example pairs, or all; may be repeated; 1, 5 and all by default."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{listed(METHODS)}; may be repeated; 3cosavg, lrcos, weighted, joined and spelled by default.",
            autocompletion=completing(METHODS),
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of single-threaded processes.")] = os.cpu_count() or 1,
) -> None:
    """Complete words from several example pairs.

    Tests the trained models of a finished run, and plain vectors, on the test pairs of each split from its other pairs;
    with BATS also on Google's pairs, each from others of its relation.
    """
    with terminal.status("loading"):
        from abelnet.experiments.analogies.completions import Completions, run_completions
        from abelnet.reporting.analogies import completion_report
        from abelnet.reporting.writing import write_report

    given = {"shots": shots, "methods": method}
    completions = Completions(**{name: tuple(dict.fromkeys(values)) for name, values in given.items() if values})
    with terminal.progress("answering") as on_progress:
        results = run_completions(
            out,
            completions,
            jobs=jobs,
            on_unit=lambda text: terminal.say(f"done: {text}"),
            on_progress=on_progress,
        )
    report = completion_report(results)
    written = write_report(report, out, "several")
    terminal.show(report)
    terminal.say_written(written)
