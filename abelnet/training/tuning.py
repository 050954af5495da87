r"""Hyperparameter search with Optuna's TPE, many trials at once, safe against being killed.

Trials are drawn in batches, to be trained many at once. A batch is a *claim*: a folder that
lists its trials, holds the checkpoints of their training and in the end their values, in atomic file writes. Whoever
works on a claim holds a lock that the operating system releases when the process ends, however it ends; a claim whose
lock is free and which has no values yet is resumed from its checkpoints. Several processes may share a search: claims
are made under a lock, so that no trial is lost or run twice.

Each trial is drawn with random seeds of its own, by a sampler that knows the trials in the claims and keeps nothing
else. A search by one process therefore gives the same trials, whether or not it was killed on the way.
"""

from __future__ import annotations

__all__ = ["Candidate", "Choice", "Integer", "Pruned", "Real", "Search", "Trial"]

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.files import read_json, write_json

if TYPE_CHECKING:
    import optuna


class Range(ABC):
    """What a parameter is chosen from."""

    @abstractmethod
    def distribution(self) -> optuna.distributions.BaseDistribution:
        """The range as Optuna has it."""

    @abstractmethod
    def suggest(self, trial: optuna.Trial, name: str) -> Any:
        """Lets a trial choose a value."""


@dataclass(frozen=True)
class Integer(Range):
    """A whole number from ``low`` to ``high``."""

    low: int
    high: int

    def distribution(self) -> optuna.distributions.BaseDistribution:
        from optuna.distributions import IntDistribution

        return IntDistribution(self.low, self.high)

    def suggest(self, trial: optuna.Trial, name: str) -> int:
        return trial.suggest_int(name, self.low, self.high)


@dataclass(frozen=True)
class Real(Range):
    """A real number from ``low`` to ``high``, on a logarithmic scale where asked for."""

    low: float
    high: float
    log: bool = False

    def distribution(self) -> optuna.distributions.BaseDistribution:
        from optuna.distributions import FloatDistribution

        return FloatDistribution(self.low, self.high, self.log)

    def suggest(self, trial: optuna.Trial, name: str) -> float:
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Choice(Range):
    """One of several names."""

    names: tuple[str, ...]

    def distribution(self) -> optuna.distributions.BaseDistribution:
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.names)

    def suggest(self, trial: optuna.Trial, name: str) -> str:
        return trial.suggest_categorical(name, self.names)


Space = Mapping[str, Range]


@dataclass(frozen=True)
class Candidate:
    """A trial to be evaluated: its number in the study, and its parameters."""

    number: int
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """A trial that is done; the value is None where it was not finite, or the trial was pruned after some steps."""

    number: int
    parameters: dict[str, Any]
    value: float | None
    pruned_after: int | None = None


@dataclass(frozen=True)
class Pruned:
    """What an evaluation says of a trial that it gave up: the value that it had then, and after how many steps."""

    value: float
    steps: int


_CLAIM, _VALUES = "claim.json", "values.json"
Evaluate = Callable[[Sequence[Candidate], Path], Sequence[float | Pruned]]


