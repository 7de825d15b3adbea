"""Make a corpus of pseudo-words whose frequencies follow Zipf's law, as BEIR JSON lines.

python benchmarks/zipf_corpus.py 1000000 corpus.jsonl --words 60 --seed 1
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VOCABULARY = 200_000
EXPONENT = 1.07  # English text lies near 1
_CHUNK = 10_000
_SYLLABLES = [c + v + e for c in "bcdfghjklmnprstvw" for v in "aeiou" for e in ("", "n", "r", "s")]


def vocabulary(size: int = VOCABULARY) -> list[str]:
    """Distinct pronounceable words, the most frequent ones shortest."""
    base = len(_SYLLABLES)
    words = []
    for rank in range(size):
        number, word = rank + base, ""
        while number:
            number, digit = divmod(number, base)
            word += _SYLLABLES[digit]
        words.append(word)
    return words


def frequencies(size: int = VOCABULARY) -> NDArray[np.float64]:
    """The cumulative Zipf distribution over the ranks."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -EXPONENT
    cumulative: NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    return cumulative


def texts(count: int, words: int, seed: int) -> Iterator[str]:
    """`count` texts of `words` words each; the same seed gives the same texts."""
    rng = np.random.default_rng(seed)
    vocab, cumulative = vocabulary(), frequencies()
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        ranks = np.searchsorted(cumulative, rng.random((size, words)))
        for row in ranks.tolist():
            yield " ".join([vocab[rank] for rank in row])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("target", type=Path)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with arguments.target.open("w", encoding="utf-8") as out:
        for number, text in enumerate(texts(arguments.count, arguments.words, arguments.seed)):
            out.write(json.dumps({"_id": f"d{number}", "title": "", "text": text}) + "\n")


if __name__ == "__main__":
    main()
