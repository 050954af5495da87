r"""Hyper-parameter search with Optuna's TPE, many trials at once, safe against being killed.

Trials are asked for in batches, so that the many-at-once trainer has something to batch. A batch is a *claim*: a folder
that lists its trials and holds the checkpoints of their training. Whoever works on a claim holds a lock that the
operating system releases when the process ends, however it ends; a claim whose lock is free and which is not done is
taken up again, from its checkpoints. Several processes may share one journal: claims are made under a lock, so that no
trial is lost or run twice.

Each parameter of each trial is drawn with a seed of its own. A search by one process therefore comes to the same
trials, whether or not it was killed on the way.
"""

from __future__ import annotations

__all__ = ["Candidate", "Choice", "Integer", "Pruned", "Real", "Search", "Trial"]

import fcntl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from abelnet.errors import AbelnetError
from abelnet.files import read_json, write_json

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class Integer:
    """A whole number from ``low`` to ``high``."""

    low: int
    high: int


@dataclass(frozen=True)
class Real:
    """A real number from ``low`` to ``high``, on a logarithmic scale where asked for."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Choice:
    """One of several names."""

    names: tuple[str, ...]


Space = Mapping[str, Integer | Real | Choice]


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


Evaluate = Callable[[Sequence[Candidate], Path], Sequence[float | Pruned]]


class Search:
    """A search for the parameters with the smallest value.

    Arguments:
        journal: The file that keeps all trials; folders with its name and ``.claims`` keep the claims.
        name: Name of the study; one journal may hold many.
        space: Name and range of each parameter.
        trials: Number of trials in all, whoever runs them.
        batch: Number of trials in a claim.
        seed: Fixes the draws.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     search = Search(Path(folder) / "journal.log", "parabola", {"x": Real(-5, 5)}, trials=20, batch=5)
        ...     best = search.run(lambda candidates, folder: [(c.parameters["x"] - 2) ** 2 for c in candidates])
        >>> abs(best.parameters["x"] - 2) < 0.5
        True
    """

    def __init__(
        self, journal: str | Path, name: str, space: Space, *, trials: int, batch: int = 25, seed: int = 0
    ) -> None:
        if trials < 1 or batch < 1:
            raise AbelnetError(f"trials, batch: expected at least 1 of each, got {trials} and {batch}")
        self.space, self.trials, self.batch, self.seed, self.name = dict(space), trials, batch, seed, name
        self.journal = Path(journal)
        self.folder = self.journal.with_name(f"{self.journal.name}.claims") / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self._owner = uuid.uuid4().hex
        with self._exclusive():
            self._study = self._open()

    def run(self, evaluate: Evaluate, *, on_trials: Callable[[int], None] | None = None) -> Trial:
        """Evaluates trials until all are done, and returns the best.

        Arguments:
            evaluate: Gives the value of each candidate, or :class:`Pruned` for those that it gave up; the sampler
                learns from both, but only the former can be best. It gets a folder to keep checkpoints in, the same
                one when a claim is taken up again.
            on_trials: Called with the number of trials done whenever it changes.
        """
        with self._alive():
            while True:
                with self._exclusive():
                    claim = self._adopt() or self._claim()
                if claim is None:
                    if not self._unfinished():
                        break
                    time.sleep(0.2)  # others are at work; should they die, their claims are free
                    continue
                candidates = self._candidates(claim)
                values = evaluate(candidates, claim)
                if len(values) != len(candidates):
                    raise AbelnetError(f"evaluate: expected {len(candidates)} values, got {len(values)}")
                with self._exclusive():
                    self._tell(candidates, values)
                    (claim / "done").touch()
                if on_trials is not None:
                    on_trials(len(self.finished()))
        return self.best()

    def finished(self) -> list[Trial]:
        """All trials that are done, in order."""
        return [
            Trial(
                trial.number,
                dict(trial.params),
                trial.value if trial.state.name == "COMPLETE" else None,
                trial.last_step if trial.state.name == "PRUNED" else None,
            )
            for trial in self._study.get_trials(deepcopy=False)
            if trial.state.is_finished()
        ]

    def best(self) -> Trial:
        """The trial with the smallest value; the first of them on a tie."""
        sound = [trial for trial in self.finished() if trial.value is not None]
        if not sound:
            raise AbelnetError(f"study {self.name}: expected a trial with a finite value, got none")
        return min(sound, key=lambda trial: (trial.value, trial.number))

    def claim_of(self, trial: Trial) -> Path:
        """The folder that its evaluation kept checkpoints in."""
        return next(claim for claim in self._claims() if trial.number in self._numbers(claim))

    def _open(self) -> optuna.Study:
        api = _import_optuna()
        lock = api.storages.journal.JournalFileOpenLock(str(self.journal))
        backend = api.storages.journal.JournalFileBackend(str(self.journal), lock_obj=lock)
        storage = api.storages.JournalStorage(backend)
        study: optuna.Study = api.create_study(storage=storage, study_name=self.name, load_if_exists=True)
        return study

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with (self.folder.parent / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _clear_stale_lock(self.journal)
            yield

    @contextmanager
    def _alive(self) -> Iterator[None]:
        path = self.folder / f"{self._owner}.alive"
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        path.unlink()

    def _claims(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if (path / "claim.json").exists())

    def _unfinished(self) -> list[Path]:
        return [claim for claim in self._claims() if not (claim / "done").exists()]

    def _adopt(self) -> Path | None:
        """A claim that its owner left undone."""
        for claim in self._unfinished():
            content = read_json(claim / "claim.json")
            if content["owner"] != self._owner and _is_free(self.folder / f"{content['owner']}.alive"):
                write_json(claim / "claim.json", content | {"owner": self._owner})
                return claim
        return None

    def _claim(self) -> Path | None:
        """A new claim: trials that someone asked for and died, then new ones."""
        trials = self._study.get_trials(deepcopy=False)
        taken = {number for claim in self._claims() for number in self._numbers(claim)}
        numbers = [trial.number for trial in trials if trial.number not in taken and not trial.state.is_finished()]
        for number in numbers:
            self._suggest(number, _import_optuna().trial.Trial(self._study, trials[number]._trial_id))
        for number in range(len(trials), min(self.trials, len(trials) + self.batch - len(numbers))):
            self._suggest(number, self._study.ask())
            numbers.append(number)
        if not numbers:
            return None
        claim = self.folder / f"{numbers[0]:06d}"
        claim.mkdir(exist_ok=True)
        write_json(claim / "claim.json", {"owner": self._owner, "trials": numbers})
        return claim

    def _suggest(self, number: int, trial: optuna.Trial) -> None:
        for i, (name, range_) in enumerate(self.space.items()):
            seed = (self.seed * 1_000_003 + number * 1_009 + i) % 2**32
            self._study.sampler = _import_optuna().samplers.TPESampler(seed=seed)
            if isinstance(range_, Integer):
                trial.suggest_int(name, range_.low, range_.high)
            elif isinstance(range_, Choice):
                trial.suggest_categorical(name, range_.names)
            else:
                trial.suggest_float(name, range_.low, range_.high, log=range_.log)

    def _numbers(self, claim: Path) -> list[int]:
        numbers: list[int] = read_json(claim / "claim.json")["trials"]
        return numbers

    def _candidates(self, claim: Path) -> list[Candidate]:
        trials = self._study.get_trials(deepcopy=False)
        return [Candidate(number, dict(trials[number].params)) for number in self._numbers(claim)]

    def _tell(self, candidates: Sequence[Candidate], values: Sequence[float | Pruned]) -> None:
        api = _import_optuna().trial
        trials = self._study.get_trials(deepcopy=False)
        for candidate, value in zip(candidates, values, strict=True):
            trial = trials[candidate.number]
            if trial.state.is_finished():
                continue
            if not abs(value.value if isinstance(value, Pruned) else value) < float("inf"):
                self._study.tell(candidate.number, state=api.TrialState.FAIL)
            elif isinstance(value, Pruned):
                api.Trial(self._study, trial._trial_id).report(value.value, value.steps)
                self._study.tell(candidate.number, state=api.TrialState.PRUNED)
            else:
                self._study.tell(candidate.number, value)


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise AbelnetError('tuning: expected Optuna to be installed; try pip install "abelnet[tune]"') from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _clear_stale_lock(journal: Path) -> None:
    """Optuna's own lock outlives a killed process. We only touch the journal under a lock of ours."""
    for path in journal.parent.glob(f"{journal.name}.lock*"):
        path.unlink(missing_ok=True)


def _is_free(path: Path) -> bool:
    try:
        with path.open("r+") as file:
            return _try_lock(file)
    except FileNotFoundError:
        return True


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
