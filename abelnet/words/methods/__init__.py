r"""Methods that complete words of a relation from example pairs, each a class in a file of its own."""

from __future__ import annotations

__all__ = [
    "METHODS",
    "CosineMethod",
    "Joined",
    "LRCos",
    "Method",
    "PairDirection",
    "Ridge",
    "Scores",
    "Similarity",
    "Spelled",
    "Task",
    "ThreeCosAdd",
    "ThreeCosAvg",
    "ThreeCosMul",
    "Weighted",
    "named_method",
    "named_methods",
]

from collections.abc import Mapping, Sequence

from abelnet.errors import AbelnetError
from abelnet.words.methods.base import CosineMethod, Method, Scores, Task
from abelnet.words.methods.joined import Joined
from abelnet.words.methods.lrcos import LRCos
from abelnet.words.methods.pair_direction import PairDirection
from abelnet.words.methods.ridge import Ridge
from abelnet.words.methods.similarity import Similarity
from abelnet.words.methods.spelled import Spelled
from abelnet.words.methods.three_cos_add import ThreeCosAdd
from abelnet.words.methods.three_cos_avg import ThreeCosAvg
from abelnet.words.methods.three_cos_mul import ThreeCosMul
from abelnet.words.methods.weighted import Weighted
from abelnet.words.models import AnalogyModel

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Similarity,
        ThreeCosAdd,
        ThreeCosAvg,
        Weighted,
        Ridge,
        ThreeCosMul,
        PairDirection,
        LRCos,
        Joined,
        Spelled,
    )
}
"""Methods by name."""


def named_method(name: str, model: AnalogyModel | None = None) -> Method:
    """Returns a method by name, with its default settings.

    Arguments:
        name: A key of :data:`METHODS`.
        model: The model in whose coordinates offsets are taken, where the method takes any.

    Example:
        >>> named_method("3cosavg").name
        '3cosavg'
    """
    if name not in METHODS:
        raise AbelnetError(f"method: expected one of {', '.join(METHODS)}, got {name!r}")
    method = METHODS[name]
    return method(model) if method.takes_model else method()


def named_methods(names: Sequence[str], models: Mapping[str, AnalogyModel]) -> dict[str, Method]:
    """Returns methods by name, each in the coordinates of each model where it takes one.

    Example:
        >>> from abelnet.words.models import Offset
        >>> list(named_methods(["3cosavg", "lrcos"], {"wv": Offset(), "also wv": Offset()}))
        ['3cosavg wv', 'lrcos', '3cosavg also wv']
    """
    built = {}
    for title, model in models.items():
        for name in names:
            method = named_method(name, model)
            built[f"{name} {title}" if method.takes_model else name] = method
    return built
