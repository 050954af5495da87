"""The paper in minutes, on data that ships: its models, laws in closed form, certificates, analogies, and a table."""

from __future__ import annotations

__all__ = ["Reproduction", "reproduce"]

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from abelnet.discovery.estimator import LawRegressor
from abelnet.engines.learning import learn_table
from abelnet.engines.sources import Reading
from abelnet.experiments.analogies.experiment import MODELS, AnalogyExperiment, run_analogies
from abelnet.experiments.analogies.shots import Answered, ShotRow, accuracy_by_shots, sample_answers
from abelnet.experiments.certify import TRUTHS, Certificate, CertificateRow, certify
from abelnet.experiments.returns import RETURNS, write_returns
from abelnet.experiments.running import Tell, derived_seed, run_units
from abelnet.experiments.synthetic.chosen import Trained, train_chosen
from abelnet.experiments.synthetic.comparison import SIZES
from abelnet.experiments.synthetic.data import OPERATIONS, Learned, draw, learn, rmse
from abelnet.files import read_json, write_json
from abelnet.operation import Operation
from abelnet.saving import load
from abelnet.words.models import AnalogyModel, Offset
from abelnet.words.vectors import WordVectors

_NETWORKS = ("agn", "asn", "deepsets")  # in the order in which they start, longest first
_ANALOGIES = ("wv", "wv_mlp", "wv_agn", "anchored")
_SHOWN = ("wv", "wv_agn", "anchored")  # of which answers are shown
_SEVERAL = "anchored"  # in whose coordinates several example pairs are combined
_SHOTS = (1, 2, 3, 5, 10, 20)  # numbers of example pairs
_LARGEST = 100  # size of the multisets that are certified and measured
_MEASURED = 2_000  # multisets of each size
# Of the time of each part, for the progress.
_LAWS, _TRAINED, _ANSWERED = 0.06, 0.36, 0.95


@dataclass(frozen=True)
class Reproduction:
    """Results of all parts.

    Attributes:
        seed: Random seed.
        epochs: Number of training epochs of each analogy model.
        network_epochs: Number of training epochs of the networks on multisets.
        learned: Laws in closed form, by key of :data:`~abelnet.experiments.synthetic.data.OPERATIONS`.
        law_errors: For each law its error by size, as :attr:`Trained.by_size`.
        trained: Networks of each operation and model.
        certificates: Of networks that learned a group.
        analogies: Results of :func:`~abelnet.experiments.analogies.experiment.run_analogies`.
        shots: Accuracy by the number of example pairs.
        answers: Some questions with the answers of each model.
        table: Laws of the sample table.
        seconds: Time that it took.
    """

    seed: int
    epochs: int
    network_epochs: int
    learned: dict[str, Learned]
    law_errors: dict[str, list[dict[str, Any]]]
    trained: list[Trained]
    certificates: list[Certificate]
    analogies: dict[str, Any]
    shots: list[ShotRow]
    answers: list[Answered]
    table: LawRegressor
    seconds: float


def reproduce(
    folder: str | Path,
    *,
    seed: int = 0,
    epochs: int = 10,
    network_epochs: int = 1000,
    jobs: int = 1,
    on_unit: Callable[[str], None] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Reproduction:
    """Runs all parts, one after another.

    Arguments:
        folder: Output folder, for the sample table.
        seed: Random seed.
        epochs: Number of training epochs of each analogy model.
        network_epochs: Number of training epochs of the networks on multisets.
        jobs: Number of single-threaded processes.
        on_unit: Called with a description of each completed unit.
        on_progress: Called with the completed fraction, from 0 to 1.
    """
    start = time.perf_counter()
    say = on_unit or (lambda _: None)
    show = on_progress or (lambda _: None)
    learned = {}
    for name, operation in OPERATIONS.items():
        learned[name] = learn(name, seed=seed)
        say(f"law of {operation.formula}")
        show(_LAWS * len(learned) / (len(OPERATIONS) + 1))
    law_errors = {name: _by_size(name, one.law.operation, seed) for name, one in learned.items()}
    table = Path(folder) / "returns.csv"
    write_returns(table)
    model = learn_table(table, RETURNS, seed=seed, reading=Reading(apart=True))
    say(f"law of {table}")
    show(_LAWS)
    with TemporaryDirectory() as temporary:
        parts = Path(temporary)
        run_units(
            partial(_train, seed, network_epochs, parts),
            [(name,) for name in _NETWORKS],
            jobs=jobs,
            on_unit=lambda unit: say(f"{unit[0]} on {len(OPERATIONS)} operations"),
            on_progress=lambda part: show(_LAWS + part * (_TRAINED - _LAWS)),
        )
        contents = [read_json(parts / f"{name}.json") for name in _NETWORKS]
        experiment = AnalogyExperiment(models=_ANALOGIES, seeds=1, seed=seed, epochs=epochs)
        analogies = run_analogies(
            experiment,
            parts / "analogies",
            jobs=jobs,
            on_unit=on_unit,
            on_progress=lambda part: show(_TRAINED + part * (_ANSWERED - _TRAINED)),
        )
        models: dict[str, AnalogyModel] = {
            MODELS[name].title: Offset() if name == "wv" else load(parts / "analogies" / "models" / f"{name}-{seed}")
            for name in _SHOWN
        }
    vectors = WordVectors.default()
    group = models[MODELS[_SEVERAL].title]
    shots = accuracy_by_shots(
        vectors, group, shots=_SHOTS, seed=seed, on_progress=lambda part: show(_ANSWERED + part * (1 - _ANSWERED))
    )
    answers = sample_answers(vectors, models, seed=seed)
    say("analogies with several example pairs")
    trained = [Trained(**row) for content in contents for row in content["rows"]]
    certificates = [
        Certificate(one["title"], [CertificateRow(**row) for row in one["rows"]], one["notes"])
        for content in contents
        for one in content["certificates"]
    ]
    seconds = time.perf_counter() - start
    return Reproduction(
        seed,
        epochs,
        network_epochs,
        learned,
        law_errors,
        trained,
        certificates,
        analogies,
        shots,
        answers,
        model,
        seconds,
    )


def _train(seed: int, epochs: int, folder: Path, unit: tuple[str], tell: Tell) -> None:
    """Trains a model on all operations, and certifies groups; writes the results."""
    (name,) = unit
    rows, models = train_chosen(name, seed=seed, epochs=epochs, on_epoch=lambda: tell(0.9 / epochs))
    certificates = []
    for operation, model in models.items():
        if name == "agn" and isinstance(model, Operation) and OPERATIONS[operation].is_group:
            network = model.double().requires_grad_(False)
            title = f"{OPERATIONS[operation].formula}, learned by AGN"
            certificates.append(
                certify(network, TRUTHS[operation], size=_LARGEST, sets=_MEASURED, seed=seed, title=title)
            )
    content = {"rows": [asdict(row) for row in rows], "certificates": [asdict(one) for one in certificates]}
    write_json(folder / f"{name}.json", content)


def _by_size(name: str, operation: Operation, seed: int) -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(derived_seed(seed, "sizes", 1))
    rows = []
    for size in SIZES:
        data = draw(OPERATIONS[name], 100, (size,), generator, torch.float64)
        scale = data.targets.square().mean().sqrt().item()
        rows.append({"size": size, "rmse": [rmse(operation, data)], "scale": scale})
    return rows
