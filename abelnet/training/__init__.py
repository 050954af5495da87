"""Training loop with checkpoints that resume bit for bit, stacks of many models, and hyperparameter search."""

from abelnet.training.loop import TrainingResult, train
from abelnet.training.settings import Data, Loss, Settings, Validate

__all__ = ["Data", "Loss", "Settings", "TrainingResult", "Validate", "train"]
