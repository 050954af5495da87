"""Seeded fuzzer of model files and word-vector files; run as a script, it prints what became of each mutation as JSON.

Most mutations of models recompute the checksum, as a hostile writer would. For each, it measures the time, less that in
which a busy machine ran other processes, and the growth of the resident set (``VmHWM`` after a reset; memory that is
reserved but never touched does not count, but more than 4 GB of it is refused by ``RLIMIT_AS``).
"""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from cases import BIJECTIONS, FAMILY_CASES, LAWS, VECTOR_CASES, vectors
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

import abelnet
from abelnet import AbelnetError, Bijection, ExtrapolationWarning, LawRegressor, Operation
from abelnet.discovery import LearnedLaw
from abelnet.discovery.seen import Seen
from abelnet.nn import MLP, DeepSets
from abelnet.saving import checksum
from abelnet.words import GroupAnalogy, OffsetMLP, WordVectors
from abelnet.words.models import AnalogyModel

SECONDS = 5.0
SLACK = 200e6
Random = random.Random
NUMBERS = [0, 1, -1, 2, 3, 1024, 10**6, 10**12, 10**400, 0.0, -0.0, 0.5, 1e308, -1e308, 1e-320, 1e30, -1e30, 710.0]
VALUES: list[Any] = [
    *NUMBERS,
    *(None, True, False, "", "x", "nan", "power", "logarithm", "é\x00", "x" * 10_000),
    *([], {}, [[]], [0.0] * 50, ["x"], [[1e308]], {"x": 1}),
    *({"$float": word} for word in ("nan", "inf", "-inf", "1e999", "x", "", "0x1")),
    *({"$float": thing} for thing in ([1], None, {}, 3)),
    {"$class": "abelnet.laws.Sum", "config": {}},
    {"$class": "abelnet.laws.Maximum", "config": {"x": 1}},
    {"$class": "abelnet.bijections.Affine", "config": {"dim": 1}},
    {"$class": "abelnet.bijections.Chain", "config": {"bijections": []}},
    {"$class": "abelnet.bijections.Bijection", "config": {"dim": 1}},
    {"$class": "abelnet.nn.MLP", "config": {"sizes": [10**6, 10**6]}},
    {"$class": "abelnet.config.Configurable", "config": {}},
    {"$class": "abelnet.words.WordVectors", "config": {}},
    {"$class": "abelnet.cli.main", "config": {}},
    {"$class": "builtins.eval", "config": {}},
    {"$class": "abelnet..laws.Sum", "config": {}},
    {"$class": "", "config": []},
    {"$class": None},
]


class Hang(BaseException):
    """Raised by the timer."""


