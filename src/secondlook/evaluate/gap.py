"""How far a corpus's words are from another's or general English, and from a vocabulary."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from math import log
from typing import TYPE_CHECKING, Any

from secondlook.errors import MalformedInput, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MOST_FREQUENT = 10_000
GENERAL, SPECIAL = 0.35, 0.45
"""By this count passages of MS MARCO have a share of 32% and of Wikipedia (SQuAD) 31%, insurance
advice 39%, medical abstracts (NFCorpus, SciFact) 56% and 60%. DR-BERT counts 44.3% for MS MARCO
against the texts BERT was made of: that takes such a corpus as `against`."""
STRANGE = 10.0
"""A word differs where it is so many times as frequent as in general English."""
_THEN_MEASURE = "Put the phase `adapt` first in the recipe, and see by `secondlook compare`"
_RAREST = 1e-9
"""The frequency of a word that general English does not have."""
GENERAL_ENGLISH = "general English"
_AT_ONCE = 10_000
"""So many words are split at a time."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A corpus beside general English."""

    documents: int
    words: int
    """Running words, those without a letter not counted."""
    distinct: int
    compared: int
    """How many of the most frequent words were looked up: 10,000, or all of a small corpus."""
    share: float
    """Of these, the share that is not among as many of general English."""
    strangers: tuple[tuple[str, int, float], ...]
    """The words that differ most: how often they are here, and how many times as often as there.
    Ordered by what they add to the Kullback-Leibler divergence."""
    split: float | None
    """The share of running words that the tokenizer splits; None without one."""
    split_distinct: float | None
    """The same of the words compared."""
    against: str = GENERAL_ENGLISH
    """What the corpus was compared with."""

    @property
    def advice(self) -> str:
        """Whether `adapt` is worth its time."""
        share = f"{self.share:.0%}" if self.against == GENERAL_ENGLISH else f"{self.share:.1%}"
        told = f"{share} of the most frequent words are not {self.against}'s"
        if self.compared < MOST_FREQUENT:
            told += f" (there are only {self.compared:,}, too few to compare well)"
        if self.against != GENERAL_ENGLISH:
            return f"{told}. DR-BERT counts 44.3% for MS MARCO against the texts BERT was made of"
        if self.share >= SPECIAL:
            return f"{told}: a special language, and adapting is worth its time. {_THEN_MEASURE}"
        if self.share >= GENERAL:
            return f"{told}: somewhat special, and adapting may help. {_THEN_MEASURE}"
        return (
            f"{told}, as in any text of the web. DR-BERT gained .007 in MRR@10 by adapting to such "
            "texts (MS MARCO); spend the time on judgments and negatives first"
        )

    def summary(self) -> str:
        """The counts, what the tokenizer splits, and the advice."""
        lines = [
            f"{self.documents:,} documents, {self.words:,} words, {self.distinct:,} distinct",
            "the words that differ most: " + ", ".join(word for word, _, _ in self.strangers),
        ]
        if split := self.split_summary():
            lines.append(split)
        return "\n".join([*lines, self.advice])

    def split_summary(self) -> str:
        """What the tokenizer splits; empty without one."""
        if self.split is None:
            return ""
        return (
            f"the tokenizer splits {self.split:.1%} of running words, and "
            f"{self.split_distinct:.1%} of the {self.compared:,} most frequent"
        )

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self) | {"advice": self.advice}


def domain_gap(
    texts: Iterable[str],
    pieces: Callable[[Sequence[str]], list[int]] | None = None,
    strangers: int = 20,
    against: tuple[str, Iterable[str]] | None = None,
) -> Gap:
    """Compare the words of texts with those of others, or with general English.

    `against` is the name of another corpus and its texts: then the share is DR-BERT's, how many of
    the most frequent words of one are not among as many of the other. General English is what the
    wordfreq package knows. `pieces` says into how many a tokenizer splits each of some words.
    """
    counts, documents = _counted(texts, "the corpus")
    total = counts.total()
    frequent = [word for word, _ in counts.most_common(MOST_FREQUENT)]
    others, frequency = _general(len(frequent)) if against is None else _of(against, len(frequent))
    ratio = {w: counts[w] / total / max(frequency(w), _RAREST) for w in frequent}
    strange = [word for word in frequent if ratio[word] >= STRANGE]
    strange.sort(key=lambda word: -counts[word] * log(ratio[word]))
    split = split_distinct = None
    if pieces is not None:
        broken = _broken(list(counts), pieces)
        split = sum(counts[name] for name in broken) / total
        split_distinct = sum(word in broken for word in frequent) / len(frequent)
    return Gap(
        documents,
        total,
        len(counts),
        len(frequent),
        sum(word not in others for word in frequent) / len(frequent),
        tuple((word, counts[word], ratio[word]) for word in strange[:strangers]),
        split,
        split_distinct,
        GENERAL_ENGLISH if against is None else against[0],
    )


def _broken(words: list[str], pieces: Callable[[Sequence[str]], list[int]]) -> set[str]:
    """The words of several pieces, asked for some at a time: a corpus may have millions."""
    broken: set[str] = set()
    for start in range(0, len(words), _AT_ONCE):
        some = words[start : start + _AT_ONCE]
        broken.update(word for word, n in zip(some, pieces(some), strict=True) if n > 1)
    return broken


def _counted(texts: Iterable[str], name: str) -> tuple[Counter[str], int]:
    """How often each word is there, those without a letter not counted; and how many texts."""
    try:
        from wordfreq.tokens import simple_tokenize
    except ImportError as error:
        raise MissingExtra("report", "counting the words of a corpus") from error
    counts: Counter[str] = Counter()
    documents = 0
    for text in texts:
        documents += 1
        counts.update(simple_tokenize(text))
    counts = Counter({w: n for w, n in counts.items() if any(map(str.isalpha, w))})
    if not counts:
        raise MalformedInput(name, None, "it holds no words")
    return counts, documents


def _general(count: int) -> tuple[set[str], Callable[[str], float]]:
    """The most frequent words of general English, and how frequent a word is."""
    from wordfreq import top_n_list, word_frequency

    return set(top_n_list("en", count)), lambda word: word_frequency(word, "en")


def _of(corpus: tuple[str, Iterable[str]], count: int) -> tuple[set[str], Callable[[str], float]]:
    """The same of another corpus."""
    counts, _ = _counted(corpus[1], corpus[0])
    total = counts.total()
    return {word for word, _ in counts.most_common(count)}, lambda word: counts[word] / total
