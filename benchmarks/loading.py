"""Loading a word2vec binary of 300,000 words × 300: first load, from the cache, and with gensim."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from _timing import interleave, report
from gensim.models import KeyedVectors

from abelnet.words import WordVectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=300_000)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path, cache = Path(folder) / "vectors.bin", Path(folder) / "cache"
        words = [f"word{row:x}" for row in range(arguments.words)]
        WordVectors(words, torch.randn(arguments.words, arguments.dim)).save(path)
        WordVectors.load(path, cache=cache)
        medians = interleave(
            {
                "gensim": lambda: KeyedVectors.load_word2vec_format(str(path), binary=True),
                "abelnet, first load": lambda: WordVectors.load(path),
                "abelnet, from the cache": lambda: WordVectors.load(path, cache=cache),
                "abelnet, from the cache, one word looked up": lambda: WordVectors.load(path, cache=cache)["word7"],
            },
            rounds=arguments.rounds,
            warm_up=1,
        )
    report(f"{arguments.words:,} words × {arguments.dim}, word2vec binary; times faster than gensim", medians, "gensim")


if __name__ == "__main__":
    main()
