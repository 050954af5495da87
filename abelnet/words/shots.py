"""Accuracy of methods that complete words from several example pairs of a relation, over the whole vocabulary."""

from __future__ import annotations

__all__ = ["PROTOCOLS", "QUERY_SETTINGS", "evaluate_methods", "named_pairs", "parse_shots", "tasks"]

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from abelnet.checks import check_count
from abelnet.errors import AbelnetError
from abelnet.words.evaluation import Evaluation
from abelnet.words.methods import Method, Task
from abelnet.words.questions import Pairs, bats_questions, google_pairs, google_questions
from abelnet.words.retrieval import Nearest, nearest
from abelnet.words.vectors import WordVectors

PROTOCOLS = ("split", "leave-one-out")
QUERY_SETTINGS = ("all_candidates", "excluding_query")


def named_pairs(
    vectors: WordVectors, name: str, *, protocol: str = "split", seed: int = 0, case: str = "auto"
) -> tuple[Pairs, Pairs]:
    """Returns the pairs to ask for, and those that serve as examples.

    Arguments:
        vectors: The vocabulary.
        name: ``"google"``, a file in the layout of Google's questions, or the folder of BATS.
        protocol: ``"split"``: test pairs are asked for, from examples of the train and validation pairs of the same
            relation. ``"leave-one-out"``: every pair is asked for, from examples of all others of its relation.
        seed: Random seed of the split.
        case: How words are looked up, as in :func:`~abelnet.words.google_questions`.

    Example:
        >>> queries, examples = named_pairs(WordVectors.default(), "google")
        >>> len(queries), len(examples)
        (115, 435)
    """
    if protocol not in PROTOCOLS:
        raise AbelnetError(f"protocol: expected {' or '.join(PROTOCOLS)}, got {protocol!r}")
    path = None if name == "google" else name
    if path is not None and Path(path).is_dir():
        splits = bats_questions(vectors, path, seed=seed, case=case)
        queries, examples = splits.test.pairs(), splits.development.pairs()
        if protocol == "split":
            return queries, examples
        pairs = replace(examples.joined(queries), title="BATS")
    elif protocol == "split":
        splits = google_pairs(vectors, path, seed=seed, case=case)
        return splits.test.pairs(), splits.development.pairs()
    else:
        pairs = google_questions(vectors, path, case=case).pairs()
    return pairs, pairs


def parse_shots(text: str) -> int | None:
    """Returns the number of example pairs that a text says: a count, or None for ``"all"``.

    Example:
        >>> parse_shots("5"), parse_shots("all")
        (5, None)
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) == 0:
        raise AbelnetError(f"shots: expected a number of at least 1, or all, got {text!r}")
    return int(text)


def tasks(queries: Pairs, examples: Pairs, shots: int | None = None, *, seed: int = 0) -> Iterator[tuple[Tensor, Task]]:
    r"""Yields one task per relation, with the places of its queries, :math:`(n)`.

    A pair with the word of a query is never an example for it: from the same pairs as queries and examples, each query
    has all others, which is leave-one-out. Queries without any example are left out.

    Arguments:
        queries: Pairs to ask for.
        examples: Pairs that serve as examples.
        shots: Number of example pairs of each query, drawn at random; all of its relation if None, or if there are
            fewer.
        seed: Random seed of the draw.
    """
    if shots is not None:
        check_count("shots", shots)
    generator = torch.Generator().manual_seed(seed)
    for section in range(len(queries.sections)):
        places = (queries.section == section).nonzero()[:, 0]
        pairs = examples.rows[examples.section == section]
        used = pairs[:, 0] != queries.words[places, None]
        if shots is not None:
            order = torch.rand(used.shape, generator=generator).masked_fill(~used, torch.inf)
            used &= order.argsort(1).argsort(1) < shots
        known = used.any(1)
        if bool(known.any()):
            yield places[known], Task.of(pairs, queries.words[places[known]], used[known])


def evaluate_methods(
    vectors: WordVectors,
    queries: Pairs,
    examples: Pairs,
    methods: Mapping[str, Method],
    *,
    shots: int | None = None,
    seed: int = 0,
    on_progress: Callable[[float], None] | None = None,
) -> Evaluation:
    r"""Evaluates methods on words to complete, answered by the word with the largest score.

    Candidates are all words of the vocabulary, and in a second setting all except the query :math:`c`. Methods whose
    score is a cosine to a prediction share one pass over the vocabulary.

    Arguments:
        vectors: The vocabulary.
        queries: Pairs to ask for.
        examples: Pairs that serve as examples, with the same sections; see :func:`tasks`.
        methods: Methods by name.
        shots: Number of example pairs of each query; all if None.
        seed: Random seed of the draw of examples.
        on_progress: Called periodically with the completed fraction, from 0 to 1.

    Example:
        >>> from abelnet.words.methods import ThreeCosAvg
        >>> vectors = WordVectors.default(5000)
        >>> queries, examples = named_pairs(vectors, "google")
        >>> result = evaluate_methods(vectors, queries, examples, {"3cosavg": ThreeCosAvg()}, shots=5)
        >>> result.settings, result.rows()[0].questions == len(queries)
        (('all_candidates', 'excluding_query'), True)
    """
    if not methods:
        raise AbelnetError("methods: expected at least one method, got none")
    tell = (lambda share: None) if on_progress is None else on_progress
    asked = list(tasks(queries, examples, shots, seed=seed))
    total = len(methods) * max(1, len(asked))
    k = min(2, len(vectors))
    # Row −1: no answer, where there is no example.
    predicted = torch.full((2, len(methods), len(queries)), -1)

    def keep(number: int, places: Tensor, found: Nearest) -> None:
        others = found.excluding(queries.words[places, None])
        predicted[:, number, places] = torch.stack((found.indices[:, 0], others.indices[:, 0]))

    cosines: list[tuple[int, Tensor, Tensor]] = []
    with torch.no_grad():
        for number, method in enumerate(methods.values()):
            for done, (places, task) in enumerate(asked, 1):
                scores = method.scores(vectors, task)
                if scores.combine is None:
                    cosines.append((number, places, scores.directions))
                else:
                    keep(number, places, scores.best(vectors, k))
                tell(0.8 * (number * len(asked) + done) / total)
    if cosines:
        together = torch.cat([directions for _, _, directions in cosines])
        found = nearest(
            vectors.vectors, together, k, norms=vectors.norms, on_progress=lambda share: tell(0.8 + 0.2 * share)
        )
        sizes = [len(places) for _, places, _ in cosines]
        parts = zip(torch.split(found.scores, sizes), torch.split(found.indices, sizes), strict=True)
        for (number, places, _), part in zip(cosines, parts, strict=True):
            keep(number, places, Nearest(*part))
    return Evaluation(queries, tuple(methods), predicted, queries.accepts(predicted), QUERY_SETTINGS)
