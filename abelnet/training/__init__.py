"""One training loop, checkpoints that resume bit for bit, many models at once, hyper-parameter search."""

from abelnet.training.loop import TrainingResult, train
from abelnet.training.settings import Data, Loss, Settings, Validate

__all__ = ["Data", "Loss", "Settings", "TrainingResult", "Validate", "train"]
