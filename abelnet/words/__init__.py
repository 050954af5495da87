"""Word vectors, analogy questions and exact retrieval over whole vocabularies."""

from abelnet.words.completing import Completion, Examples, complete
from abelnet.words.evaluation import Evaluation, evaluate, offset
from abelnet.words.losses import AnchoredLoss, CosineLoss
from abelnet.words.models import GroupAnalogy, Offset, OffsetMLP
from abelnet.words.questions import Pairs, Questions, Splits, bats_questions, google_pairs, google_questions
from abelnet.words.retrieval import Nearest, nearest
from abelnet.words.shots import evaluate_methods, named_pairs
from abelnet.words.vectors import UnknownWordError, WordVectors

__all__ = [
    "AnchoredLoss",
    "Completion",
    "CosineLoss",
    "Evaluation",
    "Examples",
    "GroupAnalogy",
    "Nearest",
    "Offset",
    "OffsetMLP",
    "Pairs",
    "Questions",
    "Splits",
    "UnknownWordError",
    "WordVectors",
    "bats_questions",
    "complete",
    "evaluate",
    "evaluate_methods",
    "google_pairs",
    "google_questions",
    "named_pairs",
    "nearest",
    "offset",
]
