"""Code that is given back is mapped again when it is used, and takes no memory until then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from abelnet.engines.pages import release_code

STATUS = Path("/proc/self/status")

PROGRAM = r"""
import re
from pathlib import Path
import torch
from abelnet.engines.pages import release_code

def mapped():  # resident bytes of files
    return 1024 * int(re.search(r"RssFile:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])

matrix = torch.randn(50, 50, dtype=torch.float64)
expected, before = torch.linalg.inv(matrix), mapped()
assert release_code(Path(torch.__file__).parent) > 10**7
assert mapped() < before - 10**7
assert torch.equal(torch.linalg.inv(matrix), expected)
assert mapped() < before
"""


@pytest.mark.skipif(not STATUS.exists(), reason="resident memory is read from /proc")
def test_code_is_given_back_and_runs_again() -> None:
    # In a process of its own: what other tests run in this one would be measured, too.
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


def test_other_folders_keep_theirs(tmp_path: Path) -> None:
    assert release_code(tmp_path) == 0
