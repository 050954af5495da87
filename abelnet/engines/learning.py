"""Learning laws from tables on disk."""

from __future__ import annotations

__all__ = ["learn_table"]

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abelnet.engines.columns import Columns
from abelnet.engines.pages import release_code
from abelnet.engines.sources import Reading
from abelnet.engines.tables import Sets, read_sets
from abelnet.errors import AbelnetError

if TYPE_CHECKING:
    from abelnet.discovery.estimator import LawRegressor

_BATCHES = 8  # read before PyTorch is imported, of a million numbers at most


def learn_table(
    source: Any,
    columns: Columns,
    *,
    seed: int = 0,
    skip_missing: bool = False,
    only: str | None = None,
    reading: Reading | None = None,
    on_step: Callable[[str], None] | None = None,
) -> LawRegressor:
    """Learns a law from a table of examples in streaming fashion; the table may be larger than memory.

    Arguments:
        source: A file, a folder, a glob pattern, or a data frame; see :func:`~abelnet.engines.reading.open_table`.
        columns: Columns of the elements, sets and results.
        seed: Random seed of the held-out examples.
        skip_missing: Whether to skip multisets with missing numbers; otherwise they raise.
        only: ``"folds"`` or ``"means"`` to search these alone.
        reading: How to read the table.
        on_step: Called with a description of each step.

    Returns:
        The fitted model.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "sums.csv")
        ...     lines = [f"{a},{b},{a + b}" for a in range(5) for b in range(5)]
        ...     _ = path.write_text("\\n".join(["a,b,sum", *lines]))
        ...     model = learn_table(path, Columns(("a", "b"), targets=("sum",)))
        >>> print(model.laws_[0].formula)
        x∘y = x + y
    """
    if not columns.targets:
        raise AbelnetError("columns: expected targets to learn from, got none; name the columns of results")
    say = on_step or (lambda _: None)

    def read() -> Iterator[Sets]:
        count = 0
        for sets in read_sets(source, columns, skip_missing=skip_missing, reading=reading):
            count += len(sets.ptr) - 1
            say(f"reading: {count:,} multisets")
            yield sets

    batches = read()
    first = deque(islice(batches, _BATCHES))
    if not first:
        name = source if isinstance(source, str | Path) else "table"
        raise AbelnetError(f"{name}: expected at least one multiset with its result, got none")
    # Here, when the database has ended if the table is small: only one of them is in memory at a time.
    import torch

    from abelnet.discovery.estimator import LawRegressor

    if reading is not None and reading.apart:
        release_code(Path(torch.__file__).parent)
    model = LawRegressor(seed=seed, only=only)
    while first:
        names = columns.values if columns.set is not None else ()
        model.partial_fit(first.popleft().multisets(), names=names)
        first.extend(islice(batches, 1))
    say("learning")
    _ = model.laws_  # fitted on first access
    return model
