"""Hyperparameter search by workers on any machines, which share a database: any storage URL of Optuna.

:class:`~abelnet.training.tuning.Search` shares a folder and resumes trials from their checkpoints; this search needs no
common file system. A worker that dies stops its heartbeat, and another one runs its trial again.
"""

from __future__ import annotations

__all__ = ["StorageSearch"]

import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.training.tuning import Candidate, Space, Trial, check_optuna

if TYPE_CHECKING:
    import optuna

# Attribute of the trials that were planned: their number, which a repeated trial keeps.
_NUMBER = "abelnet number"
# A worker counts as dead after this many heartbeats that did not come.
_MISSED = 3
# Attempts to create the tables while other workers do.
_ATTEMPTS = 5


class StorageSearch:
    """Search for the parameters with the smallest value, by any number of workers with the same arguments.

    Trials are drawn by Optuna's TPE from all results so far, so that they depend on which worker finishes first: a
    search is not reproducible, unlike :class:`~abelnet.training.tuning.Search`.

    Arguments:
        storage: URL of a database, such as ``postgresql+psycopg://user@host/name`` or ``sqlite:///search.db``.
        name: Name of the search in the database.
        space: Range of each parameter, by name.
        trials: Total number of trials, over all workers.
        heartbeat: Seconds between the heartbeats of a worker; after three that did not come, its trial is run again.
        retries: How often a trial whose worker died is run again; after that it has no value.

    Example:
        >>> import tempfile
        >>> from abelnet.training.tuning import Real
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     search = StorageSearch(f"sqlite:///{folder}/search.db", "parabola", {"x": Real(-5, 5)}, trials=5)
        ...     best = search.run(lambda candidate: (candidate.parameters["x"] - 2) ** 2)
        ...     [trial.number for trial in search.finished()], best.value == min(t.value for t in search.finished())
        ([0, 1, 2, 3, 4], True)
    """

    def __init__(
        self, storage: str, name: str, space: Space, *, trials: int, heartbeat: int = 60, retries: int = 3
    ) -> None:
        check_optuna()
        self.trials, self.heartbeat = check_count("trials", trials), check_count("heartbeat", heartbeat)
        self.space, self.name = dict(space), name
        self._study, self._storage = _open(storage, name, self.heartbeat, check_count("retries", retries, 0))
        self._plan()

    def close(self) -> None:
        """Closes the connections to the database."""
        self._storage.engine.dispose()

    def run(self, evaluate: Callable[[Candidate], float], *, on_trials: Callable[[int], None] | None = None) -> Trial:
        """Evaluates trials until all are finished, by this worker or by others, and returns the best.

        Arguments:
            evaluate: Returns the value of a candidate; one that is not finite counts as failed.
            on_trials: Called with the number of finished trials after each trial of this worker.
        """
        import optuna
        from optuna.trial import TrialState

        def objective(trial: optuna.Trial) -> float:
            number = self._owned(trial)
            parameters = {name: range_.suggest(trial, name) for name, range_ in self.space.items()}
            return float(evaluate(Candidate(number, parameters)))

        while True:
            open_states = {one.state for one in self._trials() if not one.state.is_finished()}
            if TrialState.WAITING in open_states:
                self._study.optimize(objective, n_trials=1)
                if on_trials is not None:
                    on_trials(len(self.finished()))
            elif TrialState.RUNNING in open_states:
                time.sleep(min(1.0, self.heartbeat / 4))  # others are working; if they die, their trials are run here
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                    optuna.storages.fail_stale_trials(self._study)
            else:
                return self.best()

    def finished(self) -> list[Trial]:
        """Returns all finished trials by number, each once, however often it was run."""
        last: dict[int, Trial] = {}
        for one in self._trials():
            number = one.user_attrs[_NUMBER]
            has_value = one.state.name == "COMPLETE" and one.value is not None and math.isfinite(one.value)
            if has_value or (one.state.name == "FAIL" and number not in last):
                last[number] = Trial(number, dict(one.params), one.value if has_value else None)
        waiting = {one.user_attrs[_NUMBER] for one in self._trials() if not one.state.is_finished()}
        return [last[number] for number in sorted(last) if last[number].value is not None or number not in waiting]

    def best(self) -> Trial:
        """Returns the trial with the smallest value; the first one on a tie."""
        sound = [(trial.value, trial.number, trial) for trial in self.finished() if trial.value is not None]
        if not sound:
            raise AbelnetError(f"search {self.name}: expected a trial with a finite value, got none")
        return min(sound, key=lambda one: one[:2])[2]

    def _trials(self) -> Sequence[optuna.trial.FrozenTrial]:
        """Returns the planned trials and their repetitions, in the order in which they were created."""
        return [one for one in self._study.get_trials(deepcopy=False) if _NUMBER in one.user_attrs]

    def _plan(self) -> None:
        """Queues the trials that are not in the database yet; another worker may be doing the same."""
        there = {one.user_attrs[_NUMBER] for one in self._trials()}
        for number in sorted(set(range(self.trials)) - there):
            self._study.enqueue_trial({}, user_attrs={_NUMBER: number})

    def _owned(self, trial: optuna.Trial) -> int:
        """Returns the number of a trial; drops one that two workers have planned, or that Optuna has added itself."""
        import optuna

        number: int | None = trial.user_attrs.get(_NUMBER)
        same = [one for one in self._trials() if one.user_attrs[_NUMBER] == number and one.state.name != "FAIL"]
        if number is None or min(one.number for one in same if one.state.name != "PRUNED") != trial.number:
            raise optuna.TrialPruned
        return number


def _open(url: str, name: str, heartbeat: int, retries: int) -> tuple[optuna.Study, optuna.storages.RDBStorage]:
    import optuna
    from optuna.samplers import TPESampler
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        for attempt in range(_ATTEMPTS):
            try:
                storage = _connect(url, heartbeat, retries)
                break
            except Exception as error:  # each driver has its own
                # Workers that start together may create the tables at once; all but one find them there on retry.
                if isinstance(error, IntegrityError | ProgrammingError) and attempt < _ATTEMPTS - 1:
                    time.sleep(0.5)
                    continue
                reason = str(error).strip().partition("\n")[0][:200]
                raise AbelnetError(
                    f"storage: expected the URL of a database that can be reached, got {reason}"
                ) from None
        # Trials that are still running count as poor ones, so that workers try different parameters.
        sampler = TPESampler(constant_liar=True)
    return optuna.create_study(storage=storage, study_name=name, sampler=sampler, load_if_exists=True), storage


def _connect(url: str, heartbeat: int, retries: int) -> optuna.storages.RDBStorage:
    from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback

    return RDBStorage(
        url,
        heartbeat_interval=heartbeat,
        grace_period=_MISSED * heartbeat,
        heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=retries),
    )