class Search:
    """A search for the parameters with the smallest value.

    Arguments:
        folder: Where searches are kept, each in a folder with its name.
        name: Name of the search; one folder may hold many.
        space: Name and range of each parameter.
        trials: Number of trials in all, whoever runs them.
        batch: Number of trials in a claim.
        seed: Random seed of the trials.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     search = Search(folder, "parabola", {"x": Real(-5, 5)}, trials=20, batch=5)
        ...     best = search.run(lambda candidates, folder: [(c.parameters["x"] - 2) ** 2 for c in candidates])
        >>> abs(best.parameters["x"] - 2) < 0.5
        True
    """

    def __init__(
        self, folder: str | Path, name: str, space: Space, *, trials: int, batch: int = 25, seed: int = 0
    ) -> None:
        _check_optuna()
        self.trials, self.batch = check_count("trials", trials), check_count("batch", batch)
        self.space, self.seed, self.name = dict(space), seed, name
        self.folder = Path(folder) / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self._exclusive = FileLock(self.folder / "lock")

    def run(self, evaluate: Evaluate, *, on_trials: Callable[[int], None] | None = None) -> Trial:
        """Evaluates trials until all are done, and returns the best.

        Arguments:
            evaluate: Returns the value of each candidate, or :class:`Pruned` for those that it gave up; the sampler
                learns from both, but only the former can be best. It gets a folder to keep checkpoints in, the same
                one when a claim is resumed.
            on_trials: Called with the number of trials done whenever it changes.
        """
        while True:
            with self._next_claim() as claim:
                if claim is not None:
                    candidates = self._candidates(claim)
                    values = evaluate(candidates, claim)
                    if len(values) != len(candidates):
                        raise AbelnetError(f"evaluate: expected {len(candidates)} values, got {len(values)}")
                    with self._exclusive:
                        write_json(claim / _VALUES, [_judge(value) for value in values])
            if claim is not None:
                if on_trials is not None:
                    on_trials(len(self.finished()))
            elif self._unfinished():
                time.sleep(0.2)  # others are at work; should they die, their claims are free
            else:
                return self.best()

    def finished(self) -> list[Trial]:
        """All trials that are done, in order."""
        return [
            Trial(
                candidate.number,
                candidate.parameters,
                outcome["value"] if outcome["state"] == "COMPLETE" else None,
                outcome["steps"],
            )
            for claim in self._claims()
            for candidate, outcome in self._outcomes(claim)
            if outcome["state"] != "RUNNING"
        ]

    def best(self) -> Trial:
        """The trial with the smallest value; the first of them on a tie."""
        sound = [trial for trial in self.finished() if trial.value is not None]
        if not sound:
            raise AbelnetError(f"search {self.name}: expected a trial with a finite value, got none")
        return min(sound, key=lambda trial: (trial.value, trial.number))

    def claim_of(self, trial: Trial) -> Path:
        """The folder that its evaluation kept checkpoints in."""
        numbers = {one.number: claim for claim in self._claims() for one in self._candidates(claim)}
        return numbers[trial.number]

    @contextmanager
    def _next_claim(self) -> Iterator[Path | None]:
        """A claim that nobody else works on while the context lasts; None where none is left."""
        with self._exclusive:
            held = self._adopt() or self._draw()
        if held is None:
            yield None
            return
        claim, lock = held
        try:
            yield claim
        finally:
            lock.release()

    def _adopt(self) -> tuple[Path, FileLock] | None:
        """A claim that someone has left undone, with its lock."""
        for claim in self._unfinished():
            lock = FileLock(claim / "lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            return claim, lock
        return None

    def _draw(self) -> tuple[Path, FileLock] | None:
        """A claim of new trials, with its lock."""
        first = sum(len(self._candidates(claim)) for claim in self._claims())
        numbers = range(first, min(self.trials, first + self.batch))
        if not numbers:
            return None
        study = self._study()
        trials = [{"number": number, "parameters": self._parameters(study, number)} for number in numbers]
        claim = self.folder / f"{first:06d}"
        claim.mkdir(exist_ok=True)
        lock = FileLock(claim / "lock")
        lock.acquire()
        write_json(claim / _CLAIM, trials)
        return claim, lock

    def _parameters(self, study: optuna.Study, number: int) -> dict[str, Any]:
        from optuna.samplers import TPESampler

        # Parameters are drawn jointly for the first of them, or one by one while few trials are finished. The sampler
        # is always a new one: what it has drawn before must not matter.
        study.sampler = TPESampler(seed=self._seed(number, 0))
        trial = study.ask()
        for i, (name, range_) in enumerate(self.space.items()):
            study.sampler = TPESampler(seed=self._seed(number, i))
            range_.suggest(trial, name)
        return trial.params

    def _seed(self, number: int, parameter: int) -> int:
        return (self.seed * 1_000_003 + number * 1_009 + parameter) % 2**32

    def _study(self) -> optuna.Study:
        """Optuna's study, in memory, of the trials in all claims; a trial that failed tells the sampler nothing."""
        from optuna import create_study
        from optuna.trial import TrialState, create_trial

        study = create_study()
        distributions = {name: range_.distribution() for name, range_ in self.space.items()}
        for claim in self._claims():
            for candidate, outcome in self._outcomes(claim):
                value, steps = outcome["value"], outcome["steps"]
                trial = create_trial(
                    state=TrialState[outcome["state"]],
                    value=value,
                    params=candidate.parameters,
                    distributions=distributions,
                    intermediate_values={} if steps is None else {steps: value},
                )
                study.add_trial(trial)
        return study

    def _claims(self) -> list[Path]:
        return sorted(path.parent for path in self.folder.glob(f"*/{_CLAIM}"))

    def _unfinished(self) -> list[Path]:
        return [claim for claim in self._claims() if not (claim / _VALUES).exists()]

    def _candidates(self, claim: Path) -> list[Candidate]:
        return [Candidate(**trial) for trial in read_json(claim / _CLAIM)]

    def _outcomes(self, claim: Path) -> list[tuple[Candidate, dict[str, Any]]]:
        """The trials of a claim, each with its state, value and the steps after which it was pruned."""
        candidates = self._candidates(claim)
        path = claim / _VALUES
        outcomes = read_json(path) if path.exists() else [_outcome("RUNNING")] * len(candidates)
        return list(zip(candidates, outcomes, strict=True))


def _judge(value: float | Pruned) -> dict[str, Any]:
    number, steps = (value.value, value.steps) if isinstance(value, Pruned) else (value, None)
    if not math.isfinite(number):
        return _outcome("FAIL")
    return _outcome("COMPLETE" if steps is None else "PRUNED", float(number), steps)


def _outcome(state: str, value: float | None = None, steps: int | None = None) -> dict[str, Any]:
    return {"state": state, "value": value, "steps": steps}


def _check_optuna() -> None:
    try:
        import optuna
    except ImportError:
        raise AbelnetError('tuning: expected Optuna, which is not installed; run pip install "abelnet[tune]"') from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
