"""Units of work in processes: each is run once, progress adds up, and workers do not outlive their parent."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from cases import kill_when, wait_until

from abelnet import AbelnetError
from abelnet.experiments.running import claim_folder, derived_seed, run_units, write_results

SCRIPT = """
import sys, time
from functools import partial
from pathlib import Path
from test_running import hang
from abelnet.experiments.running import run_units

if __name__ == "__main__":
    run_units(partial(hang, Path(sys.argv[1])), [(0,), (1,)], jobs=2)
"""


def touch(folder: Path, unit: tuple[int], tell: Callable[[float], None]) -> None:
    tell(0.5)
    (folder / f"{unit[0]}-{os.getpid()}").touch()


def fail(unit: tuple[int], tell: Callable[[float], None]) -> None:
    raise AbelnetError(f"unit {unit[0]}: no")


def hang(folder: Path, unit: tuple[int], tell: Callable[[float], None]) -> None:
    (folder / f"{os.getpid()}.pid").touch()
    time.sleep(600)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_each_unit_is_run_once_in_another_process(tmp_path: Path) -> None:
    done: list[tuple[int]] = []
    progress: list[float] = []
    units = [(i,) for i in range(4)]
    run_units(partial(touch, tmp_path), units, on_unit=done.append, on_progress=progress.append)
    names = [path.name.split("-") for path in sorted(tmp_path.iterdir())]
    assert [number for number, _ in names] == ["0", "1", "2", "3"]
    assert str(os.getpid()) not in {pid for _, pid in names}
    assert sorted(done) == units
    assert progress == sorted(progress)
    assert progress[-1] == 1.0


def test_an_error_in_a_unit_is_raised() -> None:
    with pytest.raises(AbelnetError, match="unit 7: no"):
        run_units(fail, [(7,)])


def fail_or_hang(folder: Path, unit: tuple[int], tell: Callable[[float], None]) -> None:
    if unit[0] == 0:
        while not list(folder.glob("*.pid")):
            time.sleep(0.01)
        raise AbelnetError("unit 0: no")
    hang(folder, unit, tell)


def test_an_error_in_a_unit_does_not_wait_for_others(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match="unit 0: no"):
        run_units(partial(fail_or_hang, tmp_path), [(0,), (1,)], jobs=2)
    assert multiprocessing.active_children() == []


def die(unit: tuple[int], tell: Callable[[float], None]) -> None:
    os._exit(1)


def test_a_worker_that_dies_is_one_line() -> None:
    with pytest.raises(
        AbelnetError, match="but one was killed, perhaps for lack of memory; run the same command again"
    ):
        run_units(die, [(0,)])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(SCRIPT)
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "main.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2, process)
    workers = [int(path.stem) for path in tmp_path.glob("*.pid")]
    assert all(running(pid) for pid in workers)
    kill_when(process, lambda: True)
    deadline = time.monotonic() + 20
    while any(running(pid) for pid in workers):
        assert time.monotonic() < deadline, "workers outlived their parent"
        time.sleep(0.01)


def test_a_folder_keeps_one_experiment(tmp_path: Path) -> None:
    claim_folder(tmp_path, {"epochs": 3, "models": ("a", "b")})
    claim_folder(tmp_path, {"epochs": 3, "models": ("a", "b")})
    with pytest.raises(AbelnetError, match=r'to be empty or have the same settings, got .*"epochs": 3'):
        claim_folder(tmp_path, {"epochs": 4, "models": ("a", "b")})
    (tmp_path / "experiment.json").write_text('{"epochs')
    with pytest.raises(AbelnetError, match=r"experiment\.json: expected JSON .* a damaged file .*; remove it, and run"):
        claim_folder(tmp_path, {"epochs": 4})


def test_a_damaged_part_is_one_line(tmp_path: Path) -> None:
    part = tmp_path / "a.json"
    part.write_text('{"seconds": 1.0, "rmse": []}')
    assert write_results(tmp_path, {}, [part], 2.0, {"rmse": list})["seconds_in_units"] == 1.0
    for content in ("", "[]", '{"seconds": 1.0}', '{"rmse": []}'):
        part.write_text(content)
        with pytest.raises(AbelnetError, match=r"a\.json: .*; remove it, and run the same command again"):
            write_results(tmp_path, {}, [part], 2.0, {"rmse": list})


def test_derived_seeds_never_collide() -> None:
    purposes = ("data", "search", "fresh", "sizes")
    seeds = {derived_seed(seed, purpose, i) for seed in (0, 1) for purpose in purposes for i in range(3000)}
    assert len(seeds) == 2 * len(purposes) * 3000
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert derived_seed(0, "data") == derived_seed(0, "data")
