"""Training WV+AGN by the loss of the paper: our loop on our couplings, beside an ordinary loop on FrEIA's. One thread.

Both train the paper's model, 5 couplings of width 151, on rows of one table of unit vectors. Ours is ``train`` as the
experiment calls it, shuffling included; FrEIA's is the loop that its users write: plain Adam, the network called for a,
b and c, then in reverse. A turn is a few dozen steps; what is compared is the median turn.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
from _freia import FreiaAnalogy
from _timing import interleave
from torch import Tensor

from abelnet.training import Settings, train
from abelnet.words import CosineLoss, GroupAnalogy, WordVectors

WORDS = 20_000


def our_turn(vectors: WordVectors, words: Tensor, answers: Tensor, batch: int) -> Callable[[], object]:
    model = GroupAnalogy(vectors.dim, seed=0)
    settings = Settings(epochs=1, batch_size=batch, weight_decay=1.6e-4)
    loss = CosineLoss(vectors)
    return lambda: train(model, (words, answers), loss, settings=settings)


def their_turn(vectors: WordVectors, words: Tensor, answers: Tensor, batch: int) -> Callable[[], object]:
    model = FreiaAnalogy(vectors.dim, 5, 151)
    optimiser = torch.optim.Adam(model.parameters(), weight_decay=1.6e-4)
    units = vectors.normalised().vectors

    def turn() -> None:
        for rows in torch.randperm(len(words)).split(batch):
            a, b, c = units[words[rows]].unbind(1)
            optimiser.zero_grad()
            (-F.cosine_similarity(model(a, b, c), units[answers[rows]]).mean()).backward()
            optimiser.step()

    return turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dim", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread")
    for dim in arguments.dim:
        vectors = WordVectors(map(str, range(WORDS)), torch.randn(WORDS, dim))
        for batch, steps in ((32, 40), (256, 10)):
            words, answers = torch.randint(WORDS, (batch * steps, 3)), torch.randint(WORDS, (batch * steps,))
            turns = {
                "FrEIA": their_turn(vectors, words, answers, batch),
                "abelnet": our_turn(vectors, words, answers, batch),
            }
            medians = interleave(turns, rounds=arguments.rounds)
            print(f"{dim}-d, batch {batch}")
            for name, seconds in medians.items():
                print(f"  {name:<10} {steps / seconds:8.1f} steps/s   {medians['FrEIA'] / seconds:5.2f}x", flush=True)


if __name__ == "__main__":
    main()