@dataclass
class Results:
    """What became of the mutations."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0
    most_memory: float = 0.0
    most_over: float = -math.inf


# Bases: what is saved and mutated.


def elements(low: float = -3.0, high: float = 3.0, dim: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    low, high = max(low, -2.0), min(high, 2.0)
    return (low + (high - low) * (0.2 + 0.6 * torch.rand(6, dim, generator=generator, dtype=torch.float64))).to(dtype)


def learned(bijection: Bijection, law: str) -> LawRegressor:
    """A model as if it had been learned."""
    seen = Seen((-1e6, 1e6), (-1e9, 1e9), (2, 4))
    one = LearnedLaw(Operation(bijection, LAWS[law]()), law, 0.0, 1.0, [("a", 1, 0.5)], {"group": math.nan}, seen)
    return LawRegressor.from_config(LawRegressor().get_params() | {"flat": True, "laws": [one]})


def models() -> dict[str, tuple[Any, Tensor]]:
    """Models of every kind, and elements of their domain."""
    found: dict[str, tuple[Any, Tensor]] = {}
    for i, (name, make) in enumerate(BIJECTIONS.items()):
        for law in list(LAWS)[i % 3 :: 3]:
            dtype = (torch.float32, torch.float64)[i % 2]
            found[f"{name}-{law}"] = Operation(make(dtype), LAWS[law]()), elements(dtype=dtype)
    for name, (kind, parameters, low, high) in FAMILY_CASES.items():
        generator = abelnet.Generator(3, kind, parameters, dtype=torch.float64)
        found[f"{name}-sum"] = Operation(generator, abelnet.Sum()), elements(low, high)
        curve = abelnet.Chain(
            abelnet.Generator(1, kind, parameters, dtype=torch.float64),
            abelnet.RationalQuadraticSpline(1, bins=4, bound=7.0, dtype=torch.float64),
            abelnet.Affine(1, dtype=torch.float64),
        )
        formula = abelnet.Generator(1, kind, parameters, dtype=torch.float64)
        for law in ("sum", "product", "polynomial", "constant", "maximum", "minimum"):
            found[f"learned-{name}-{law}"] = learned(curve, law), elements(low, high, 1)
        for law in ("sum", "polynomial"):
            found[f"formula-{name}-{law}"] = learned(formula, law), elements(low, high, 1)
    for name, (make_invariants, _, _) in VECTOR_CASES.items():
        found[f"{name}-vectors"] = abelnet.AbelianGroup(make_invariants(torch.float64)), vectors(name, 6)
    even = abelnet.Even(abelnet.Generator(1, "positive power", [2.0], dtype=torch.float64))
    found["formula-even"] = learned(even, "sum"), elements(dim=1)
    found["agn"] = GroupAnalogy(6, 2, 5, seed=0), elements(dim=6, dtype=torch.float32)
    found["mlp-words"] = OffsetMLP(6, 2, 5, seed=0), elements(dim=6, dtype=torch.float32)
    found["deepsets"] = DeepSets(2, 1, 3, 4, seed=0), elements(dim=2, dtype=torch.float32)
    found["mlp"] = MLP([2, 4, 1], seed=0), elements(dim=2, dtype=torch.float32)
    return found


def has_results(model: Any, x: Tensor) -> bool:
    """Whether a model, as it was made, has finite results: some sums leave the codomain of their generator."""
    try:
        return all(bool(one.isfinite().all()) for one in use(model, x))
    except AbelnetError:
        return False


@torch.no_grad()
def use(model: Any, x: Tensor) -> list[Tensor]:
    """Results of a model, as a user would ask for them; none of a part that is no model."""
    if isinstance(model, LawRegressor):
        sets = [x.numpy().reshape(len(x), -1)[:k] for k in (1, 2, 6)]
        with warnings.catch_warnings(action="error", category=ExtrapolationWarning):
            try:
                results = [torch.as_tensor(model.predict(sets))]
            except ExtrapolationWarning as warning:  # results that are not finite are marked
                raise AbelnetError(str(warning)) from None
        for law in model.laws_:
            _ = law.summary()
        return results
    if isinstance(model, Operation):
        return [model.reduce(x), model(x, x.flip(0))]
    if isinstance(model, AnalogyModel):
        return [model(x[:2], x[2:4], x[4:])]
    if isinstance(model, DeepSets):
        return [model(x[None])]
    return [model(x)] if isinstance(model, MLP) else []


# Mutations of text and bytes.


def scramble(content: bytes, rng: Random) -> bytes:
    """Flips, deletes, inserts, repeats or cuts off bytes."""
    mutated = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        place = rng.randrange(len(mutated) or 1)
        length = rng.choice([1, 2, 4, 8, 64])
        kind = rng.randrange(6)
        if kind == 0 and mutated:
            mutated[place] = rng.randrange(256)
        elif kind == 1:
            del mutated[place : place + length]
        elif kind == 2:
            mutated[place:place] = rng.randbytes(length)
        elif kind == 3:
            mutated[place:place] = mutated[place : place + length]
        elif kind == 4 and mutated:
            mutated[place] ^= 1 << rng.randrange(8)
        elif rng.random() < 0.3:
            del mutated[place:]
    return bytes(mutated)


def paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, part in items:
        yield from paths(part, (*path, key))


def mutated_tree(tree: Any, rng: Random) -> Any:
    """Replaces, removes, adds or nests a value somewhere in JSON data."""
    tree = json.loads(json.dumps(tree))
    *lead, last = rng.choice(list(paths(tree))[1:])
    parent = tree
    for key in lead:
        parent = parent[key]
    old, kind = parent[last], rng.randrange(8)
    if kind < 3:
        parent[last] = rng.choice(VALUES)
    elif kind == 3 and isinstance(old, int | float):
        parent[last] = old * rng.choice([-1, 2, 0.5, 1e3, 1e-3]) + rng.choice([0, 0, 1, -1])
    elif kind == 4:
        del parent[last]
    elif kind == 5 and isinstance(parent, dict):
        parent[rng.choice(["x", "$class", "$float", "dim", "device", "dtype", "seed", "__init__"])] = rng.choice(VALUES)
    elif kind == 6:
        for _ in range(rng.choice([1, 5, 40, 300])):
            old = rng.choice([[old], {"x": old}]) if rng.random() < 0.1 else [old]
        parent[last] = old
    else:
        parent[last] = rng.choice([[old] * 3, str(old), {"$class": "abelnet.laws.Sum", "config": {"x": old}}])
    return tree


def hostile_text(tree: Any, rng: Random) -> str:
    text = json.dumps(tree)
    kind = rng.randrange(12)
    if kind == 0:
        return scramble(text.encode(), rng).decode(errors="replace")
    if kind == 1:
        return rng.choice(["[", '{"a":', "[[],"]) * rng.choice([50, 2000, 100_000])
    if kind == 2:
        return text.replace("{", '{"format": 1, "config": {}, ', rng.choice([1, 2, 3]))
    if kind == 3:
        return rng.choice(["", "null", "[]", "NaN", "1" * 5000, '"x"', "{}", '{"format": 1}', '{"format": NaN}'])
    if kind == 4:
        numbers = [i for i, letter in enumerate(text) if letter.isdigit()]
        place = rng.choice(numbers)
        return text[:place] + rng.choice(["9" * 400, "9" * 5000, "NaN", "-", "1e999", "Infinity"]) + text[place + 1 :]
    return json.dumps(mutated_tree(tree, rng))


def mutated_tensors(tensors: dict[str, Tensor], rng: Random) -> dict[str, Tensor]:
    """Changes values, dtype, shape or name of a tensor."""
    tensors = {name: x.clone() for name, x in tensors.items()}
    if not tensors:
        return {"x": torch.zeros(rng.choice([0, 1, 5]))}
    name = rng.choice(sorted(tensors))
    x, kind = tensors[name], rng.randrange(10)
    if kind < 4 and x.numel():
        number = rng.choice(
            [math.nan, math.inf, -math.inf, 1e300, -1e300, 1e38, 1e30, 800.0, -800.0, 1e-320, 0.0, -1.0]
        )
        flat = x.reshape(-1)
        if x.is_floating_point():
            value = torch.tensor(number, dtype=torch.float64).to(x.dtype)
            flat[rng.randrange(len(flat))] = value
            if rng.random() < 0.3:
                flat[:] = value
        else:
            flat[rng.randrange(len(flat))] = torch.tensor(rng.choice([-1, 0, 99, 2**31])).to(x.dtype)
        tensors[name] = flat.reshape(x.shape)
    elif kind == 4:
        dtypes = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.int8, torch.uint8]
        tensors[name] = x.to(rng.choice([*dtypes, torch.bool, torch.complex64, torch.float8_e4m3fn]))
    elif kind == 5:
        shapes = [x[None], x[..., None], x.reshape(-1), x.reshape(-1)[:-1], torch.cat([x.reshape(-1)] * 2), x[:0]]
        tensors[name] = rng.choice(shapes).contiguous()
    elif kind == 6:
        tensors[rng.choice(["x", f"{name}.x", name.upper(), ""])] = tensors.pop(name)
    elif kind == 7:
        del tensors[name]
    elif kind == 8:
        tensors[rng.choice(["x", f"x.{name}", "frozen"])] = x.clone()
    elif x.is_floating_point():
        tensors[name] = x * rng.choice([-1.0, 0.0, 1e-30, 1e3, 1e30])
    return tensors


def mutated_header(content: bytes, rng: Random) -> bytes:
    """Changes shapes, offsets or dtypes in the header of a safetensors file, or its length."""
    size = struct.unpack("<Q", content[:8])[0]
    if rng.random() < 0.2:
        return struct.pack("<Q", rng.choice([0, 1, size - 1, size + 1, 10**8, 2**40, 2**63, 2**64 - 1])) + content[8:]
    header = json.loads(content[8 : 8 + size])
    entry = rng.choice([value for value in header.values() if "shape" in value] or [header])
    kind = rng.randrange(4)
    huge = rng.choice([0, 1, -1, 2**31, 2**40, 2**62, 2**63, 2**64, 10**30, 1.5, None, "x"])
    if kind == 0:
        entry["shape"] = rng.choice([[huge], [huge, huge], [*entry.get("shape", []), huge], [1] * 10_000, huge])
    elif kind == 1:
        entry["data_offsets"] = rng.choice([[0, huge], [huge, huge], [huge, 0], huge, [0, 0]])
    elif kind == 2:
        entry["dtype"] = rng.choice(["F64", "F16", "I64", "U8", "BOOL", "X", "F8_E4M3", "C64", None])
    else:
        header = mutated_tree(header, rng)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


def put_special(path: Path, rng: Random) -> None:
    """Puts something that is no regular file of the folder at a path."""
    kind = rng.randrange(6)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to(rng.choice(["/dev/zero", "/dev/null", "/dev/full", "/dev/urandom", "/dev/tty"]))
    elif kind == 2:
        path.mkdir()
    elif kind == 3:
        path.symlink_to(path)
    elif kind == 4:
        path.symlink_to("nowhere")
    else:
        with path.open("wb") as file:
            file.write(rng.choice([b"", b"\x10\0\0\0\0\0\0\0", b"1 2\n", b"9 9\nx "]))
            file.truncate(1 << 30)  # a hole: takes no space


# What is done with one mutation, and measured.


def attempt(results: Results, case: str, size: int, action: Callable[[], None]) -> None:
    """Calls an action with a mutation, and judges errors, time and memory."""

    def spent() -> float:
        return time.monotonic() - start - (_waited() - waited)

    def stop(*_: object) -> None:
        if spent() >= SECONDS:
            raise Hang
        signal.setitimer(signal.ITIMER_REAL, SECONDS - spent())

    _reset_peak()
    before = _memory("VmRSS")
    signal.signal(signal.SIGALRM, stop)
    start, waited = time.monotonic(), _waited()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        action()
    except AbelnetError as error:
        results.counts["refused"] += 1
        if "\n" in str(error):
            results.faults.append(f"{case}: an error of many lines: {error}")
    except Hang:
        results.faults.append(f"{case}: a hang")
    except BaseException:
        results.faults.append(f"{case}: {traceback.format_exc()}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    results.slowest = max(results.slowest, spent())
    grown = _memory("VmHWM") - before
    results.most_memory = max(results.most_memory, grown)
    over = grown - 4 * size
    results.most_over = max(results.most_over, over)
    if over > SLACK:
        results.faults.append(f"{case}: took {grown / 1e6:.0f} MB for {size} bytes")


def _waited() -> float:
    """Seconds that this process could have run and other processes did."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def size_of(path: Path) -> int:
    return path.stat().st_size if path.is_file() and not path.is_symlink() else 0


