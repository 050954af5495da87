"""Training progress: one line of JSON per epoch, and a progress bar."""

from __future__ import annotations

__all__ = ["Bar", "History"]

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from abelnet.files import write_text


@dataclass
class History:
    """Log file with one line of JSON per epoch; resumed training appends from its checkpoint on."""

    path: str | Path | None
    epoch: int

    def __post_init__(self) -> None:
        if self.path is not None:
            self.path = Path(self.path)
            old = self.path.read_bytes().decode("utf-8", "replace") if self.epoch > 0 and self.path.exists() else ""
            write_text(self.path, "".join(f"{line}\n" for line in old.splitlines()[: self.epoch]))

    def write(self, epoch: int, loss: Tensor, validation: Tensor | None) -> None:
        """Appends a line."""
        if self.path is not None:
            row: dict[str, Any] = {"epoch": epoch, "loss": loss.tolist()}
            if validation is not None:
                row["validation"] = validation.tolist()
            with Path(self.path).open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


class Bar:
    """Progress bar on a terminal; silent elsewhere."""

    def __init__(self, text: str | None, total: int, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console()
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[loss]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=text is None or not console.is_terminal,
        )
        self.task = self.progress.add_task(text or "", total=total, completed=done, loss="")

    def __enter__(self) -> Callable[[Tensor], None]:
        self.progress.start()
        return self._advance

    def _advance(self, loss: Tensor) -> None:
        if not self.progress.disable:
            self.progress.update(self.task, advance=1, loss=f"loss {loss.nanmean().item():.3g}")

    def __exit__(self, *_: object) -> None:
        self.progress.stop()
