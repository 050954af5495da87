r"""Tab *Analogies*: words completed from example pairs, by plain vectors and by the trained group, and a picture."""

from __future__ import annotations

__all__ = ["answer"]

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from abelnet.errors import AbelnetError
from abelnet.explore.pictures import Arrow, Point, draw_words
from abelnet.explore.tasks import Arguments
from abelnet.explore.views import table_view
from abelnet.reporting.words import completion_table
from abelnet.words.completing import Completion, Examples, parse_pair
from abelnet.words.methods import Task, named_method
from abelnet.words.models import AnalogyModel, named_model
from abelnet.words.retrieval import Nearest
from abelnet.words.vectors import WordVectors

_MODELS = {"WV": "wv", "AGN": "agn"}
_METHODS = ("3cosavg", "joined", "spelled")
_MOST_PAIRS, _MOST_WORDS = 50, 4
_ANSWERS = 5
_NEIGHBORS = 6  # of the answer, in the picture
_DRAWN_PAIRS = 6  # more are hard to tell apart


@cache
def _vectors() -> WordVectors:
    return WordVectors.default()


@cache
def _model(name: str) -> AnalogyModel:
    return named_model(_MODELS[name], _vectors().dim)


def answer(arguments: Arguments, say: Callable[[str], None]) -> dict[str, Any]:
    """Returns answers to each word, of both models and with both sets of candidates, and a picture for each model."""
    method, words = arguments.text("method", _METHODS[0]), arguments.texts("words")
    if method not in _METHODS:
        raise AbelnetError(f"method: expected one of {', '.join(_METHODS)}, got {method!r:.80}")
    pairs = [_pair(line) for line in arguments.texts("pairs") if line.strip()]
    for name, given, most in (("pairs", pairs, _MOST_PAIRS), ("words", words, _MOST_WORDS)):
        if not 1 <= len(given) <= most:
            raise AbelnetError(f"{name}: expected 1 to {most}, got {len(given)}")
    say("loading word vectors")
    vectors = _vectors()
    examples = Examples.of(vectors, pairs)
    words = [word.strip().lower() if vectors.is_lower_case else word.strip() for word in words]
    queries = torch.tensor([vectors.index(word) for word in words])
    used = examples.rows[:, 0] != queries[:, None]
    for word, usable in zip(words, used, strict=True):
        if not bool(usable.any()):
            raise AbelnetError(f"pairs: expected an example other than {word:.80} itself, got none")
    task = Task.of(examples.rows, queries, used)
    say("searching all words")
    given = torch.unique(torch.cat((examples.rows.flatten(), queries)))
    found = {
        name: named_method(method, _model(name)).answers(vectors, task, min(_ANSWERS + len(given), len(vectors)))
        for name in _MODELS
    }
    say("drawing")
    barred = given.expand(len(queries), -1)
    others = {name: best.excluding(barred, _ANSWERS) for name, best in found.items()}
    return {
        "notes": list(examples.notes),
        "words": [
            {
                "word": word,
                "tables": [
                    _table(word, i, found, "All words are candidates"),
                    _table(word, i, others, "Given words excluded"),
                ],
                "pictures": [_picture(name, task, i, others[name]) for name in _MODELS],
            }
            for i, word in enumerate(words)
        ],
    }


def _pair(line: str) -> tuple[str, str]:
    """Returns both words of a line, with a colon, a comma or a space between them."""
    return parse_pair(line if ":" in line else ":".join(line.replace(",", " ").split()))


def _table(word: str, i: int, found: dict[str, Nearest], title: str) -> dict[str, Any]:
    answers = {name: _words(best.indices[i], best.scores[i]) for name, best in found.items()}
    return {**table_view(completion_table(Completion(word, answers))), "title": title}


def _words(rows: Tensor, scores: Tensor) -> list[tuple[str, float]]:
    pairs = zip(rows.tolist()[:_ANSWERS], scores.tolist(), strict=False)
    return [(_vectors().index_to_key[row], score) for row, score in pairs if row >= 0]


@torch.no_grad()
def _picture(name: str, task: Task, i: int, best: Nearest) -> dict[str, str]:
    """Draws the examples, the query, its answer and the neighbors of the answer, in the coordinates of a model."""
    vectors, model = _vectors(), _model(name)
    query, first = int(task.queries[i]), int(best.indices[i, 0])
    drawn = [pair for pair, weight in zip(task.pairs.tolist(), task.weights[i].tolist(), strict=True) if weight > 0]
    main = list(dict.fromkeys([*(row for pair in drawn[:_DRAWN_PAIRS] for row in pair), query, first]))
    near = [vectors.index(word) for word, _ in vectors.most_similar([vectors.index_to_key[first]], topn=_NEIGHBORS)]
    more = [row for row in dict.fromkeys([*best.indices[i, 1:].tolist(), *near]) if row not in main and row >= 0]
    places = model.encode(vectors.units(torch.tensor([*main, *more])))
    a, b = (model.encode(vectors.units(task.pairs[:, k])) for k in (0, 1))
    predicted = places[main.index(query)] + task.weights[i] @ (b - a)
    plane = _principal(places[: len(main)], torch.cat((places, predicted[None])), main.index(query))
    roles: dict[int, Any] = {query: "query", first: "answer"}
    points = [
        Point(vectors.index_to_key[row], *plane[k], roles.get(row, "example" if k < len(main) else "other"))
        for k, row in enumerate([*main, *more])
    ]
    points.append(Point("prediction", *plane[-1], "prediction"))
    arrows = [Arrow(main.index(pair[0]), main.index(pair[1]), True) for pair in drawn[:_DRAWN_PAIRS]]
    arrows.append(Arrow(main.index(query), main.index(first), False))
    where = "the word vectors" if name == "WV" else "the learned coordinates φ"
    word, found = vectors.index_to_key[query], vectors.index_to_key[first]
    about = (
        f"The two main directions of {where}: an arrow from the first to the second word of each example, and a dashed "
        f"one from {word} to the answer {found}; a cross marks the predicted place."
    )
    return {"title": name, "svg": draw_words(f"{word} and {found} in {where}", about, points, arrows)}


def _principal(main: Tensor, places: Tensor, query: int) -> Sequence[tuple[float, float]]:
    """Returns all places in the plane of the first two principal components of some.

    The plane is turned so that the last place, the prediction, is to the right of the query.
    """
    center = main.mean(0)
    _, _, axes = torch.linalg.svd(main - center, full_matrices=False)
    found = (places - center) @ axes[:2].T
    across, up = found[-1] - found[query]
    turn = torch.stack((torch.stack((across, -up)), torch.stack((up, across))))
    return [(float(x), float(y)) for x, y in found @ turn / torch.hypot(across, up).clamp(min=1e-12)]