def check(
    results: Results, case: str, found: list[Tensor], expected: list[Tensor] | None, hostile_module: bool = False
) -> None:
    """Counts a mutation that was accepted.

    A forged file is another valid model. As a bare torch module it may overflow at our elements, as any module may;
    that is counted apart. Estimators and word vectors must raise an error.
    """
    if hostile_module and not all(bool(x.isfinite().all()) for x in found):
        results.counts["accepted, a torch module that overflows"] += 1
        return
    if not all(bool(x.isfinite().all()) for x in found):
        kinds = {str(value) for x in found for value in x[~x.isfinite()].reshape(-1).tolist()}
        results.faults.append(f"{case}: {sorted(kinds)} without an error")
    elif expected is not None and not (
        len(found) == len(expected) and all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))
    ):
        results.faults.append(f"{case}: another result without an error")
    results.counts["accepted, the same" if expected is not None else "accepted"] += 1


def fuzz_models(part: str, count: int, seed: int, folder: Path) -> Results:
    """Mutates the configuration or the tensors of models."""
    results, bases = Results(), {name: one for name, one in models().items() if has_results(*one)}
    saved = {
        name: abelnet.save(model, folder / name, half=i % 7 == 0) for i, (name, (model, _)) in enumerate(bases.items())
    }
    names = sorted(bases)
    right: dict[str, list[Tensor]] = {}
    for number in range(count):
        rng = random.Random(f"{seed} {part} {number}")
        name = rng.choice(names)
        case = f"{part} {seed}/{number} ({name})"
        content = saved[name].read_bytes()
        with safe_open(saved[name], "pt") as file:
            metadata = file.metadata()
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        target = folder / "case" / "model.safetensors"
        target.parent.mkdir()
        kind = rng.random()
        if name not in right:
            right[name] = use(abelnet.load(saved[name]), bases[name][1])
        expected: list[Tensor] | None = right[name]
        if kind < 0.03:
            put_special(target, rng)
        elif kind < 0.3:
            target.write_bytes(scramble(content, rng) if part == "tensors" else scramble_header(content, rng))
        elif kind < 0.4 or (part == "tensors" and kind < 0.5):
            target.write_bytes(mutated_header(content, rng))
        else:
            text = metadata["abelnet"]
            if part == "config":
                text = hostile_text(json.loads(text), rng)
            else:
                tensors = mutated_tensors(tensors, rng)
            metadata = {"abelnet": text, "checksum": checksum(text, tensors)}
            target.write_bytes(save(tensors, metadata))
            expected = None

        def load_and_use(
            target: Path = target,
            x: Tensor = bases[name][1],
            expected: list[Tensor] | None = expected,
            case: str = case,
        ) -> None:
            model = abelnet.load(target.parent)
            hostile_module = expected is None and isinstance(model, torch.nn.Module)
            check(results, case, use(model, x), expected, hostile_module)

        attempt(results, case, size_of(target), load_and_use)
        remove(target)
        target.parent.rmdir()
    return results


