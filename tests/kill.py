"""Kills commands at random moments and looks at what they leave; run as a script, it prints the outcome as JSON.

Everything is imported once; each command runs in a fork, so that a kill costs a fraction of a second. Units of
experiments run in that fork itself, not in workers of their own: what is tested is what is in the files.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from cases import without_times

from abelnet import LawRegressor, cli, files
from abelnet.engines import learning
from abelnet.engines.columns import Columns
from abelnet.experiments import running
from abelnet.experiments.analogies import experiment as analogies
from abelnet.experiments.synthetic import comparison as synthetic
from abelnet.reporting import laws
from abelnet.words import WordVectors

LAWS = {"sum": lambda a, b: a + b, "product": lambda a, b: a * b}
FORMULAS = {"sum": "x∘y = x + y", "product": "x∘y = x·y"}
OPTIONS = ["--value", "a", "--value", "b", "--target", "y"]


@dataclass
class Outcome:
    """What became of the kills."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Child:
    """Command in a fork; its first byte on the pipe says that it has begun to write."""

    def __init__(self, arguments: Sequence[str], prepare: Callable[[], None] = lambda: None) -> None:
        self.pipe, write = os.pipe()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.started = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _run(arguments, write, self.errors.fileno(), prepare)
        os.close(write)

    def wait_for_write(self) -> None:
        os.read(self.pipe, 1)

    def kill(self) -> bool:
        """Kills it, and returns whether it was still running."""
        os.kill(self.pid, signal.SIGKILL)
        return os.WIFSIGNALED(self._end())

    def finish(self) -> tuple[int, str]:
        """Returns exit code and output of errors."""
        code = os.waitstatus_to_exitcode(self._end_status())
        self.errors.seek(0)
        return code, self.errors.read().decode()

    def _end(self) -> int:
        return self._end_status()

    def _end_status(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pipe)
        return status


