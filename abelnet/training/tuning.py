r"""Hyperparameter search with Optuna's TPE: trials in batches, safe to kill and resume.

Trials are drawn in batches, to be trained as stacks. A batch is a *claim*: a folder with the list of its trials, the
checkpoints of their training and finally their values, all in atomic file writes. A process holds a lock on the claim
it works on, which the operating system releases when the process ends for any reason; a claim that is not locked and
has no values yet is resumed from its checkpoints. Several processes may share a search: claims are created under a
lock, so no trial is lost or run twice.

Each trial is drawn with its own random seeds, by a sampler whose only state is the trials in the claims. A search by
one process therefore draws the same trials, whether or not it was killed in between.
"""

from __future__ import annotations

__all__ = ["Candidate", "Choice", "Integer", "Pruned", "Real", "Search", "Space", "Trial", "check_optuna"]

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
from abelnet.errors import AbelnetError, needs_extra
from abelnet.files import read_json, write_json

if TYPE_CHECKING:
    import optuna


class Range(ABC):
    """Range of a parameter."""

    @abstractmethod
    def distribution(self) -> optuna.distributions.BaseDistribution:
        """Returns the Optuna distribution."""

    @abstractmethod
    def suggest(self, trial: optuna.Trial, name: str) -> Any:
        """Suggests a value for a trial."""


@dataclass(frozen=True)
class Integer(Range):
    """Integer from ``low`` to ``high``."""

    low: int
    high: int

    def distribution(self) -> optuna.distributions.BaseDistribution:
        from optuna.distributions import IntDistribution

        return IntDistribution(self.low, self.high)

    def suggest(self, trial: optuna.Trial, name: str) -> int:
        return trial.suggest_int(name, self.low, self.high)


@dataclass(frozen=True)
class Real(Range):
    """Real number from ``low`` to ``high``, optionally on a log scale."""

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
    """Trial to evaluate: its number in the study, and its parameters."""

    number: int
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """Finished trial; its value is None if it was not finite, or if the trial was pruned after some steps."""

    number: int
    parameters: dict[str, Any]
    value: float | None
    pruned_after: int | None = None


@dataclass(frozen=True)
class Pruned:
    """Outcome of a pruned trial: its last value, and the number of steps until then."""

    value: float
    steps: int


_CLAIM, _VALUES = "claim.json", "values.json"
_STATES = ("COMPLETE", "PRUNED", "FAIL")
Evaluate = Callable[[Sequence[Candidate], Path], Sequence[float | Pruned]]


