"""From queries, judgments and a first stage to training groups.

A negative is never a judged positive, nor a text that a positive repeats. Three rules drop a
candidate that would be drawn as a negative:

* *same text*: its words are a positive's, whatever the case, punctuation and white space;
* *near duplicate*: its 3-word shingles and a positive's have a Jaccard index of .8 or more;
* *repeated*: its words are those of a negative that was taken before.

A group of all candidates (for validation) is the first stage as it is: nothing is dropped.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from secondlook.data.near_duplicates import near, shingles, words_of
from secondlook.errors import MissingDocument, MissingQuery, SecondlookError
from secondlook.rank.present import fetch_present
from secondlook.recipe import Settings
from secondlook.train.groups import HIGHEST_GRADE, UNJUDGED, Group
from secondlook.types import Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from secondlook.data.store import CorpusStore
    from secondlook.types import Corpus, Document, Qrels, Query


class MineSettings(Settings):
    """Which documents make a group."""

    positive_grade: int = Field(1, ge=1)
    """From this grade on a document is a positive. One of a lower grade above 0 is not drawn as a
    negative; among all candidates it has the label 0, and in validation its gain."""
    negatives: int | None = Field(20, ge=0)
    """How many of the first stage's candidates are drawn as negatives; None takes all candidates,
    positives among them, and drops nothing: the form of a validation set."""
    ranks: tuple[int, int] = (1, 100)
    """Where in the first stage candidates may stand, from and to."""
    random: int = Field(0, ge=0)
    """How many more negatives are drawn from the whole corpus."""
    judged: bool = False
    """Whether every document judged not relevant is a negative, found by the first stage or not."""
    add_positives: bool | None = None
    """Whether positives that stand nowhere in `ranks` are put in; None: unless all are taken."""
    seed: int = 7

    @model_validator(mode="after")
    def _agree(self) -> Self:
        first, last = self.ranks
        if not 1 <= first <= last:
            raise SecondlookError(f"ranks {first}-{last}: ranks count from 1, upwards; as in 1-100")
        return self

    @property
    def adds_positives(self) -> bool:
        """`add_positives`, decided."""
        return self.negatives is not None if self.add_positives is None else self.add_positives


@dataclass(slots=True)
class Counts:
    """What mining made and left out, counted while it goes on."""

    queries: int = 0
    """That became groups."""
    positives: int = 0
    positives_added: int = 0
    """Of them, those the first stage did not find among `ranks`."""
    positives_missed: int = 0
    """Judged positives in no group: not found and not added, or without text in the corpus."""
    positives_without_text: int = 0
    negatives: int = 0
    negatives_judged: int = 0
    """Of them, those judged not relevant."""
    dropped: dict[str, int] = field(
        default_factory=lambda: {
            "same text": 0,
            "near duplicate": 0,
            "repeated": 0,
            "grade between": 0,
        }
    )
    """Candidates that were met and left out, by rule."""
    queries_without_positive: int = 0
    queries_without_candidate: int = 0
    queries_unjudged: int = 0
    """Rankings of queries that no judgment names."""

    def to_dict(self) -> dict[str, int | dict[str, int]]:
        """For JSON."""
        return asdict(self)

    def summary(self) -> str:
        """Lines for a person."""
        dropped = ", ".join(f"{rule} {count:,}" for rule, count in self.dropped.items())
        return (
            f"{self.queries:,} queries\n"
            f"  positives {self.positives:,}, of which {self.positives_added:,} were not among the "
            f"candidates; {self.positives_missed:,} more are in no group "
            f"({self.positives_without_text:,} have no text)\n"
            f"  negatives {self.negatives:,}, of which {self.negatives_judged:,} judged\n"
            f"  dropped while drawing: {dropped}\n"
            f"  queries left out: {self.queries_without_positive:,} without a positive, "
            f"{self.queries_without_candidate:,} without a positive or a negative in the group; "
            f"{self.queries_unjudged:,} of the run are not judged"
        )

    def add(self, more: Mapping[str, Any]) -> None:
        """Count in what another one, as `to_dict` gives it, has counted."""
        for name, count in more.items():
            if name == "dropped":
                for rule, times in count.items():
                    self.dropped[rule] += times
            else:
                setattr(self, name, getattr(self, name) + count)


def judged(
    rankings: Iterable[Ranking], queries: Mapping[str, Query], qrels: Qrels, counts: Counts
) -> Iterator[Ranking]:
    """The rankings of judged queries, as they come, and empty ones for those that have none."""
    left = dict.fromkeys(query_id for query_id in qrels if query_id in queries)
    for ranking in rankings:
        if ranking.query_id not in qrels:
            counts.queries_unjudged += 1
            continue
        if ranking.query_id not in queries:
            raise MissingQuery(ranking.query_id, "the file of queries")
        left.pop(ranking.query_id)
        yield ranking
    for query_id in left:
        yield Ranking(query_id, ())


class Miner:
    """Makes groups, one query at a time.

    `pool` is where random negatives come from. What is drawn for a query depends on the seed and
    the query alone, not on the other queries.
    """

    def __init__(
        self,
        queries: Mapping[str, Query],
        qrels: Qrels,
        corpus: Corpus,
        settings: MineSettings,
        pool: CorpusStore | None = None,
    ) -> None:
        if settings.random and pool is None:
            raise SecondlookError(
                "random negatives are drawn from a corpus on this disk; give the corpus itself or "
                "a bm25s index of it instead of this index"
            )
        _refuse_high_grades(qrels)
        self.counts = Counts()
        self._queries, self._qrels, self._corpus = queries, qrels, corpus
        self._settings, self._pool = settings, pool

    def groups(self, rankings: Iterable[Ranking]) -> Iterator[Group]:
        """The groups in the order of the rankings, which are read once, as they are needed.

        Judged queries without a ranking come at the end.
        """
        for ranking in judged(rankings, self._queries, self._qrels, self.counts):
            yield from self._group(ranking.query_id, [hit.doc_id for hit in ranking.hits])

    def _group(self, query_id: str, ranked: Sequence[str]) -> Iterator[Group]:
        """The query's group, or none where there is nothing to learn."""
        settings, grades = self._settings, self._qrels[query_id]
        wanted = [d for d, grade in grades.items() if grade >= settings.positive_grade]
        validates = settings.negatives is None and max(grades.values(), default=0) > 0
        if not wanted and not validates:
            self.counts.queries_without_positive += 1
            return
        first, last = settings.ranks
        ranks = {doc_id: rank for rank, doc_id in enumerate(ranked, start=1)}
        candidates = ranked[first - 1 : last]
        positives = self._positives(wanted, set(candidates))
        if settings.negatives is None:
            known = {document.id for document in positives}
            others = self._there([doc_id for doc_id in candidates if doc_id not in known])
        else:
            others = self._drawn(query_id, candidates, grades, positives)
        if settings.negatives is not None and not (positives and others):
            self.counts.queries_without_candidate += 1
            return
        taken = sorted((*positives, *others), key=lambda d: ranks.get(d.id, len(ranked) + 1))
        kept = {document.id for document in taken}
        missed = {d: grade for d, grade in grades.items() if grade > 0 and d not in kept}
        lost = sum(grade >= settings.positive_grade for grade in missed.values())
        self._count(positives, others, grades, set(candidates), lost)
        labels = tuple(self._label(grades.get(document.id)) for document in taken)
        measured = tuple(max(grades[d.id], 0) if d.id in grades else UNJUDGED for d in taken)
        yield Group(
            self._queries[query_id],
            tuple(taken),
            labels,
            tuple(ranks.get(document.id, 0) for document in taken),
            missed=tuple(missed.values()),
            grades=None if measured == labels else measured,
        )

    def _positives(self, wanted: list[str], found: set[str]) -> list[Document]:
        if not self._settings.adds_positives:
            return self._there([doc_id for doc_id in wanted if doc_id in found])
        held = self._held(wanted, found)
        self.counts.positives_without_text += len(wanted) - len(held)
        return held

    def _there(self, doc_ids: list[str]) -> list[Document]:
        """The documents in this order, without those that have vanished from a live index."""
        found = fetch_present(self._corpus, doc_ids)
        return [found[doc_id] for doc_id in doc_ids if doc_id in found]

    def _held(self, judged: list[str], found: set[str]) -> list[Document]:
        """Those whose text there is: judgments may name documents that the corpus lacks.

        What the first stage found must be there: its run is of this corpus.
        """
        try:
            return self._there(judged)
        except MissingDocument as missing:
            if found.intersection(missing.doc_ids):
                raise
            lost = set(missing.doc_ids)
            return self._corpus.fetch([doc_id for doc_id in judged if doc_id not in lost])

    def _drawn(
        self,
        query_id: str,
        candidates: Sequence[str],
        grades: Mapping[str, int],
        positives: list[Document],
    ) -> list[Document]:
        """Negatives from the first stage, from the judgments and from the corpus, no text twice."""
        settings = self._settings
        assert settings.negatives is not None
        rng = Random(f"{settings.seed} {query_id}")  # noqa: S311 - drawing, no secret
        fair = [doc_id for doc_id in candidates if self._may(doc_id, grades)]
        sieve = _NegativeFilter(positives, self.counts.dropped)
        taken: list[Document] = []
        if settings.judged:
            worse = [doc_id for doc_id, grade in grades.items() if grade <= 0]
            taken = sieve.take(iter(self._held(worse, set(candidates))), len(worse))
        order = rng.sample(fair, len(fair))
        taken += sieve.take(self._fetched(order, settings.negatives), settings.negatives)
        taken += sieve.take(self._random(rng, grades), settings.random)
        return taken

    def _fetched(self, doc_ids: Sequence[str], at_once: int) -> Iterator[Document]:
        """The documents, some at a time: of a deep run few are ever asked for."""
        step = max(at_once, 1)
        for start in range(0, len(doc_ids), step):
            yield from self._there(list(doc_ids[start : start + step]))

    def _random(self, rng: Random, grades: Mapping[str, int]) -> Iterator[Document]:
        if self._pool is None:
            return
        for _ in range(10 * self._settings.random):  # a tiny corpus may not hold as many
            (document,) = self._pool.at([rng.randrange(len(self._pool))])
            if document.id not in grades:
                yield document

    def _may(self, doc_id: str, grades: Mapping[str, int]) -> bool:
        """Whether it is no positive, and not between positive and negative either."""
        grade = grades.get(doc_id, 0)
        if 0 < grade < self._settings.positive_grade:
            self.counts.dropped["grade between"] += 1
        return grade <= 0

    def _label(self, grade: int | None) -> int:
        """The label of a grade: what is too low for a positive is not relevant."""
        if grade is None:
            return UNJUDGED
        return grade if grade >= self._settings.positive_grade else 0

    def _count(
        self,
        positives: list[Document],
        others: list[Document],
        grades: Mapping[str, int],
        found: set[str],
        missed: int,
    ) -> None:
        counts = self.counts
        counts.queries += 1
        counts.positives += len(positives)
        counts.positives_added += sum(document.id not in found for document in positives)
        counts.positives_missed += missed
        counts.negatives += len(others)
        counts.negatives_judged += sum(document.id in grades for document in others)