def scramble_header(content: bytes, rng: Random) -> bytes:
    size = 8 + struct.unpack("<Q", content[:8])[0]
    return scramble(content[:size], rng) + content[size:]


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()


WORDS = ["the", "King", "queen", "naïve", "日本", "a-b_c", "50/50_burger", "x", *(f"word{i}" for i in range(40))]


def fuzz_vectors(count: int, seed: int, folder: Path) -> Results:
    """Mutates word vectors in all formats."""
    results = Results()
    table = WordVectors(WORDS, torch.randn(len(WORDS), 5, generator=torch.Generator().manual_seed(0)))
    formats = ["v.bin", "v.txt", "glove.txt", "v.vec", "v.bin.gz", "v.txt.gz", "v.safetensors", "q.safetensors", "v"]
    for name in formats:
        table.save(folder / name, kind="text" if name == "v" else None, quantise=name == "q.safetensors")
    (folder / "glove.txt").write_bytes((folder / "v.txt").read_bytes().partition(b"\n")[2])
    for number in range(count):
        rng = random.Random(f"{seed} vectors {number}")
        name = rng.choice(formats)
        case = f"vectors {seed}/{number} ({name})"
        target = folder / "case" / name
        target.parent.mkdir()
        content = (folder / name).read_bytes()
        kind = rng.random()
        expected = None
        if kind < 0.03:
            put_special(target, rng)
        elif name.endswith(".safetensors"):
            with safe_open(folder / name, "pt") as file:
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
                metadata = file.metadata()
            if kind < 0.4:
                target.write_bytes(scramble(content, rng))
                expected = [WordVectors.load(folder / name).vectors]
            elif kind < 0.6:
                target.write_bytes(mutated_header(content, rng))
            else:
                target.write_bytes(save(mutated_tensors(tensors, rng), metadata if kind < 0.8 else {"format": "x"}))
        elif name.endswith(".gz") and kind < 0.7:
            target.write_bytes(gzip.compress(mutated_words(gzip.decompress(content), rng)))
        elif name.endswith(".gz"):
            bombs = [b"a 0\n" * 20_000_000, b"1 1\n" + b"\0" * 100_000_000] if kind > 0.99 else []
            target.write_bytes(gzip.compress(rng.choice(bombs), 1) if bombs else scramble(content, rng))
        else:
            target.write_bytes(mutated_words(content, rng))
        limit, lower, strict = rng.choice([None, None, 1, 7, 10**9]), rng.random() < 0.2, rng.random() < 0.2
        load = partial(WordVectors.load, target, limit=limit, lower=lower, strict=strict)
        same = expected if limit in (None, 10**9) and not lower else None
        attempt(results, case, size_of(target), partial(use_vectors, results, case, load, same))
        remove(target)
        target.parent.rmdir()
    return results


