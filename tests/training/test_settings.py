"""Every option that makes no sense is named, with the value that came."""

from __future__ import annotations

from typing import Any

import pytest

from abelnet import AbelnetError
from abelnet.training.settings import Settings


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("epochs", 0, "expected at least 1, got 0"),
        ("epochs", 1.5, r"expected an integer, got 1\.5"),
        ("batch_size", 0, "expected at least 1, got 0"),
        ("validate_every", -3, "expected at least 1, got -3"),
        ("patience", 0, "expected at least 1, got 0"),
        ("lr", 0.0, r"expected a number above 0, got 0\.0"),
        ("lr", float("nan"), "expected a number above 0, got nan"),
        ("betas", (0.9, 1.0), r"expected a number at least 0 and below 1, got 1\.0"),
        ("weight_decay", -1e-3, r"expected a number at least 0, got -0\.001"),
        ("clip_norm", 0, "expected a number above 0, got 0"),
        ("average", 1, "expected a number above 0 and below 1, got 1"),
        ("schedule", "linear", 'expected "constant" or "cosine", got \'linear\''),
    ],
)
def test_bad_options(option: str, value: Any, message: str) -> None:
    with pytest.raises(AbelnetError, match=f"^{option}: {message}$"):
        Settings(**{option: value})
