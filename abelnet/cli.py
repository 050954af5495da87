"""The command line: arguments only; every command is one call into the library."""

from __future__ import annotations

__all__ = ["app", "main"]

import os
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import abelnet
from abelnet.errors import AbelnetError
from abelnet.experiments import comparison, report, synthetic

app = typer.Typer(
    help="Learn how things combine: commutative, associative operations from examples.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
console = Console()


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"abelnet {abelnet.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Learn how things combine: commutative, associative operations from examples."""


@app.command()
def reproduce(
    seed: Annotated[int, typer.Option(min=0, max=2**62, help="Fixes the data.")] = 0,
    steps: Annotated[int, typer.Option(min=1, help="Training steps for each operation.")] = 2000,
) -> None:
    """Learn the paper's five operations from multisets of 2-4 numbers, then apply them to 10-12."""
    title = f"Learned from 500 multisets of 2–4 numbers, seed {seed}, {steps} steps"
    table = Table(title=title, box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("operation", no_wrap=True)
    table.add_column("law", no_wrap=True)
    for heading in ("2–4", "10–12", "assoc.", "comm.", "ident.", "inv."):
        table.add_column(heading, justify="right", no_wrap=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("training", total=steps * len(synthetic.OPERATIONS))
        for name, truth in synthetic.OPERATIONS.items():
            learned = synthetic.learn(name, seed=seed, steps=steps, on_step=lambda: progress.advance(task))
            defects = learned.defects
            table.add_row(
                truth.formula,
                "group" if truth.is_group else "semigroup",
                f"{learned.small:.1e}",
                f"{learned.large:.1e}",
                *(
                    f"{defect.relative:.0e}" if defect else "–"
                    for defect in (defects.associativity, defects.commutativity, defects.identity, defects.inverse)
                ),
            )
    console.print(table)
    console.print("2–4, 10–12: RMSE on test multisets of that size, numbers from [−5, 5].")
    console.print("assoc. to inv.: largest relative defect of each law over 1000 samples.")


@app.command(name="synthetic")
def synthetic_command(
    out: Annotated[Path, typer.Option(help="Folder for results; a stopped run goes on from there.")] = Path("results"),
    op: Annotated[list[str] | None, typer.Option(help="Operation, may be repeated; all of them if not given.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="deepsets, agn or asn, may be repeated; all if not.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials of each search.")] = 50,
    seeds: Annotated[int, typer.Option(min=1, help="Fresh seeds for the tuned models.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each training.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, max=2**62, help="Fixes everything.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, of one thread each.")] = os.cpu_count() or 1,
    prune: Annotated[bool, typer.Option("--prune", help="Give up the worse half of each search early.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="4 trials, 2 seeds and 30 epochs: a look in a minute.")
    ] = False,
) -> None:
    """Run the paper's synthetic experiment: tune DeepSets, AGN and ASN, train on 2-4 numbers, test on 10-12."""
    if quick:
        trials, seeds, epochs = 4, 2, 30
    experiment = comparison.Experiment(
        operations=tuple(op or synthetic.OPERATIONS),
        models=tuple(model or comparison.MODELS),
        trials=trials,
        batch=min(25, max(1, trials // 2)),
        seeds=seeds,
        epochs=epochs,
        seed=seed,
        prune=prune,
    )
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("training", total=1.0)

        def on_unit(operation: str, name: str) -> None:
            console.print(f"done: {name} on {synthetic.OPERATIONS[operation].formula}", highlight=False)

        def on_progress(part: float) -> None:
            progress.update(task, completed=part)

        results = comparison.run(experiment, out, jobs=jobs, on_unit=on_unit, on_progress=on_progress)
    heading, rows = report.synthetic_table(results)
    table = Table(title="RMSE, median (range) over seeds, beside the paper's", box=box.SIMPLE, padding=(0, 1, 0, 0))
    for text in heading:
        table.add_column(text, no_wrap=True)
    for row in rows:
        table.add_row(*(f"[bold]{text}[/bold]" if best else text for text, best in row))
    Console(width=None if console.is_terminal else 180).print(table, highlight=False)
    for path in report.write_synthetic(results, out):
        console.print(f"written: {path}", highlight=False)


def main() -> None:
    """Runs the command line; what a caller got wrong is one line, not a traceback."""
    try:
        app()
    except AbelnetError as error:
        Console(stderr=True).print(f"abelnet: {error}", style="red", highlight=False)
        raise SystemExit(2) from None
