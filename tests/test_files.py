"""Files that take the place of others in one step."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from abelnet import AbelnetError
from abelnet.files import read_json, replacing, write_json, write_text

WRITER = """
import sys, time
from pathlib import Path
from abelnet.files import replacing

with replacing(Path(sys.argv[1])):
    print("writing", flush=True)
    time.sleep(600)
"""


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old – ∘")

    def fail() -> None:
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "old – ∘"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.txt"]


def test_whoever_may_read_other_files_may_read_these(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with replacing(tmp_path / "model.safetensors") as temporary:
        save_file({"x": torch.zeros(1)}, temporary)
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_threads_write_to_files_of_their_own(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as one, replacing(tmp_path / "a") as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert (tmp_path / "a").read_text() == "one"


def test_what_a_killed_process_has_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    foreign = [tmp_path / name for name in ("a.txt.1234.tmp", "mine.tmp", "a.abelnet-x-y.tmp")]
    for one in foreign:
        one.touch()
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
    assert len(list(tmp_path.glob("*.abelnet-*.tmp"))) == 2 + 1
    processes[0].kill()
    processes[0].communicate()
    write_text(tmp_path / "b.txt", "new")
    left = set(tmp_path.iterdir()) - {tmp_path / "b.txt", *foreign}
    assert len(left) == 1
    assert f"-{processes[1].pid}-" in left.pop().name  # it is still writing
    processes[1].kill()
    processes[1].communicate()
    write_text(tmp_path / "b.txt", "new")
    assert set(tmp_path.iterdir()) == {tmp_path / "b.txt", *foreign}


def test_files_of_other_machines_are_swept_after_a_day(tmp_path: Path) -> None:
    node = re.sub(r"[^\w-]", "-", platform.node())[:32]
    fresh, old = (tmp_path / f"a.abelnet-{host}-1-0123abcd.tmp" for host in ("elsewhere", "another"))
    running = tmp_path / f"a.abelnet-{node}-{os.getpid()}-0123abcd.tmp"
    for path in (fresh, old, running):
        path.touch()
    day_ago = time.time() - 25 * 3600
    os.utime(old, (day_ago, day_ago))
    write_text(tmp_path / "b.txt", "new")
    assert set(tmp_path.iterdir()) == {fresh, running, tmp_path / "b.txt"}


def test_processes_are_asked_for_only_where_that_is_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """os.kill(pid, 0) ends the process on Windows."""
    node = re.sub(r"[^\w-]", "-", platform.node())[:32]
    dead = tmp_path / f"a.abelnet-{node}-999999999-0123abcd.tmp"
    dead.touch()
    killed: list[int] = []
    monkeypatch.setattr("abelnet.files.os.kill", lambda pid, _: killed.append(pid))
    with monkeypatch.context() as patch:
        patch.setattr("abelnet.files.sys.platform", "win32")
        write_text(tmp_path / "b.txt", "new")
    assert killed == []
    assert dead.exists()


def test_long_names(tmp_path: Path) -> None:
    name = "ü" * 120
    write_text(tmp_path / name, "long")
    assert (tmp_path / name).read_text() == "long"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "got a damaged file"),
        (b'{"rows": [', "got a damaged file"),
        (b"\xff\xfe{}", "got a damaged file"),
        (b"[" * 100_000, "got a damaged file"),
        (b"[]", "content: expected dict, got"),
        (b"{}", "content: expected the key 'rows', got"),
        (b'{"rows": 3}', "rows: expected list, got 3"),
        (b'{"rows": [{"seconds": "x"}]}', r"seconds: expected int \| float, got 'x'"),
    ],
)
def test_a_damaged_file_is_one_line_that_says_what_to_do(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(content)
    with pytest.raises(AbelnetError, match=message) as caught:
        read_json(path, {"rows": [{"seconds": int | float}]})
    assert str(caught.value).startswith(f"{path}: expected") or str(path) in str(caught.value)
    assert str(caught.value).endswith("; remove it, and run the same command again")
    assert "\n" not in str(caught.value)


def test_only_regular_files_of_bounded_size_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(AbelnetError, match=r"a\.json: No such file"):
        read_json(path)
    path.mkdir()
    with pytest.raises(AbelnetError, match="expected a regular file"):
        read_json(path)
    os.mkfifo(tmp_path / "b.json")
    with pytest.raises(AbelnetError, match="expected a regular file"):
        read_json(tmp_path / "b.json")
    with (tmp_path / "c.json").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(AbelnetError, match="expected at most 268435456 bytes, got 1073741824"):
        read_json(tmp_path / "c.json")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    content: dict[str, Any] = {"a": [1, None, "∘"], "b": {"c": 0.5}}
    write_json(tmp_path / "a.json", content)
    assert read_json(tmp_path / "a.json", {"a": list, "b": {str: float}}) == content
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == content


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(AbelnetError, match=r"a: expected a file that can be written, got: Is a directory"):
        write_text(tmp_path / "a", "text")
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
