"""What a group learns beyond single relations: accuracy on relations of BATS that were left out of training.

Every fourth relation is left out, in four splits. A model of ``abelnet analogies run`` is trained on the pairs of the
others, on the part of the split of seed 0 that it always uses, and then completes all words of the relations that it
has not seen, by leave-one-out. Its settings were chosen with pairs of all relations.

    python benchmarks/looks/transfer.py --vectors glove.6B.100d.safetensors --bats BATS_3.0 --out transfer
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from torch import Tensor

import abelnet
from abelnet.experiments.analogies.experiment import MODELS, AnalogyExperiment
from abelnet.training.loop import train
from abelnet.words import WordVectors, bats_questions
from abelnet.words.methods import named_method
from abelnet.words.models import AnalogyModel, Offset
from abelnet.words.questions import Asked, Questions
from abelnet.words.shots import QUERY_SETTINGS, evaluate_methods, named_pairs

SPLITS = 4
SHOTS = {"all other pairs": None, "5 pairs": 5}
Part = TypeVar("Part", bound=Asked)


def only(asked: Part, kept: Tensor) -> Part:
    """Returns the questions of a mask :math:`(n)`."""
    return replace(asked, section=asked.section[kept], words=asked.words[kept], answer=asked.answer[kept])


def trained(name: str, vectors: WordVectors, questions: Questions, *, epochs: int | None, seed: int) -> AnalogyModel:
    """Trains a model through its stages."""
    experiment = AnalogyExperiment(epochs=epochs)
    kind = MODELS[name]
    assert kind.build is not None
    assert kind.parameters is not None
    networks = []
    for own in kind.seeds(seed):
        networks.append(kind.build(vectors.dim, kind.parameters, own))
        for stage in kind.stages:
            settings = experiment.settings(stage, kind.parameters)
            train(networks[-1], *stage.objective(vectors, questions), settings=settings, seed=own)
    return kind.joined(networks).eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--bats", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of the trained models, which are kept")
    parser.add_argument("--model", default="ensemble_80")
    parser.add_argument("--epochs", type=int, help="number of epochs of each stage; those of the model by default")
    parser.add_argument("--split", type=int, action="append", choices=range(SPLITS), help="all four by default")
    arguments = parser.parse_args()
    vectors = WordVectors.load(arguments.vectors)
    questions = getattr(bats_questions(vectors, arguments.bats), MODELS[arguments.model].part)
    pairs, _ = named_pairs(vectors, str(arguments.bats), protocol="leave-one-out")
    for split in arguments.split or range(SPLITS):
        folder = arguments.out / f"{arguments.model}-without-{split}"
        if not folder.exists():
            seen = only(questions, questions.section % SPLITS != split)
            network = trained(arguments.model, vectors, seen, epochs=arguments.epochs, seed=split)
            abelnet.save(network, folder)
        models = {"wv": Offset(), "group": abelnet.load(folder)}
        methods = {f"{name} {key}": named_method(name, models[key]) for name in ("3cosavg", "ridge") for key in models}
        asked = only(pairs, pairs.section % SPLITS == split)
        for title, shots in SHOTS.items():
            overall = evaluate_methods(vectors, asked, asked, methods, shots=shots).rows()[0]
            print(f"split {split}, {title}: {overall.questions} words; accuracy (%): {', '.join(QUERY_SETTINGS)}")
            for method in methods:
                values = (overall.percent(setting, method) for setting in QUERY_SETTINGS)
                print(f"  {method:<16}" + "".join(f"{value:8.1f}" for value in values), flush=True)


if __name__ == "__main__":
    main()
