"""Word vectors, analogy questions and exact retrieval over whole vocabularies."""

from abelnet.words.evaluation import Evaluation, evaluate, offset
from abelnet.words.losses import AnchoredLoss, CosineLoss
from abelnet.words.models import GroupAnalogy, OffsetMLP
from abelnet.words.questions import Questions, Splits, bats_questions, google_pairs, google_questions
from abelnet.words.retrieval import Nearest, nearest
from abelnet.words.vectors import UnknownWordError, WordVectors

__all__ = [
    "AnchoredLoss",
    "CosineLoss",
    "Evaluation",
    "GroupAnalogy",
    "Nearest",
    "OffsetMLP",
    "Questions",
    "Splits",
    "UnknownWordError",
    "WordVectors",
    "bats_questions",
    "evaluate",
    "google_pairs",
    "google_questions",
    "nearest",
    "offset",
]
