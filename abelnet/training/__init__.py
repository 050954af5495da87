"""One training loop, checkpoints that resume bit for bit, many models at once, hyper-parameter search."""

from abelnet.training.loop import Data, Loss, Settings, TrainingResult, Validate, train

__all__ = ["Data", "Loss", "Settings", "TrainingResult", "Validate", "train"]