def use_vectors(results: Results, case: str, load: Callable[[], WordVectors], expected: list[Tensor] | None) -> None:
    vectors = load()
    scores = [score for _, score in vectors.most_similar(vectors.index_to_key[0], topn=3)]
    check(results, case, [vectors.vectors, vectors.norms, torch.tensor(scores)], None)
    if expected is not None and not torch.equal(vectors.vectors, expected[0]):
        results.faults.append(f"{case}: other vectors without an error")


def mutated_words(content: bytes, rng: Random) -> bytes:
    """Changes header, numbers, words or lines of word vectors."""
    kind = rng.randrange(8)
    if kind == 0:
        huge = [b"9" * 18, b"9" * 30, b"0", b"-1", b"1e3", b"48", b"5", b"2", b"1000000"]
        return b"%s %s\n" % (rng.choice(huge), rng.choice(huge)) + content.partition(b"\n")[2]
    lines = content.split(b"\n")
    if kind == 1:
        words = lines[rng.randrange(len(lines))].split(b" ")
        odd = [b"nan", b"inf", b"-inf", b"1e999", b"1e38", b"-3e38", b"1e-320", b"", b"0x1", b"1_0", b"\xff", b"1,5"]
        words[rng.randrange(len(words))] = rng.choice([*odd, "१".encode(), b"1" * 400])
        return (
            content.replace(b" ".join(words[1:]), b" ".join(words), 1)
            if rng.random() < 0.1
            else b"\n".join([*lines[:3], b" ".join(words), *lines[4:]])
        )
    if kind == 2:
        place = rng.randrange(len(lines))
        line = rng.choice(
            [b"", lines[0], lines[-2], b"\xff\xfe", b" ", b"x" * 5000, b"x 1", b"\0 1 2 3 4 5", b"\r", b"\t"]
        )
        return b"\n".join([*lines[:place], line, *lines[place:]])
    if kind == 3:
        return rng.choice([b"", b"\n", b" ", b"\0", b"x", b"x 1", b"1 1", b"1 1\n", b"x " * 100_000, b"\n" * 100_000])
    return scramble(content, rng)


def main() -> None:
    part, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    most = int(_memory("VmSize")) + (4 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        results = fuzz_vectors(count, seed, place) if part == "vectors" else fuzz_models(part, count, seed, place)
    summary = {
        "mutations": count,
        **results.counts,
        "faults": results.faults,
        "slowest (s)": round(results.slowest, 3),
        "most memory (MB)": round(results.most_memory / 1e6, 1),
        "most memory beyond 4 x file (MB)": round(results.most_over / 1e6, 1),
    }
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