class Search:
    """Search for the parameters with the smallest value.

    Arguments:
        folder: Folder of searches, each in a subfolder with its name.
        name: Name of the search.
        space: Range of each parameter, by name.
        trials: Total number of trials, over all processes.
        batch: Number of trials per claim.
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
        check_optuna()
        self.trials, self.batch = check_count("trials", trials), check_count("batch", batch)
        self.space, self.seed, self.name = dict(space), seed, name
        self.folder = Path(folder) / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self._exclusive = FileLock(self.folder / "lock")

    def run(self, evaluate: Evaluate, *, on_trials: Callable[[int], None] | None = None) -> Trial:
        """Evaluates trials until all are finished, and returns the best.

        Arguments:
            evaluate: Returns the value of each candidate, or :class:`Pruned` for pruned ones; the sampler learns from
                both, but only the former can be best. The second argument is a folder for checkpoints, the same one
                when a claim is resumed.
            on_trials: Called with the number of finished trials whenever it changes.
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
                time.sleep(0.2)  # other processes are working; if they die, their claims are resumed here
            else:
                return self.best()

    def finished(self) -> list[Trial]:
        """Returns all finished trials, in order."""
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
        """Returns the trial with the smallest value; the first one on a tie."""
        sound = [trial for trial in self.finished() if trial.value is not None]
        if not sound:
            raise AbelnetError(f"search {self.name}: expected a trial with a finite value, got none")
        return min(sound, key=lambda trial: (trial.value, trial.number))

    def claim_of(self, trial: Trial) -> Path:
        """Returns the folder with the checkpoints of a trial."""
        numbers = {one.number: claim for claim in self._claims() for one in self._candidates(claim)}
        return numbers[trial.number]

    @contextmanager
    def _next_claim(self) -> Iterator[Path | None]:
        """Yields a claim that no other process works on inside the context; None if none is left."""
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
        """Returns an unfinished claim that no process works on, with its lock."""
        for claim in self._unfinished():
            lock = FileLock(claim / "lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            return claim, lock
        return None

    def _draw(self) -> tuple[Path, FileLock] | None:
        """Returns a claim of new trials, with its lock."""
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

        # All parameters are drawn jointly with the first one, or one by one while few trials are finished. The sampler
        # is created anew each time: its previous draws must not matter.
        study.sampler = TPESampler(seed=self._seed(number, 0))
        trial = study.ask()
        for i, (name, range_) in enumerate(self.space.items()):
            study.sampler = TPESampler(seed=self._seed(number, i))
            range_.suggest(trial, name)
        return trial.params

    def _seed(self, number: int, parameter: int) -> int:
        return (self.seed * 1_000_003 + number * 1_009 + parameter) % 2**32

    def _study(self) -> optuna.Study:
        """Returns an in-memory Optuna study of the trials in all claims; failed trials tell the sampler nothing."""
        from optuna import create_study
        from optuna.trial import TrialState, create_trial

        study = create_study()
        distributions = {name: range_.distribution() for name, range_ in self.space.items()}
        for claim in self._claims():
            for candidate, outcome in self._outcomes(claim):
                value, steps = outcome["value"], outcome["steps"]
                try:
                    trial = create_trial(
                        state=TrialState[outcome["state"]],
                        value=value,
                        params=candidate.parameters,
                        distributions=distributions,
                        intermediate_values={} if steps is None else {steps: value},
                    )
                except (TypeError, ValueError) as error:
                    raise AbelnetError(
                        f"{claim}: expected trials of the search {self.name}, got: {error}; {self._remedy}"
                    ) from None
                study.add_trial(trial)
        return study

    @property
    def _remedy(self) -> str:
        """What to do about a damaged claim; later ones were drawn with knowledge of it."""
        return f"remove the folder {self.folder} to search again"

    def _claims(self) -> list[Path]:
        return sorted(path.parent for path in self.folder.glob(f"*/{_CLAIM}"))

    def _unfinished(self) -> list[Path]:
        return [claim for claim in self._claims() if not (claim / _VALUES).exists()]

    def _candidates(self, claim: Path) -> list[Candidate]:
        shape = [{"number": int, "parameters": dict.fromkeys(self.space, object)}]
        trials = read_json(claim / _CLAIM, shape, remedy=self._remedy)
        return [Candidate(trial["number"], trial["parameters"]) for trial in trials]

    def _outcomes(self, claim: Path) -> list[tuple[Candidate, dict[str, Any]]]:
        """Returns the trials of a claim, each with its state, value, and number of steps if pruned."""
        candidates = self._candidates(claim)
        path = claim / _VALUES
        if not path.exists():
            return [(candidate, _outcome("RUNNING")) for candidate in candidates]
        shape = [{"state": str, "value": float | int | None, "steps": int | None}]
        outcomes = read_json(path, shape, remedy="remove it to evaluate its trials again")
        states = [outcome["state"] for outcome in outcomes]
        if len(outcomes) != len(candidates) or not set(states) <= set(_STATES):
            raise AbelnetError(
                f"{path}: expected {len(candidates)} of {', '.join(_STATES)}, got {states!s:.80}; "
                "remove it to evaluate its trials again"
            )
        return list(zip(candidates, outcomes, strict=True))


def _judge(value: float | Pruned) -> dict[str, Any]:
    number, steps = (value.value, value.steps) if isinstance(value, Pruned) else (value, None)
    if not math.isfinite(number):
        return _outcome("FAIL")
    return _outcome("COMPLETE" if steps is None else "PRUNED", float(number), steps)


def _outcome(state: str, value: float | None = None, steps: int | None = None) -> dict[str, Any]:
    return {"state": state, "value": value, "steps": steps}


def check_optuna() -> None:
    """Raises unless Optuna is installed, and keeps it quiet."""
    with needs_extra("tune", "tuning"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
