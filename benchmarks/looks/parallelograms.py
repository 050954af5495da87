"""How far models of analogies bend what they were not taught: the share of a vocabulary's own analogies that they keep.

A word a is drawn among the 30,000 most frequent, b from its neighbours, c from its neighbours or from theirs; d is the
answer of b − a + c among those words, the three left out. The four are kept where the sides are alike,
cos(b − a, d − c) > 0.65. No one wrote these questions; nearly all of them are answered by WV over the whole vocabulary
too. Arguments are files of models that ``abelnet analogies run`` has written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from abelnet.words import Questions, WordVectors, evaluate, load_model, nearest, offset
from abelnet.words.evaluation import SETTINGS
from abelnet.words.questions import Section

WORDS, NEIGHBOURS, LIKENESS = 30_000, 20, 0.65


def parallelograms(vectors: WordVectors, draws: int, seed: int) -> Tensor:
    """Rows of a, b, c and d, with shape :math:`(n, 4)`."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--vectors", type=Path, help="the embedded ones if not given")
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    vectors = WordVectors.default() if arguments.vectors is None else WordVectors.load(arguments.vectors)
    rows = parallelograms(vectors, arguments.draws, arguments.seed)
    count = len(rows)
    sections = (Section("parallelograms", "own", count, count, count),)
    section = torch.zeros(count, dtype=torch.long)
    questions = Questions("own", sections, section, rows[:, :3], rows[:, 3:], torch.arange(count))
    models = {"wv": offset} | {path.stem: load_model(path) for path in arguments.models}
    overall = evaluate(vectors, questions, models).rows()[0]
    print(f"{count} parallelograms; answered, in a hundred: {', '.join(SETTINGS)}")
    for name in models:
        print(f"  {name:<16}" + "".join(f"{overall.percent(setting, name):8.1f}" for setting in SETTINGS), flush=True)


if __name__ == "__main__":
    main()