def _run(arguments: Sequence[str], pipe: int, errors: int, prepare: Callable[[], None]) -> None:
    """Runs a command, in the child, and ends the process."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(errors, 2)
        sys.argv = ["abelnet", *arguments]
        touch = Path.touch

        def tell(self: Path, *args: Any, **kwargs: Any) -> None:
            os.write(pipe, b"w")
            touch(self, *args, **kwargs)

        Path.touch = tell  # type: ignore[method-assign]
        prepare()
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.stderr.flush()
        os._exit(code)


def table(path: Path, law: str, rows: int = 60) -> Path:
    rng = random.Random(law)
    pairs = [(rng.uniform(0.5, 2), rng.uniform(0.5, 2)) for _ in range(rows)]
    path.write_text("\n".join(["a,b,y", *(f"{a!r},{b!r},{LAWS[law](a, b)!r}" for a, b in pairs)]))
    return path


def leftovers(folder: Path) -> list[Path]:
    return list(folder.glob("*.abelnet-*.tmp"))


def check_law(folder: Path, outcome: Outcome, case: str) -> None:
    """Looks whether a folder holds one law: that of its formula, of its numbers and of its report."""
    model = LawRegressor.load(folder)
    name = next((name for name, formula in FORMULAS.items() if formula == model.laws_[0].formula), None)
    result = float(model.predict([[3.0, 5.0]]).reshape(-1)[0])
    report = folder / "report.html"
    text = report.read_text(encoding="utf-8") if report.exists() else None
    shown = None if text is None else [one for one, formula in FORMULAS.items() if f'alttext="{formula}"' in text]
    if name is None or abs(result - LAWS[name](3.0, 5.0)) > 1e-6:
        outcome.faults.append(f"{case}: {model.laws_[0].formula} gives {result}")
    elif shown is not None and shown != [name]:
        outcome.faults.append(f"{case}: the law is {name}, the report shows {shown}")
    if text is not None and not text.rstrip().endswith("</html>"):
        outcome.faults.append(f"{case}: the report is cut off")
    outcome.counts[f"holds the {name}"] += 1


def kill_learn(count: int, seed: int, folder: Path) -> Outcome:
    """Kills ``learn`` over a folder with another law; 70 % of the kills are aimed at the write."""
    outcome, rng, out = Outcome(), random.Random(seed), folder / "law"
    examples = {law: table(folder / f"{law}.csv", law) for law in LAWS}
    commands = {law: ["learn", str(path), *OPTIONS, "--out", str(out)] for law, path in examples.items()}
    whole = writing = 0.0
    for law in LAWS:
        child = Child(commands[law])
        child.wait_for_write()
        began = time.monotonic()
        code, errors = child.finish()
        assert code == 0, errors
        whole, writing = time.monotonic() - child.started, time.monotonic() - began
    while outcome.counts["kills"] < count:
        number = outcome.counts["kills"]
        aimed = number % 10 < 7
        now = next(law for law in LAWS if FORMULAS[law] != LawRegressor.load(out).laws_[0].formula)
        child = Child(commands[now])
        if aimed:
            child.wait_for_write()
        time.sleep(rng.uniform(0, 1.1 * (writing if aimed else whole)))
        killed = child.kill()
        outcome.counts["kills" if killed else "ended before"] += 1
        outcome.counts["kills in the write"] += killed and aimed
        outcome.counts["leftovers"] += len(leftovers(out))
        check_law(out, outcome, f"learn {seed}/{number}")
    code, errors = Child(commands["sum"]).finish()
    if code or leftovers(out) or errors or not (out / "report.html").exists():
        outcome.faults.append(f"learn: after all kills, exit {code}, {errors!r} and {leftovers(out)}")
    return outcome


def kill_apply(count: int, seed: int, folder: Path) -> Outcome:
    """Kills ``apply`` over a file with other results."""
    out = folder / "result.csv"
    learned = ["learn", str(table(folder / "t.csv", "sum")), *OPTIONS, "--out", str(folder / "law")]
    assert Child(learned).finish()[0] == 0
    tables = [table(folder / f"{rows}.csv", "sum", rows) for rows in (3000, 4000)]
    commands = [["apply", str(folder / "law"), str(data), *OPTIONS[:4], "--out", str(out)] for data in tables]
    return kill_over(out, commands, count, seed)


def kill_export(count: int, seed: int, folder: Path) -> Outcome:
    """Kills ``export`` over the query of another law."""
    out, commands = folder / "law.sql", []
    for law in LAWS:
        learned = ["learn", str(table(folder / f"{law}.csv", law)), *OPTIONS, "--out", str(folder / law)]
        assert Child(learned).finish()[0] == 0
        commands.append(["export", str(folder / law), "--to", "sql", "--out", str(out)])
    return kill_over(out, commands, count, seed)


def kill_over(out: Path, commands: list[list[str]], count: int, seed: int) -> Outcome:
    """Kills two commands that write the same file in turn: it is that of one of them."""
    outcome, rng, results, folder = Outcome(), random.Random(seed), [], out.parent
    for command in commands:
        child = Child(command)
        child.wait_for_write()
        began = time.monotonic()
        assert child.finish()[0] == 0
        whole, writing = time.monotonic() - child.started, time.monotonic() - began
        results.append(out.read_bytes())
    while outcome.counts["kills"] < count:
        number = outcome.counts["kills"]
        child = Child(commands[1 - results.index(out.read_bytes())])
        if number % 2:
            child.wait_for_write()
        time.sleep(rng.uniform(0, 1.1 * (writing if number % 2 else whole)))
        outcome.counts["kills" if child.kill() else "ended before"] += 1
        outcome.counts["leftovers"] += len(leftovers(folder))
        if out.read_bytes() not in results:
            outcome.faults.append(f"{commands[0][0]} {seed}/{number}: neither old nor new")
            break
    code, errors = Child(commands[0]).finish()
    if code or errors or leftovers(folder) or out.read_bytes() != results[0]:
        outcome.faults.append(f"{commands[0][0]}: after all kills, exit {code}, {errors!r} and {leftovers(folder)}")
    return outcome


def in_this_process() -> None:
    """Makes experiments run their units in the process itself."""

    def run_units(function: Any, units: Any, on_unit: Any = None, **_: Any) -> None:
        for unit in units:
            function(unit, lambda part: None)

    for module in (running, synthetic, analogies):
        module.run_units = run_units  # type: ignore[attr-defined]


def kill_experiment(arguments: list[str], count: int, seed: int, folder: Path) -> Outcome:
    """Kills an experiment again and again; each time that one finishes, its results are those of a run in peace."""
    outcome, rng = Outcome(), random.Random(seed)
    child = Child([*arguments, "--out", str(folder / "whole")], in_this_process)
    code, errors = child.finish()
    assert code == 0, errors
    whole = time.monotonic() - child.started
    expected = json.dumps(without_times(folder / "whole" / "results.json"))
    out = folder / "killed"
    while True:
        child = Child([*arguments, "--out", str(out)], in_this_process)
        last = outcome.counts["kills"] >= count
        if not last:
            time.sleep(rng.uniform(0, 0.6 * whole))
            if child.kill():
                outcome.counts["kills"] += 1
                outcome.counts["leftovers"] += sum(len(leftovers(path.parent)) for path in out.rglob("*"))
                for path in out.rglob("*.json"):
                    files.read_json(path)  # whole, or not there
                continue
        else:
            code, errors = child.finish()
            if code:
                outcome.faults.append(f"{arguments[0]} {seed}: exit {code}, {errors}")
                return outcome
        outcome.counts["finished"] += 1
        if not (out / "results.json").exists():
            outcome.faults.append(f"{arguments[0]} {seed}: ended without results")
            return outcome
        if json.dumps(without_times(out / "results.json")) != expected:
            outcome.faults.append(f"{arguments[0]} {seed}: other results after {outcome.counts['kills']} kills")
        left = [path for place in (out, *out.rglob("*/")) for path in leftovers(place)]
        if left:
            outcome.faults.append(f"{arguments[0]} {seed}: {left} left")
        if last:
            return outcome
        shutil.rmtree(out)


def synthetic_arguments() -> list[str]:
    options = ["--op", "sum", "--model", "agn", "--model", "deepsets", "--trials", "4", "--seeds", "2"]
    return ["synthetic", *options, "--epochs", "12"]


def analogies_arguments(folder: Path) -> list[str]:
    """Arguments of the experiment on analogies, with data in a folder."""
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    generator = torch.Generator().manual_seed(0)
    words, rows = ["boy", "girl", "king", "queen"], [torch.randn(4, 10, generator=generator)]
    for i, name in enumerate(("1_Inflectional/I01 [noun - plural_reg]", "3_Encyclopedic/E01 [country - capital]")):
        path = folder / "bats" / f"{name}.txt"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"a{i}x{j}\tb{i}x{j}\n" for j in range(20)))
        first = torch.randn(20, 10, generator=generator)
        words += [f"{side}{i}x{j}" for side in "ab" for j in range(20)]
        rows += [first, first + torch.randn(10, generator=generator) + 0.3 * first.square()]
    WordVectors(words, torch.cat(rows)).save(folder / "vectors.txt")
    options = ["--vectors", str(folder / "vectors.txt"), "--bats", str(folder / "bats"), "--seeds", "1"]
    options += ["--model", "wv", "--model", "wv_agn", "--model", "anchored", "--epochs", "5"]
    return ["analogies", "run", *options]


def kill_synthetic(count: int, seed: int, folder: Path) -> Outcome:
    return kill_experiment(synthetic_arguments(), count, seed, folder)


def kill_analogies(count: int, seed: int, folder: Path) -> Outcome:
    return kill_experiment(analogies_arguments(folder), count, seed, folder)


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def fill_disk_of_experiment(arguments: list[str], place: Path, prepare: Callable[[], None], outcome: Outcome) -> None:
    """Runs an experiment where there is no space: it ends in one line, and every file that it leaves is whole."""
    out = place / arguments[0]

    def without_space() -> None:
        in_this_process()
        prepare()

    code, errors = Child([*arguments, "--out", str(out)], without_space).finish()
    outcome.counts["refused in one line"] += code == 2 and errors.count("\n") == 1
    if code != 2 or errors.count("\n") != 1 or not errors.startswith("abelnet: "):
        outcome.faults.append(f"{place.name}, {arguments[0]}: exit {code}, {errors!r}")
    for path in out.rglob("*.json"):
        files.read_json(path)  # whole, or not there
    left = [path for folder in (out, *out.rglob("*/")) for path in leftovers(folder)]
    if left or (out / "results.json").exists():
        outcome.faults.append(f"{place.name}, {arguments[0]}: left {left}, or results")


def fill_disk(count: int, seed: int, folder: Path) -> Outcome:
    """Runs all commands with a limit on file sizes, and on a full file system where one can be mounted."""
    outcome = Outcome()
    experiments = [synthetic_arguments(), analogies_arguments(folder)]
    examples = {law: table(folder / f"{law}.csv", law) for law in LAWS}
    mounted = folder / "mounted"
    mounted.mkdir()
    can_mount = os.system(f"mount -t tmpfs -o size=1m tmpfs {mounted} 2>/dev/null") == 0
    outcome.counts["full file system: not allowed to mount"] += not can_mount
    try:
        for place in [folder / "limited", *([mounted] if can_mount else [])]:
            place.mkdir(exist_ok=True)
            law, result = place / "law", place / "result.csv"
            learn = {name: ["learn", str(path), *OPTIONS, "--out", str(law)] for name, path in examples.items()}
            apply = {
                name: ["apply", str(law), str(path), *OPTIONS[:4], "--out", str(result)]
                for name, path in examples.items()
            }
            assert Child(learn["sum"]).finish() == (0, "")
            assert Child(apply["sum"]).finish() == (0, "")
            if place == mounted:
                (law / "report.html").unlink()  # or learn would find the space that it frees
                with suppress(OSError), (place / "filler").open("wb", buffering=0) as file:
                    while True:
                        file.write(b"x" * 512)
            before = (law / "model.safetensors").read_bytes(), result.read_bytes()
            limit = (lambda: None) if place == mounted else limit_files
            export = ["export", str(law), "--to", "sql", "--table", "t" * 1000, "--out", str(result)]
            for command in (learn["product"], apply["product"], export):
                code, errors = Child(command, limit).finish()
                outcome.counts["refused in one line"] += code == 2 and errors.count("\n") == 1
                if code != 2 or errors.count("\n") != 1 or not errors.startswith("abelnet: "):
                    outcome.faults.append(f"{place.name}, {command[0]}: exit {code}, {errors!r}")
                if leftovers(law) or leftovers(place):
                    outcome.faults.append(f"{place.name}, {command[0]}: left {leftovers(law)} and {leftovers(place)}")
                if ((law / "model.safetensors").read_bytes(), result.read_bytes()) != before:
                    outcome.faults.append(f"{place.name}, {command[0]}: changed the old file")
                outcome.counts[errors.partition("got: ")[2].strip()] += 1
            check_law(law, outcome, place.name)
            for arguments in experiments:
                fill_disk_of_experiment(arguments, place, limit, outcome)
    finally:
        if can_mount:
            os.system(f"umount {mounted}")
    return outcome


KILLS = {
    "learn": kill_learn,
    "apply": kill_apply,
    "export": kill_export,
    "synthetic": kill_synthetic,
    "analogies": kill_analogies,
    "full": fill_disk,
}


def main() -> None:
    name, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        # Imports what fitting and reading tables need.
        columns = Columns(("a", "b"), targets=("y",))
        laws.write_law(learning.learn_table(table(Path(folder) / "first.csv", "sum"), columns), folder, columns)
    with tempfile.TemporaryDirectory() as folder:
        outcome = KILLS[name](count, seed, Path(folder))
    print(json.dumps({**outcome.counts, "faults": outcome.faults}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
