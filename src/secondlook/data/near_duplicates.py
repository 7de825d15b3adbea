"""Which texts say the same: words compared, whatever their case, punctuation and order."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cache, lru_cache
from math import log
from typing import TYPE_CHECKING, TypeVar

from secondlook.characters import in_word

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    Words = frozenset[str]

Id = TypeVar("Id")

SHINGLE = 3
NEAR = 0.8
"""From this Jaccard index of their 3-word shingles on, two passages are near-duplicates."""
ALIKE = 0.9
"""From this weighted Jaccard index of their words on, two queries are near-duplicates.

"What is a 10 year term policy?" and "What is 10 year term policy?" are; the capitals of France and
of Spain are not, since the rare words, which weigh most, differ.
"""


@lru_cache(maxsize=1 << 12)  # what many queries find is read once
def words_of(text: str) -> tuple[str, ...]:
    """The words in their order, case folded, without punctuation."""
    return tuple(_word().findall(text.casefold()))


@cache
def _word() -> re.Pattern[str]:
    return re.compile(f"{in_word()}+")


def shingles(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every run of three words; of a shorter text, the text."""
    return zip(words, words[1:], words[2:], strict=False) if len(words) > SHINGLE else iter([words])


def near(words: tuple[str, ...], known: frozenset[tuple[str, ...]]) -> bool:
    """Whether the Jaccard index of the words' shingles and the known ones is `NEAR` or more."""
    if sum(map(known.__contains__, shingles(words))) < NEAR * len(known):
        return False  # nearly always, and cheap to tell: a union is no smaller than one side
    pieces = frozenset(shingles(words))
    shared = len(pieces & known)
    return shared >= NEAR * (len(pieces) + len(known) - shared)


def clusters(texts: Mapping[Id, str]) -> dict[Id, Id]:
    """Text id → the id that stands for it and all its near-duplicates, directly or by others.

    Two texts are near-duplicates where the words they share weigh `ALIKE` of all words of both; a
    word weighs ln(1 + texts / texts that have it). Texts without a word are like no other.
    """
    ids = list(texts)
    pairs = _near_pairs([frozenset(words_of(texts[name])) for name in ids])
    return linked(ids, ((ids[one], ids[other]) for one, other in pairs))


def linked(ids: Iterable[Id], pairs: Iterable[tuple[Id, Id]]) -> dict[Id, Id]:
    """Id → the first id that pairs link it to, directly or by others."""
    names = list(ids)
    places = {name: at for at, name in enumerate(names)}
    head = list(range(len(names)))

    def root(at: int) -> int:
        while head[at] != at:
            head[at] = head[head[at]]
            at = head[at]
        return at

    for one, other in pairs:
        first, second = sorted((root(places[one]), root(places[other])))
        head[second] = first
    return {name: names[root(at)] for at, name in enumerate(names)}


def _near_pairs(sets: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """The places of near-duplicates.

    Only texts that share one of their rarest words are compared: if all words that two texts share
    come after so many of the rare ones that the rest weighs less than `ALIKE` of the text, they
    cannot be alike (prefix filtering: Chaudhuri, Ganti and Kaushik 2006).
    """
    counts = Counter(word for words in sets for word in words)
    weights = {word: log(1 + len(sets) / count) for word, count in counts.items()}
    total = [_weight(words, weights) for words in sets]
    having: defaultdict[str, list[int]] = defaultdict(list)
    equal: dict[Words, int] = {}
    for at, words in enumerate(sets):
        if not words:
            continue
        if (same := equal.setdefault(words, at)) != at:
            yield same, at
            continue
        left, met = total[at], set()
        for word in sorted(words, key=lambda word: (counts[word], word)):
            if left < ALIKE * total[at]:
                break
            met.update(having[word])
            having[word].append(at)
            left -= weights[word]
        for other in met:
            if min(total[at], total[other]) < ALIKE * max(total[at], total[other]):
                continue
            shared = _weight(words & sets[other], weights)
            if shared >= ALIKE * (total[at] + total[other] - shared):
                yield other, at


def _weight(words: Collection[str], weights: Mapping[str, float]) -> float:
    return sum(weights[word] for word in words)
