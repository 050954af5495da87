"""Errors say which extra is missing, and are what other libraries expect."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from abelnet.errors import AbelnetError, MissingExtraError, needs_extra

MODULES = {"hub": "huggingface_hub", "lightning": "pytorch_lightning", "pyg": "torch_geometric"}


def test_modules_without_their_packages_name_the_extra() -> None:
    script = f"""
import sys, importlib
for package in {[*MODULES.values(), "lightning"]}:
    sys.modules[package] = None  # as if it were not installed
for extra in {list(MODULES)}:
    try:
        importlib.import_module("abelnet.integrations." + extra)
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f'abelnet.integrations.{extra}: {package} is not installed; pip install "abelnet[{extra}]"'
        for extra, package in MODULES.items()
    ]


def test_other_errors_pass() -> None:
    with pytest.raises(ImportError, match="cannot import name") as error, needs_extra("hub", "here"):
        from abelnet.errors import not_there  # type: ignore[attr-defined]  # noqa: F401
    assert not isinstance(error.value, MissingExtraError)


def test_a_missing_extra_is_an_error_of_the_caller_and_of_the_import() -> None:
    error = MissingExtraError("here: x is not installed")
    assert isinstance(error, AbelnetError)
    assert isinstance(error, ImportError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.details) == (str(error), ())
