"""Exact nearest-word search: queries per second and extra memory, compared with gensim, faiss and a matrix product.

Random 300-d vectors; the 4 nearest words of each query, as both candidate settings of an analogy require. gensim
answers one query at a time, so it gets fewer; all candidates are interleaved in one process. The matrix product is that
of the same vectors and queries, in chunks, and nothing else: the peak performance of the machine.

    python benchmarks/retrieval.py [--words 50000 300000 3000000] [--rounds 5] [--evaluate VECTORS]

With --evaluate, the Google analogy test set is also evaluated on given vectors, with ours and with gensim's
`evaluate_word_analogies`, and the answers are compared question by question.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import threading
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from _timing import interleave
from gensim.models import KeyedVectors
from torch import Tensor

from abelnet.words import WordVectors, evaluate, google_questions, nearest

DIM = 300
QUERIES = 1024
GENSIM_QUERIES = 8
NEAREST = 4


def extra_memory(call: Callable[[], object]) -> float:
    """Returns the peak memory of a call in megabytes, beyond what the process used before."""

    def resident() -> int:
        # Pages of memory-mapped files, such as vectors on disk, are not counted.
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return int(fields["RssAnon"].split()[0])

    # Memory freed by earlier calls must not hide the allocations of this one.
    ctypes.CDLL(None).malloc_trim(0)
    before = peak = resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    call()
    done.set()
    watcher.join()
    return (peak - before) / 1024


def matrix_product(vectors: Tensor, queries: Tensor) -> None:
    out = torch.empty(1024, len(queries))
    columns = queries.t().contiguous()
    for rows in vectors.split(1024):
        torch.mm(rows, columns, out=out[: len(rows)])


def keyed(words: list[str], vectors: Any) -> KeyedVectors:
    """Wraps the same vectors in gensim's class, without a copy."""
    result = KeyedVectors(vectors.shape[1])
    result.index_to_key = words
    result.key_to_index = {word: row for row, word in enumerate(words)}
    result.vectors = vectors
    result.fill_norms()
    return result


def retrieval(count: int, rounds: int) -> None:
    vectors = torch.randn(count, DIM)
    vectors /= vectors.norm(dim=1, keepdim=True)
    queries = torch.randn(QUERIES, DIM)
    norms = torch.linalg.vector_norm(vectors, dim=1)
    rival = keyed([str(row) for row in range(count)], vectors.numpy())
    several = list(queries[:GENSIM_QUERIES].numpy())
    candidates: dict[str, Callable[[], object]] = {
        "matrix product alone": lambda: matrix_product(vectors, queries),
        "abelnet nearest": lambda: nearest(vectors, queries, NEAREST, norms=norms),
        "gensim most_similar": lambda: [rival.most_similar([query], topn=NEAREST) for query in several],
    }
    kept = dict.fromkeys((*candidates, "faiss IndexFlatIP"), 0.0)
    if importlib.util.find_spec("faiss"):
        import faiss

        index = faiss.IndexFlatIP(DIM)
        kept["faiss IndexFlatIP"] = extra_memory(lambda: index.add(vectors.numpy()))
        candidates["faiss IndexFlatIP"] = lambda: index.search(queries.numpy(), NEAREST)
    extra = {name: kept[name] + extra_memory(candidate) for name, candidate in candidates.items()}
    seconds = interleave(candidates, rounds=rounds, warm_up=0)
    rates = {name: (GENSIM_QUERIES if "gensim" in name else QUERIES) / taken for name, taken in seconds.items()}
    print(f"{count:,} words × {DIM}, {QUERIES} queries, {NEAREST} nearest")
    for name, rate in rates.items():
        print(
            f"  {name:<22} {rate:9.1f} queries/s {rate / rates['gensim most_similar']:7.2f}x gensim "
            f"{100 * rate / rates['matrix product alone']:7.1f} % of the product {extra[name]:8.0f} MB extra",
            flush=True,
        )


def whole_set(path: Path) -> None:
    vectors = WordVectors.load(path)
    rival = keyed(vectors.index_to_key, vectors.vectors.numpy())
    questions = google_questions(vectors)
    times = []
    for _ in range(2):
        start = time.perf_counter()
        result = evaluate(vectors, questions)
        times.append(time.perf_counter() - start)
    with resources.as_file(resources.files("abelnet.words") / "data" / "questions-words.txt") as file:
        start = time.perf_counter()
        _, sections = rival.evaluate_word_analogies(str(file), restrict_vocab=None)
        theirs = time.perf_counter() - start
    start = time.perf_counter()
    evaluate(vectors, questions)
    times.append(time.perf_counter() - start)
    ours = sorted(times)[1]
    print(f"The Google set on {len(vectors):,} words: {ours:.1f} s, gensim {theirs:.1f} s, {theirs / ours:.1f}x")
    words = vectors.index_to_key
    rows = torch.cat((questions.words, questions.targets[:, None]), 1)
    right, wrong = (
        sorted(tuple(words[row].upper() for row in line) for line in rows[chosen].tolist())
        for chosen in (result.correct[1, 0], ~result.correct[1, 0])
    )
    same_right = right == sorted(line for section in sections[:-1] for line in section["correct"])
    same_wrong = wrong == sorted(line for section in sections[:-1] for line in section["incorrect"])
    print(f"  {len(right):,} right, {len(wrong):,} wrong; the same questions as gensim: {same_right and same_wrong}")
    overall = result.rows()[0]
    for setting in overall.correct:
        print(f"  {setting}: {overall.correct[setting]['wv']:,} = {overall.percent(setting, 'wv'):.2f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, nargs="*", default=[50_000, 300_000, 3_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--evaluate", type=Path)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    for count in arguments.words:
        retrieval(count, arguments.rounds)
    if arguments.evaluate is not None:
        whole_set(arguments.evaluate)


if __name__ == "__main__":
    main()