def _refuse_high_grades(qrels: Qrels) -> None:
    for query_id, grades in qrels.items():
        for doc_id, grade in grades.items():
            if grade > HIGHEST_GRADE:
                raise SecondlookError(
                    f"the judgments give document {doc_id!r} the grade {grade} for query "
                    f"{query_id!r}; group files hold grades up to {HIGHEST_GRADE}: give smaller "
                    "ones, such as 0 to 3"
                )


class _NegativeFilter:
    """Lets negatives through that repeat neither a positive nor each other."""

    def __init__(self, positives: Iterable[Document], dropped: dict[str, int]) -> None:
        self._positives = [words(document) for document in positives]
        self._shingles = [frozenset(shingles(known)) for known in self._positives]
        self._dropped = dropped
        self._taken: set[tuple[str, ...]] = set()
        self._ids: set[str] = set()

    def take(self, documents: Iterator[Document], count: int) -> list[Document]:
        """The first `count` that pass."""
        taken: list[Document] = []
        while len(taken) < count:
            document = next(documents, None)
            if document is None:
                break
            if document.id in self._ids:
                continue
            own = words(document)
            if rule := self._rule(own):
                self._dropped[rule] += 1
                continue
            self._ids.add(document.id)
            self._taken.add(own)
            taken.append(document)
        return taken

    def _rule(self, own: tuple[str, ...]) -> str | None:
        if own in self._positives:
            return "same text"
        if own in self._taken:
            return "repeated"
        if any(near(own, known) for known in self._shingles):
            return "near duplicate"
        return None


def words(document: Document) -> tuple[str, ...]:
    """What is compared: the words of the text (of the title, if that is all there is)."""
    return words_of(document.text or document.title)
