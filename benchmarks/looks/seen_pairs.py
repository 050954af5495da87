"""How much of a model's accuracy on the Google test set is memorization: some of its pairs are also pairs of BATS.

Google questions are grouped by whether the target pair (c, d), or any pair, was among the training pairs of BATS, in
either direction and with any accepted answer; WV is asked the same questions. Arguments are model files written by
``abelnet analogies run``, all of one seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import abelnet
from abelnet.words import Questions, WordVectors, bats_questions, evaluate, google_questions, offset


def taught_pairs(questions: Questions) -> set[tuple[int, int]]:
    """Returns all pairs of training questions, in both directions; each pair is the target of some question."""
    lists = questions.answers[questions.answer].tolist()
    pairs = {(c, d) for c, ds in zip(questions.words[:, 2].tolist(), lists, strict=True) for d in ds if d >= 0}
    return pairs | {(d, c) for c, d in pairs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--bats", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0, help="random seed of the models")
    parser.add_argument("--part", choices=["train", "development"], default="train", help="their training part")
    arguments = parser.parse_args()
    vectors = WordVectors.load(arguments.vectors)
    questions = google_questions(vectors)
    pairs = taught_pairs(getattr(bats_questions(vectors, arguments.bats, seed=arguments.seed), arguments.part))
    rows = torch.cat((questions.words, questions.targets[:, None]), 1).tolist()
    asked = torch.tensor([(c, d) in pairs for _, _, c, d in rows])
    shown = torch.tensor([(a, b) in pairs for a, b, _, _ in rows])
    models = {"wv": offset} | {path.stem: abelnet.load(path) for path in arguments.models}
    correct = evaluate(vectors, questions, models).correct.double()
    for title, kind in (("c, d seen", asked), ("c, d not seen", ~asked), ("neither pair seen", ~asked & ~shown)):
        print(f"{title}: {int(kind.sum())} questions; accuracy (%), all candidates and excluding a, b, c")
        for name, (every, without) in zip(models, (100 * correct[:, :, kind].mean(2)).t().tolist(), strict=True):
            print(f"  {name:<16} {every:6.1f} {without:6.1f}", flush=True)


if __name__ == "__main__":
    main()
