"""Runs every command of the installed abelnet, small; each has to work, or to name in one line the extra that it wants.

Run by ``make test-wheel`` in an environment that has the wheel and its core dependencies, from a folder without the
sources. Prints what each command said, and ends with 1 if one said anything else.
"""

from __future__ import annotations

__all__ = ["COMMANDS", "main"]

import importlib
import json
import math
import os
import pkgutil
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

# Arguments of each command, and the extra that it wants; none if it has to work.
COMMANDS: list[tuple[str, str]] = [
    ("--version", ""),
    ("learn returns.csv --set account --value return --target total --out law", ""),
    ("apply law returns.csv --set account --value return --out totals.csv --intervals", ""),
    ("apply law returns.csv --set account --value return --out totals.parquet", ""),
    ("apply law returns.csv --set account --value return --out totals.sqlite", ""),
    ("apply law returns.csv --set account --value return --out t.csv --scheduler tcp://127.0.0.1:9", "dask"),
    ("export law --to sql --table returns --set account --value return", ""),
    ("export law --to sql --dialect postgres", "sql"),
    ("export law --to python", ""),
    ("export law --to javascript", ""),
    ("export law --to latex", ""),
    ("export law --to onnx --out law.onnx", "onnx"),
    ("certify law --size 10", ""),
    ("certify cbrt --size 10 --sets 100 --epochs 2", ""),
    ("universality --dim 2 --epochs 1", ""),
    ("reproduce --epochs 1 --network-epochs 2 --jobs 1", ""),
    ("synthetic --op sum --model agn --trials 1 --seeds 1 --epochs 1 --jobs 1", "tune"),
    ("graphs --task noisy_or --form aligned --model bank --seeds 1 --steps 2 --jobs 1", ""),
    ("graphs --task noisy_or --form aligned --model pna --seeds 1 --steps 2 --jobs 1", "graphs"),
    ("sets --task digits --model lme --runs 1 --epochs 1 --jobs 1", "sets"),
    ("sets --task digits --model pna --runs 1 --epochs 1 --jobs 1", "sets"),
    ("analogies run --model wv --seeds 1 --jobs 1", ""),
    ("analogies table", ""),
    ("analogies several --shots 1 --method 3cosavg --jobs 1", ""),
    ("words ask king man woman --topn 3", ""),
    ("words ask king man woman --model agn --topn 3", ""),
    ("words complete --pair france:paris --pair italy:rome germany --topn 3", ""),
    ("words evaluate --limit 5000", ""),
    ("words evaluate --limit 5000 --shots 3", ""),
    ("words judge sat.txt --model wv --model agn", ""),
    ("words convert vectors.txt vectors.safetensors", ""),
    ("explore --help", ""),  # the page itself is served below
]
_SUMS = "a,b,s\n" + "".join(f"{i},{i * i},{i + i * i}\n" for i in range(20))
# Tasks of the page, with their arguments.
TASKS = {
    "learn": {"text": _SUMS, "values": ["a", "b"], "targets": ["s"]},
    "analogies": {"pairs": ["man:woman"], "words": ["king"]},
    "multisets": {"operation": "sum", "size": 100, "seed": 0},
}


def main() -> None:
    """Imports all modules, serves the page, and runs all commands."""
    wrong = _imports() + _page()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_inputs(folder)
        for arguments, extra in COMMANDS:
            wrong += not _runs(arguments, extra, folder)
    print(f"{len(COMMANDS)} commands; wrong: {wrong}")
    raise SystemExit(1 if wrong else 0)


def _runs(arguments: str, extra: str, folder: Path) -> bool:
    """Runs a command in a folder with an empty home; returns whether it did as it should."""
    command = [str(Path(sys.executable).parent / "abelnet"), *arguments.split()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=environment | {"HOME": str(folder)}, capture_output=True, text=True, check=False
    )
    if extra:
        hint = f'pip install "abelnet[{extra}]"'
        right = done.returncode == 2 and done.stderr.count("\n") == 1 and hint in done.stderr and not done.stdout
    else:
        right = done.returncode == 0 and not done.stderr and bool(done.stdout)
    right = right and "\x1b" not in done.stdout + done.stderr
    seconds = time.monotonic() - start
    print(f"== {'ok' if right else 'WRONG'}, exit code {done.returncode}, {seconds:.1f} s: abelnet {arguments}")
    print(done.stdout + done.stderr, flush=True)
    return right


def _page() -> int:
    """Serves the page and runs its tasks; returns how many fail."""
    command = [str(Path(sys.executable).parent / "abelnet"), "explore", "--no-browser", "--port", "0"]
    wrong = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[1]
        for name, given in TASKS.items():
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"{address}api/{name}", json.dumps(given).encode(), headers)
            with urllib.request.urlopen(request) as response:
                answer = json.loads(response.read().splitlines()[-1])
            print(f"== {'ok' if 'result' in answer else 'WRONG'}: task {name} of the page", answer.get("error", ""))
            wrong += "result" not in answer
        process.send_signal(signal.SIGINT)
    return wrong + (process.returncode != 130)


def _imports() -> int:
    """Imports all modules and their names; returns how many neither load nor name an extra.

    Compiled kernels are private, and imported only where numba is installed.
    """
    import abelnet

    wrong = 0
    for module in pkgutil.walk_packages(abelnet.__path__, "abelnet."):
        try:
            loaded = importlib.import_module(module.name)
            for name in getattr(loaded, "__all__", ()):
                getattr(loaded, name)
        except ImportError as error:
            named = 'pip install "abelnet[' in str(error) or error.name in ("numba", "llvmlite")
            wrong += not named
            print(f"== {'ok' if named else 'WRONG'}: import {module.name}: {error}")
    for name in abelnet.__all__:
        getattr(abelnet, name)
    return wrong


def _write_inputs(folder: Path) -> None:
    """Writes a table of returns that compound, a multiple-choice question, and three word vectors."""
    generator = random.Random(0)
    lines = ["account,return,total"]
    for account in range(60):
        returns = [round(generator.uniform(-0.2, 0.3), 4) for _ in range(generator.randint(2, 4))]
        total = math.prod(1 + one for one in returns) - 1
        lines += [f"a{account},{one},{total!r}" for one in returns]
    (folder / "returns.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    question = "190 FROM REAL SATs\nfrance paris n:n\nbread butter n:n\nitaly rome n:n\nb\n"
    (folder / "sat.txt").write_text(question, encoding="utf-8")
    (folder / "vectors.txt").write_text("up 0 1\ndown 0 -1\nleft 1 0\n", encoding="utf-8")


if __name__ == "__main__":
    main()
