"""Word vectors, analogy questions and exact retrieval over whole vocabularies."""

from abelnet.words.evaluation import Evaluation, evaluate, offset
from abelnet.words.questions import Questions, Splits, bats_questions, google_questions
from abelnet.words.retrieval import Nearest, nearest
from abelnet.words.vectors import UnknownWordError, WordVectors

__all__ = [
    "Evaluation",
    "Nearest",
    "Questions",
    "Splits",
    "UnknownWordError",
    "WordVectors",
    "bats_questions",
    "evaluate",
    "google_questions",
    "nearest",
    "offset",
]
