"""How well analogy models preserve what they were not trained on: accuracy on parallelograms of the vocabulary itself.

A word a is drawn from the 30,000 most frequent, b from its neighbors, c from its neighbors or from theirs; d is the
answer of b − a + c among those words, excluding the three. The four are kept if the sides are similar,
cos(b − a, d − c) > 0.65. These questions come from no dataset; WV answers nearly all of them over the whole vocabulary
too. With the BATS folder, the validation questions of a split are asked as well, forwards and backwards
(b : a = d : c). The settings of the anchored models were chosen on these questions. Arguments are model files written
by ``abelnet analogies run``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import abelnet
from abelnet.words import Questions, WordVectors, bats_questions, evaluate, nearest, offset
from abelnet.words.evaluation import SETTINGS
from abelnet.words.questions import Section

WORDS, NEIGHBOURS, LIKENESS = 30_000, 20, 0.65


def parallelograms(vectors: WordVectors, draws: int, seed: int) -> Tensor:
    """Returns rows of a, b, c and d, with shape :math:`(n, 4)`."""
    units = vectors.units(torch.arange(min(WORDS, len(vectors))))
    near = nearest(units, units, NEIGHBOURS + 1).indices[:, 1:]
    generator = torch.Generator().manual_seed(seed)
    neighbour_of = lambda rows: near[rows, torch.randint(NEIGHBOURS, rows.shape, generator=generator)]
    a = torch.randint(len(units), (draws,), generator=generator)
    b, c = neighbour_of(a), neighbour_of(a)
    c = torch.where(torch.rand(draws, generator=generator) < 0.5, neighbour_of(c), c)
    given = torch.stack((a, b, c), 1)[(a != b) & (a != c) & (b != c)]
    d = nearest(units, offset(*units[given].unbind(1)), 4).excluding(given).indices
    rows = torch.unique(torch.cat((given, d), 1), dim=0)
    a, b, c, d = units[rows].unbind(1)
    return rows[F.cosine_similarity(b - a, d - c) > LIKENESS]


def own_questions(rows: Tensor) -> Questions:
    count = len(rows)
    sections = (Section("parallelograms", "own", count, count, count),)
    section = torch.zeros(count, dtype=torch.long)
    return Questions("parallelograms", sections, section, rows[:, :3], rows[:, 3:], torch.arange(count))


def backwards(questions: Questions) -> Questions:
    """Returns questions from d back to c or any other word with answer d, except those that reveal their answer."""
    a, b, c = questions.words.unbind(1)
    d = questions.targets
    keys = list(zip(questions.section.tolist(), d.tolist(), strict=True))
    sources: dict[tuple[int, int], dict[int, None]] = {}
    for key, word in zip(keys, c.tolist(), strict=True):
        sources.setdefault(key, {})[word] = None
    width = max(map(len, sources.values()))
    lists = torch.tensor([[*sources[key], *[-1] * (width - len(sources[key]))] for key in keys])
    kept = b != d
    words, section = torch.stack((b, a, d), 1), questions.section
    count = int(kept.sum())
    title = f"{questions.title}, backwards"
    return Questions(title, questions.sections, section[kept], words[kept], lists[kept], torch.arange(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--vectors", type=Path, help="word vector file; the bundled vectors if not given")
    parser.add_argument("--bats", type=Path)
    parser.add_argument("--split", type=int, default=0, help="random seed of the BATS split")
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    vectors = WordVectors.default() if arguments.vectors is None else WordVectors.load(arguments.vectors)
    asked = [own_questions(parallelograms(vectors, arguments.draws, arguments.seed))]
    if arguments.bats is not None:
        validation = bats_questions(vectors, arguments.bats, seed=arguments.split).validation
        asked += [validation, backwards(validation)]
    models = {"wv": offset} | {path.stem: abelnet.load(path) for path in arguments.models}
    for questions in asked:
        overall = evaluate(vectors, questions, models).rows()[0]
        print(f"{questions.title}: {len(questions)}; accuracy (%): {', '.join(SETTINGS)}")
        for name in models:
            print(
                f"  {name:<16}" + "".join(f"{overall.percent(setting, name):8.1f}" for setting in SETTINGS), flush=True
            )


if __name__ == "__main__":
    main()
