"""The command line: arguments only; every command is one call into the library."""

from __future__ import annotations

__all__ = ["app", "main"]

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich import box, progress
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import abelnet
from abelnet.cli import analogies as analogy_cli
from abelnet.cli import words as words_cli
from abelnet.discovery.estimator import LawRegressor
from abelnet.engines import tables
from abelnet.errors import AbelnetError
from abelnet.experiments import certify, universality
from abelnet.experiments.analogies import experiment as analogies
from abelnet.experiments.synthetic import comparison
from abelnet.experiments.synthetic import data as synthetic
from abelnet.files import write_text
from abelnet.reporting import analogies as analogy_report
from abelnet.reporting import laws as law_report
from abelnet.reporting import synthetic as report

app = typer.Typer(
    help="Learn how things combine: commutative, associative operations from examples.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(words_cli.app, name="words")
app.add_typer(analogy_cli.app, name="analogies")
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
    seed: Annotated[int, typer.Option(min=0, max=2**62, help="Fixes everything.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each model of analogies.")] = 10,
) -> None:
    """Both experiments of the paper, on data that ships: operations from multisets, and word analogies."""
    title = f"Learned from 500 multisets of 2–4 numbers, seed {seed}"
    table = Table(title=title, box=box.SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("operation", "law found"):
        table.add_column(heading, no_wrap=True)
    for heading in ("2–4", "10–12", "(paper", "paper)", "assoc."):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, truth in progress.track(synthetic.OPERATIONS.items(), "learning", console=console, transient=True):
        learned = synthetic.learn(name, seed=seed)
        best = report.best_published(name)
        table.add_row(
            truth.formula,
            learned.law.formula.removeprefix("x∘y = "),
            f"{learned.small:.1e}",
            f"{learned.large:.1e}",
            f"{best['small']:.1e}",
            f"{best['large']:.1e}",
            f"{learned.defects.associativity.relative:.0e}",
        )
    console.print(table)
    console.print("2–4, 10–12: RMSE on test multisets of that size, numbers from [−5, 5];")
    console.print("(paper, paper): the best of the paper's models on each. assoc.: largest relative defect.")
    with tempfile.TemporaryDirectory() as folder:
        experiment = analogies.AnalogyExperiment(
            models=("wv", "wv_mlp", "wv_agn", "anchored"), seeds=1, seed=seed, epochs=epochs
        )
        results = analogy_cli.run_with_progress(experiment, Path(folder), os.cpu_count() or 1)
    for found in analogy_report.analogy_tables(results)[::2]:
        report.print_table(found, console)
    console.print(f"Right answers in a hundred, over 30,078 words; {epochs} epochs on 60 % of Google's pairs.")
    console.print("The whole experiment, on BATS and larger vectors: abelnet analogies run --help.")


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
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("training", total=1.0)

        def on_unit(operation: str, name: str) -> None:
            console.print(f"done: {name} on {synthetic.OPERATIONS[operation].formula}", highlight=False)

        def on_progress(part: float) -> None:
            bar.update(task, completed=part)

        results = comparison.run(experiment, out, jobs=jobs, on_unit=on_unit, on_progress=on_progress)
    report.print_table(report.synthetic_table(results), console)
    for path in report.write_synthetic(results, out):
        console.print(f"written: {path}", highlight=False)


_Set = Annotated[
    str | None, typer.Option("--set", help="Column that names the multiset of a row; without it each row is one.")
]
_Value = Annotated[
    list[str],
    typer.Option("--value", help="Column of numbers, may be repeated: coordinates with --set, else elements."),
]


@app.command()
def learn(
    file: Annotated[Path, typer.Argument(help="Table of examples: .csv, .tsv or .parquet.")],
    value: _Value,
    target: Annotated[list[str], typer.Option("--target", help="Column of results, one for each coordinate.")],
    out: Annotated[Path, typer.Option(help="Folder for the law and the report.")],
    set_column: _Set = None,
    seed: Annotated[int, typer.Option(min=0, max=2**62, help="Fixes which examples are held out.")] = 0,
    skip_missing: Annotated[bool, typer.Option("--skip-missing", help="Leave out sets with missing numbers.")] = False,
) -> None:
    """Learn the law behind a table of examples: which commutative, associative operation gave these results."""
    columns = tables.Columns(tuple(value), set_column, tuple(target))
    model = LawRegressor(seed=seed)
    with console.status("reading", spinner="line") as status:
        count = 0
        for examples in tables.examples_in(file, columns, skip_missing=skip_missing):
            model.partial_fit(examples)
            count += len(examples)
            status.update(f"reading: {count:,} sets")
        status.update("learning")
        laws = model.laws_
    names = value if set_column is not None else [target[0]]
    for name, law, sample in zip(names, laws, model.sample_, strict=True):
        console.rule(name)
        console.print(law.summary(), highlight=False, markup=False)
        table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
        for heading in ("law", "parameters", "held-out RMSE"):
            table.add_column(heading, no_wrap=True)
        for title, parameters, rmse in law.tried[:6]:
            table.add_row(title, str(parameters), f"{rmse:.3g}")
        console.print(table)
        for size, sets_of_size, rmse in law_report.errors_by_size(law, sample)[:12]:
            console.print(f"size {size}: RMSE {rmse:.3g} over {sets_of_size} sets", highlight=False)
    model.save(out)
    write_text(out / "report.html", law_report.law_page(model, names))
    for name in ("model.json", "model.safetensors", "report.html"):
        console.print(f"written: {out / name}", highlight=False, soft_wrap=True)


@app.command()
def apply(
    model: Annotated[Path, typer.Argument(help="Folder that abelnet learn has written.")],
    file: Annotated[Path, typer.Argument(help="Table to apply the law to: .csv, .tsv or .parquet.")],
    value: _Value,
    out: Annotated[Path, typer.Option(help="CSV file to write: one row for each set.")],
    set_column: _Set = None,
) -> None:
    """Combine the elements of each set of a table by a law that was learned, whatever their number."""
    columns = tables.Columns(tuple(value), set_column)
    with console.status("reading", spinner="line") as status:
        rows = 0

        def on_rows(more: int) -> None:
            nonlocal rows
            rows += more
            status.update(f"combining: {rows:,} rows")

        sets = tables.apply_law(LawRegressor.load(model), file, columns, out, on_rows=on_rows)
    console.print(f"written: {out}, {sets:,} sets of {rows:,} rows", highlight=False, soft_wrap=True)


@app.command(name="certify")
def certify_command(
    model: Annotated[str, typer.Argument(help="Folder that abelnet learn has written, or a synthetic operation.")],
    size: Annotated[int, typer.Option(min=2, help="Largest multiset.")] = 1000,
    truth: Annotated[str | None, typer.Option(help="True operation, one of the synthetic ones.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(min=0, help="Error up to size 4, where the truth is unknown.")
    ] = None,
    low: Annotated[float, typer.Option(help="Smallest element.")] = -5.0,
    high: Annotated[float, typer.Option(help="Largest element.")] = 5.0,
    sets: Annotated[int, typer.Option(min=1, help="Multisets measured at each size.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, max=2**62, help="Fixes data, training and multisets.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs, where a synthetic operation is learned first.")] = 1000,
    out: Annotated[Path | None, typer.Option(help="Folder for table and plot; certificate-MODEL if not given.")] = None,
) -> None:
    """Bound the error of an operation at any size: measured, by our bound and by the paper's Theorem 3."""
    with console.status("certifying", spinner="line"):
        certificates = certify.certify_model(
            model, truth, size=size, epsilon=epsilon, elements=(low, high), sets=sets, seed=seed, epochs=epochs
        )
    for certificate in certificates:
        table = Table(title=certificate.title, box=box.SIMPLE, padding=(0, 1, 0, 0))
        for heading in certify.HEADING:
            table.add_column(heading, justify="right", no_wrap=True)
        for row in certificate.rows:
            table.add_row(*row.cells())
        console.print(table)
        for note in certificate.notes:
            console.print(note, highlight=False)
    for path in certify.write_certificates(certificates, out or Path(f"certificate-{Path(model).name}")):
        console.print(f"written: {path}", highlight=False, soft_wrap=True)


@app.command(name="universality")
def universality_command(
    out: Annotated[Path, typer.Option(help="Folder for table and plot.")] = Path("universality"),
    dim: Annotated[list[int] | None, typer.Option(min=2, help="Dimensions, may be repeated; 2 and 3 if not.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of random groups for each.")] = 1,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each training.")] = 60,
) -> None:
    """Learn groups made from random diffeomorphisms by networks of growing size, with DeepSets beside."""

    def on_row(row: universality.UniversalityRow) -> None:
        errors = ", ".join(f"{size}: {error:.3g}" for size, error in row.rmse.items())
        console.print(
            f"R^{row.dim}, seed {row.seed}, {row.model}: RMSE at size {errors}", highlight=False, soft_wrap=True
        )

    rows = universality.universality(dim or (2, 3), seeds=range(seeds), epochs=epochs, on_row=on_row)
    for path in universality.write_universality(rows, out):
        console.print(f"written: {path}", highlight=False, soft_wrap=True)


def main() -> None:
    """Runs the command line; what a caller got wrong is one line, not a traceback."""
    try:
        app()
    except AbelnetError as error:
        Console(stderr=True).print(f"abelnet: {error}", style="red", highlight=False)
        raise SystemExit(2) from None
