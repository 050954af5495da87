r"""Methods that complete words of a relation from example pairs, each a class in a file of its own."""

from __future__ import annotations

__all__ = [
    "METHODS",
    "CosineMethod",
    "Joined",
    "LRCos",
    "Method",
    "PairDirection",
    "Scores",
    "Similarity",
    "Task",
    "ThreeCosAdd",
    "ThreeCosAvg",
    "ThreeCosMul",
    "Weighted",
]

from abelnet.words.methods.base import CosineMethod, Method, Scores, Task
from abelnet.words.methods.joined import Joined
from abelnet.words.methods.lrcos import LRCos
from abelnet.words.methods.pair_direction import PairDirection
from abelnet.words.methods.similarity import Similarity
from abelnet.words.methods.three_cos_add import ThreeCosAdd
from abelnet.words.methods.three_cos_avg import ThreeCosAvg
from abelnet.words.methods.three_cos_mul import ThreeCosMul
from abelnet.words.methods.weighted import Weighted

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (Similarity, ThreeCosAdd, ThreeCosAvg, Weighted, ThreeCosMul, PairDirection, LRCos, Joined)
}
"""Methods by name."""
