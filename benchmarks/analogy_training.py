"""Training of WV+AGN with the paper's loss: our loop and couplings, compared with a plain loop on FrEIA's. One thread.

Both train the paper's model, 5 couplings of width 151, on the same questions. Ours is ``train`` as the experiment calls
it, including shuffling; FrEIA's is the loop that its users write: plain Adam, the network called for a, b and c, then
in reverse. A turn is a few dozen steps; the median turn is reported.

Ours maps each distinct word of a batch by the network once, so the speedup depends on how often words repeat: the
training pairs of the Google test set have few words, those of BATS, if given, more, and in questions of random words
hardly any repeat. For these, the time of the matrix products of a step alone is reported too. Vectors are random, of
any dimension.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from _freia import FreiaAnalogy
from _timing import interleave
from torch import Tensor

from abelnet.bijections import GlowCoupling
from abelnet.training.loop import Settings, train
from abelnet.words import CosineLoss, GroupAnalogy, WordVectors, bats_questions, google_pairs
from abelnet.words.questions import Questions

WORDS = 20_000


class Examples(NamedTuple):
    count: int  # of words
    words: Tensor
    answers: Tensor

    def drawn(self, count: int) -> Examples:
        rows = torch.randint(len(self.words), (count,))
        return Examples(self.count, self.words[rows], self.answers[rows])


def examples(questions: Questions) -> Examples:
    distinct, rows = torch.unique(torch.column_stack((questions.words, questions.targets)), return_inverse=True)
    return Examples(len(distinct), rows[:, :3], rows[:, 3])


def our_turn(vectors: WordVectors, data: Examples, batch: int) -> Callable[[], object]:
    model = GroupAnalogy(vectors.dim, seed=0)
    settings = Settings(epochs=1, batch_size=batch, weight_decay=1.6e-4)
    loss = CosineLoss(vectors)
    return lambda: train(model, (data.words, data.answers), loss, settings=settings)


def their_turn(vectors: WordVectors, data: Examples, batch: int) -> Callable[[], object]:
    model = FreiaAnalogy(vectors.dim, 5, 151)
    optimiser = torch.optim.Adam(model.parameters(), weight_decay=1.6e-4)
    units = vectors.normalised().vectors

    def turn() -> None:
        for rows in torch.randperm(len(data.words)).split(batch):
            a, b, c = units[data.words[rows]].unbind(1)
            optimiser.zero_grad()
            (-F.cosine_similarity(model(a, b, c), units[data.answers[rows]]).mean()).backward()
            optimiser.step()

    return turn


def products(dim: int, batch: int, steps: int) -> Callable[[], object]:
    """Returns a function that runs the matrix products of all layers, forward and backward, of as many steps."""
    couplings = [layer for layer in GroupAnalogy(dim, seed=0).group.bijection if isinstance(layer, GlowCoupling)]
    subnets = [subnet for coupling in couplings for subnet in (coupling.subnet1, coupling.subnet2)]
    weights = [weight.detach() for subnet in subnets for weight in (subnet.weight1, subnet.weight2, subnet.weight3)]
    inputs_of_pass = [[torch.randn(weight.shape[1], rows) for weight in weights] for rows in (3 * batch, batch)]

    def turn() -> None:
        for inputs in inputs_of_pass * steps:
            outputs = [torch.mm(weight, x) for weight, x in zip(weights, inputs, strict=True)]
            for weight, x, y in zip(weights[::-1], inputs[::-1], outputs[::-1], strict=True):
                torch.mm(y, x.t())
                torch.mm(weight.t(), y)

    return turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dim", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--bats", help="folder of BATS")
    parser.add_argument("--vectors", help="file whose words are the vocabulary; the embedded ones if not given")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    vocabulary = WordVectors.load(arguments.vectors) if arguments.vectors else WordVectors.default()
    sets = {"pairs of Google's questions": examples(google_pairs(vocabulary).train)}
    if arguments.bats:
        sets["BATS"] = examples(bats_questions(vocabulary, arguments.bats).train)
    sets["any words"] = Examples(WORDS, torch.randint(WORDS, (100_000, 3)), torch.randint(WORDS, (100_000,)))
    print(f"torch {torch.__version__}, one thread")
    for dim in arguments.dim:
        for batch, steps in ((32, 40), (256, 10)):
            for name, whole in sets.items():
                vectors = WordVectors(map(str, range(whole.count)), torch.randn(whole.count, dim))
                data = whole.drawn(batch * steps)
                turns = {"FrEIA": their_turn(vectors, data, batch), "abelnet": our_turn(vectors, data, batch)}
                if name == "any words":
                    turns["products"] = products(dim, batch, steps)
                medians = interleave(turns, rounds=arguments.rounds)
                distinct = sum(len(rows.unique()) for rows in data.words.split(batch)) / steps
                print(f"{dim}-d, batch {batch}, {name}: {whole.count} words, {distinct:.0f} in a batch")
                for turn, seconds in medians.items():
                    ratio = medians["FrEIA"] / seconds
                    print(f"  {turn:<10} {steps / seconds:8.1f} steps/s   {ratio:5.2f}x", flush=True)


if __name__ == "__main__":
    main()
