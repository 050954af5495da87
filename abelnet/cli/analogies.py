"""The commands ``abelnet analogies ...``: arguments only; every command is one call into the library."""

from __future__ import annotations

__all__ = ["app", "run_with_progress"]

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from abelnet.errors import AbelnetError
from abelnet.experiments.analogies.experiment import MODELS, AnalogyExperiment, run_analogies
from abelnet.files import read_json
from abelnet.reporting.analogies import analogy_tables, write_analogies
from abelnet.reporting.synthetic import print_table

app = typer.Typer(help="The paper's analogy experiment.", no_args_is_help=True, rich_markup_mode=None)
console = Console()

_Out = Annotated[Path, typer.Option(help="Folder for results and models; a stopped run goes on from there.")]


def run_with_progress(experiment: AnalogyExperiment, folder: Path, jobs: int) -> dict[str, Any]:
    """Runs an experiment, tells which units are done, and shows a progress bar on a terminal."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("training", total=1.0)
        return run_analogies(
            experiment,
            folder,
            jobs=jobs,
            on_unit=lambda text: console.print(f"done: {text}", highlight=False),
            on_progress=lambda part: bar.update(task, completed=part),
        )


@app.command()
def run(
    out: _Out = Path("analogies"),
    vectors: Annotated[Path | None, typer.Option(help="File of word vectors; the embedded ones if not given.")] = None,
    bats: Annotated[
        Path | None, typer.Option(help="Folder of BATS; Google's pairs are split instead if not given.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(MODELS)}; may be repeated; all if not given.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of splits, each with a training of its own.")] = 3,
    seed: Annotated[int, typer.Option(min=0, max=2**62, help="Fixes everything.")] = 0,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of each training; 100 for the paper's models if not given.")
    ] = None,
    trials: Annotated[
        int, typer.Option(min=0, help="Trials of a search of the paper's space; 0 takes what the paper chose.")
    ] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Take the first so many words only.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, of one thread each.")] = os.cpu_count() or 1,
    quick: Annotated[bool, typer.Option("--quick", help="One seed and 5 epochs: a look in minutes.")] = False,
) -> None:
    """Train WV+MLP and WV+AGN on BATS, test on BATS and Google's questions, beside the paper's figures."""
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
    run_with_progress(experiment, out, jobs)
    table(out)


@app.command()
def table(out: _Out = Path("analogies")) -> None:
    """Print all tables of a run that is done, and write them as Markdown and HTML."""
    path = out / "results.json"
    if not path.is_file():
        raise AbelnetError(f"out: expected a folder that abelnet analogies run has finished, got {out}")
    results = read_json(path)
    for found in analogy_tables(results):
        print_table(found, console)
    for written in (path, *write_analogies(results, out)):
        console.print(f"written: {written}", highlight=False, soft_wrap=True)
