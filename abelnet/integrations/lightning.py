"""Gated banks in models trained by Lightning; requires the extra ``abelnet[lightning]``."""

from __future__ import annotations

__all__ = ["AnnealBanks"]

from typing import TYPE_CHECKING, Any

import torch

from abelnet.errors import needs_extra
from abelnet.nn import GatedBank

if TYPE_CHECKING:
    Callback = object
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:  # the older package of the same code
        with needs_extra("lightning", "abelnet.integrations.lightning"):
            from pytorch_lightning.callbacks import Callback


class AnnealBanks(Callback):
    """Callback that tells every :class:`~abelnet.nn.GatedBank` of a model how far training has come.

    Before each step it calls :meth:`~abelnet.nn.GatedBank.anneal` with the completed fraction of all steps and the last
    loss, so that at half of the training each channel has chosen its law.

    Example::

        trainer = lightning.Trainer(max_epochs=50, callbacks=[AnnealBanks()])
        trainer.fit(model, loader)
        model.aggregation.laws()
    """

    def __init__(self) -> None:
        self.loss: float | None = None

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        progress = min(1.0, trainer.global_step / max(1, trainer.estimated_stepping_batches))
        for module in pl_module.modules():
            if isinstance(module, GatedBank):
                module.anneal(progress, self.loss)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        loss = outputs["loss"] if isinstance(outputs, dict) else outputs
        self.loss = float(loss) if isinstance(loss, torch.Tensor) else None

    def state_dict(self) -> dict[str, Any]:
        return {"loss": self.loss}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.loss = state_dict["loss"]
