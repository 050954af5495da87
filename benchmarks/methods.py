"""Methods of analogies from example pairs, compared with vecto: seconds per question, and the same answers.

Leave-one-out on relations of BATS, as vecto runs it: 3CosAvg and LRCos have all other pairs of a relation as examples,
3CosAdd, 3CosMul and PairDirection one pair per question. vecto ranks the whole vocabulary for each question, so it gets
fewer of them; times are CPU seconds per question, of both in one process. Its solvers are used as installed
(`pip install --no-deps vecto`), on embeddings that share our vectors.

    python benchmarks/methods.py BATS_3.0 [--vectors glove.6B.100d.safetensors] [--relations 40] [--questions 8]

Answers of LRCos depend on random words, which each library draws for itself; vecto's own runs differ as much.
vecto has no rivals of joined and spelled, which are timed alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch

from abelnet.words import WordVectors
from abelnet.words.methods import METHODS
from abelnet.words.questions import Pairs
from abelnet.words.retrieval import Nearest
from abelnet.words.shots import evaluate_methods, named_pairs, tasks

Times = tuple[float, float]  # our seconds per question, and vecto's
LEAVE_ONE_OUT = {"3cosavg": "ThreeCosAvg", "lrcos": "LRCos"}
ALONE = ("joined", "spelled")
ONE_PAIR = {"3cosadd": "LinearOffset", "3cosmul": "ThreeCosMul", "pairdirection": "PairDistance"}


def solvers() -> ModuleType:
    """Returns vecto's solvers alone: the package imports plotting, HDF5 and corpora as well."""
    package = importlib.util.find_spec("vecto")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("vecto is not installed: pip install --no-deps vecto")
    path = Path(package.submodule_search_locations[0]) / "benchmarks" / "analogy" / "solvers.py"
    spec = importlib.util.spec_from_file_location("vecto_solvers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def embeddings(vectors: WordVectors) -> Any:
    """Returns what vecto's solvers use of its embeddings, on our normalized vectors."""
    words, rows = vectors.index_to_key, vectors.key_to_index
    matrix = vectors.normalised().vectors.numpy()
    vocabulary = SimpleNamespace(
        lst_words=words, get_id=lambda word: rows.get(word, -1), get_word_by_id=lambda row: words[row]
    )
    return SimpleNamespace(
        matrix=matrix,
        _normalized_matrix=matrix,
        vocabulary=vocabulary,
        get_vector=lambda word: matrix[rows[word]],
        cmp_vectors=lambda x, y: (x @ y / np.linalg.norm(x) / np.linalg.norm(y) + 1) / 2,
    )


def as_words(vectors: WordVectors, pairs: Pairs, number: int) -> list[list[Any]]:
    """Returns a pair as vecto reads it: a word, and its answers."""
    answers = pairs.answers[pairs.answer[number]]
    words = vectors.index_to_key
    return [words[pairs.words[number]], [words[row] for row in answers[answers >= 0]]]


def best(result: dict[str, Any]) -> str:
    return str(result["predictions"][0]["answer"])


def leave_one_out(vectors: WordVectors, pairs: Pairs, module: ModuleType, questions: int) -> Iterator[Times]:
    methods = {name: METHODS[name]() for name in LEAVE_ONE_OUT}
    chosen = random.Random(0).sample(range(len(pairs)), questions)
    embs = embeddings(vectors)
    for name, method in methods.items():
        start = time.process_time()
        ours = evaluate_methods(vectors, pairs, pairs, {name: method})
        own = (time.process_time() - start) / len(pairs)
        solver = getattr(module, LEAVE_ONE_OUT[name])(embs, exclude=True)
        same, taken = 0, 0.0
        for number in chosen:
            others = (pairs.section == pairs.section[number]) & (pairs.words != pairs.words[number])
            examples = [as_words(vectors, pairs, i) for i in others.nonzero()[:, 0].tolist()]
            query = as_words(vectors, pairs, number)
            start = time.process_time()
            (result,) = solver.do_test_on_pairs(examples, [query])
            taken += time.process_time() - start
            same += best(result) == vectors.index_to_key[ours.predicted[1, 0, number]]
        yield report(name, own, taken / questions, same, questions, len(pairs))


def one_pair(vectors: WordVectors, pairs: Pairs, module: ModuleType, questions: int) -> Iterator[Times]:
    embs = embeddings(vectors)
    chosen = random.Random(1).sample(range(len(pairs)), questions)
    asked = list(tasks(pairs, pairs, 1))
    examples = torch.zeros(len(pairs), 2, dtype=torch.long)
    for places, task in asked:
        examples[places] = task.pairs[task.weights.argmax(1)]
    of_rows = {tuple(row): number for number, row in enumerate(pairs.rows.tolist())}
    for name, rival in ONE_PAIR.items():
        method = METHODS[name]()
        start = time.process_time()
        found = torch.empty(len(pairs), 4, dtype=torch.long)
        scores = torch.empty(len(pairs), 4)
        for places, task in asked:
            scores[places], found[places] = method.answers(vectors, task, 4)
        own = (time.process_time() - start) / len(pairs)
        answers = Nearest(scores, found).excluding(torch.cat((examples, pairs.words[:, None]), 1)).indices[:, 0]
        solver = getattr(module, rival)(embs, exclude=True)
        same, taken = 0, 0.0
        for number in chosen:
            example = as_words(vectors, pairs, of_rows[tuple(examples[number].tolist())])
            # Other answers of the example are candidates for us and not for vecto.
            example[1] = example[1][:1]
            start = time.process_time()
            (result,) = solver.do_test_on_pairs([example], [as_words(vectors, pairs, number)])
            taken += time.process_time() - start
            same += best(result) == vectors.index_to_key[answers[number]]
        yield report(name, own, taken / questions, same, questions, len(pairs))


def alone(vectors: WordVectors, pairs: Pairs) -> None:
    for name in ALONE:
        start = time.process_time()
        evaluate_methods(vectors, pairs, pairs, {name: METHODS[name]()})
        own = (time.process_time() - start) / len(pairs)
        print(f"  {name:<14} abelnet {1e3 * own:8.2f} ms ({len(pairs):,} questions)", flush=True)


def report(name: str, own: float, theirs: float, same: int, asked: int, total: int) -> Times:
    print(
        f"  {name:<14} abelnet {1e3 * own:8.2f} ms ({total:,} questions)   vecto {1e3 * theirs:8.1f} ms ({asked})   "
        f"{theirs / own:7.1f}x   same answer: {same} of {asked}",
        flush=True,
    )
    return own, theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bats", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--relations", type=int, default=40)
    parser.add_argument("--questions", type=int, default=8, help="for vecto")
    arguments = parser.parse_args()
    vectors = WordVectors.default() if arguments.vectors is None else WordVectors.load(arguments.vectors)
    pairs, _ = named_pairs(vectors, str(arguments.bats), protocol="leave-one-out")
    some = pairs.section < arguments.relations
    pairs = Pairs(
        pairs.title, pairs.sections, pairs.section[some], pairs.words[some], pairs.answers, pairs.answer[some]
    )
    module = solvers()
    torch.set_num_threads(1)
    print(f"{len(vectors):,} words, {len(pairs):,} pairs of BATS, one thread; vecto's LRCos fits by scikit-learn")
    times = [
        *leave_one_out(vectors, pairs, module, arguments.questions),
        *one_pair(vectors, pairs, module, arguments.questions),
    ]
    own, theirs = (sum(taken) for taken in zip(*times, strict=True))
    print(
        f"  all of these   abelnet {1e3 * own:8.2f} ms a question   vecto {1e3 * theirs:8.1f} ms   {theirs / own:7.1f}x"
    )
    alone(vectors, pairs)


if __name__ == "__main__":
    main()
