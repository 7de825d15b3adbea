"""The in-process engine: bm25s, memory-mapped, with the texts beside it in a corpus store."""

from __future__ import annotations

import shutil
from array import array
from collections import defaultdict
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import bm25s
import numpy as np
from pydantic import Field
from scipy.sparse import csc_matrix

from secondlook.analyze import DEFAULT, analyzer
from secondlook.data.lock import locked
from secondlook.data.store import CorpusStore
from secondlook.errors import IndexProblem
from secondlook.recipe import Settings
from secondlook.retrieve.contents import contents
from secondlook.retrieve.digests import changed_files, write_digests
from secondlook.retrieve.engines import Health, known
from secondlook.retrieve.folder import CARD, IndexCard, read_card, write_card
from secondlook.retrieve.id_list import ID_ENDS, IDS, IdList
from secondlook.retrieve.search_options import refuse_no_hits
from secondlook.retrieve.ties import hits_at
from secondlook.retrieve.vector_files import UNFINISHED, is_of_vectors
from secondlook.types import Document, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from numpy.typing import NDArray

    from secondlook.analyze import Analyzer

_STORE = "corpus.sqlite"
MATRIX = "bm25s"
"""The folder of the postings in an index folder."""
_TERMS_AT_ONCE = 1_000_000
_SAMPLED = 64
_IDS_AT_ONCE = 10_000


class Bm25Settings(Settings):
    """BM25 as the papers set it; Lucene's variant, over the terms of title and text."""

    k1: float = Field(0.9, ge=0, le=1e6)
    b: float = Field(0.4, ge=0, le=1)
    analyzer: str = DEFAULT
    """How texts become terms, by name: a language, `none` or `cjk`."""


class Bm25Index:
    """BM25 without a server, for corpora up to some millions of passages. Cannot be updated."""

    def __init__(
        self, card: IndexCard, store: CorpusStore, matrix: bm25s.BM25, ids: IdList
    ) -> None:
        self.card = card
        self.store = store
        self._matrix = matrix
        self._ids = ids
        self._analyzer = analyzer(Bm25Settings.model_validate(card.settings).analyzer)

    @classmethod
    def options(cls, folder: Path, **given: Any) -> Bm25Settings:  # noqa: ANN401 - see Engine
        """Of what was given: k1, b and the analyzer."""
        settings = Bm25Settings.model_validate(known(Bm25Settings, given))
        analyzer(settings.analyzer)  # before the corpus is read
        return settings

    @classmethod
    def check(cls, url: str | None) -> Health:
        """It comes with secondlook."""
        return Health(usable=True, note="in process")

    def stored_bytes(self) -> int:
        """What its folder holds of texts and postings, without the vectors beside them."""
        own = (path for path in self.store.path.parent.iterdir() if not is_of_vectors(path))
        files = (file for path in own for file in (path, *path.rglob("*")) if file.is_file())
        return sum(file.stat().st_size for file in files)

    @classmethod
    def build(
        cls, folder: Path, documents: Iterable[Document], settings: Bm25Settings
    ) -> Bm25Index:
        """Index the documents in one pass; the folder appears whole or not at all.

        Raises OutputInUse where another process is building the same folder.
        """
        target = folder.resolve()  # "." has no name to put beside it
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            _recover(target)
            _refuse_other_content(target)
            half = target.with_name(f".{target.name}.half")
            shutil.rmtree(half, ignore_errors=True)  # what an interrupted build left behind
            half.mkdir()
            try:
                _fill(half, documents, settings)
                _put_in_place(half, target)
            except BaseException:
                shutil.rmtree(half, ignore_errors=True)
                raise
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Bm25Index:
        """A finished index; nothing but the vocabulary is read into memory.

        Raises IndexProblem where its parts do not fit together; `verify` looks closer.
        """
        card = read_card(folder)
        store = CorpusStore.open(folder / _STORE)
        try:
            matrix = bm25s.BM25.load(folder / MATRIX, mmap=True)
            ids = IdList(folder)
            fits = _fits(matrix, ids, len(store), store.fingerprint, card)
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            raise _damaged(folder, error) from error
        if not fits:
            raise _damaged(folder, "its parts do not belong together")
        return cls(card, store, matrix, ids)

    def verify(self) -> None:
        """Read everything; raises IndexProblem unless it is as it was made."""
        self.store.verify()
        documents = self._matrix.scores["indices"]  # [postings]
        folder, total = self.store.path.parent, len(self.store)
        if len(documents) and not (documents.min() >= 0 and documents.max() < total):
            raise _damaged(folder, "it has postings of documents that do not exist")
        for start in range(0, total, _IDS_AT_ONCE):
            positions = np.arange(start, min(start + _IDS_AT_ONCE, total))
            stored = [document.id for document in self.store.at(positions.tolist())]
            try:
                ids = self._ids.at(positions)
            except (ValueError, IndexError) as error:
                raise _damaged(folder, error) from error
            if ids != stored:
                raise _damaged(folder, "it has other document ids than its texts")
        if changed := changed_files(folder / MATRIX):
            raise _damaged(folder, f"{MATRIX}/ is not as it was written: {', '.join(changed)}")

    def retrieve(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """BM25's best `k`; a document that shares no term with the query is no hit."""
        refuse_no_hits(k)
        vocabulary = self._matrix.vocab_dict
        terms = [
            [vocabulary[term] for term in self._analyzer.terms(query.text) if term in vocabulary]
            for query in queries
        ]
        return [
            self._ranking(query, known, k) if known else Ranking(query.id, ())
            for query, known in zip(queries, terms, strict=True)
        ]

    def _ranking(self, query: Query, terms: list[int], k: int) -> Ranking:
        try:
            scores = self._matrix.get_scores_from_ids(terms)  # [documents]
            best = _best(scores, k)
            hits = hits_at(best[scores[best] > 0], scores, self._ids.at)
        except (IndexError, UnicodeDecodeError) as error:
            raise _damaged(self.store.path.parent, error) from error
        return Ranking.of(query.id, hits)

    def fetch(self, doc_ids: Sequence[str]) -> list[Document]:
        """The texts, in the order asked for."""
        return self.store.fetch(doc_ids)

    def close(self) -> None:
        """Let go of its files."""
        self.store.close()


def _fits(
    matrix: bm25s.BM25, ids: IdList, documents: int, fingerprint: str, card: IndexCard
) -> bool:
    """Whether the parts of an index speak of the same documents and terms."""
    starts, terms = matrix.scores["indptr"], matrix.vocab_dict
    postings = len(matrix.scores["data"])
    return bool(
        (card.documents, card.fingerprint) == (documents, fingerprint)
        and matrix.scores["num_docs"] == len(ids) == documents
        and len(matrix.scores["indices"]) == postings == starts[-1]
        and starts[0] == 0
        and (np.diff(starts) >= 0).all()
        and max(terms.values()) < len(starts) - 1
        and min(terms.values()) >= 0
    )


def _damaged(folder: Path, reason: object) -> IndexProblem:
    return IndexProblem(
        f"{folder} is damaged ({reason}); make it anew from the corpus with: "
        f"secondlook index CORPUS {folder} --replace"
    )


def _best(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """The places of the `k` highest scores, in no order.

    A look at every 64th score gives a bar that a few times `k` pass, and only those are sorted
    out: five times faster than partitioning a million. If fewer than `k` pass, all are.
    """
    if k >= len(scores):
        return np.arange(len(scores))
    sample = scores[::_SAMPLED]
    likely = min(len(sample), 4 * (k // _SAMPLED + 1))
    bar = np.partition(sample, -likely)[-likely]
    passing = np.flatnonzero(scores >= bar)
    if len(passing) < k:
        passing = np.arange(len(scores))
    return passing[np.argpartition(scores[passing], -k)[-k:]]


class _Postings:
    """How often each term stands in each document, gathered on disk while the corpus passes.

    bm25s wants the terms of all documents as lists of lists, tens of gigabytes of Python objects
    for millions of documents, and counts them one by one. It invites others to build its matrix
    in another way: this one counts thousands of documents at a time.
    """

    def __init__(self, documents: BinaryIO, terms: BinaryIO, counts: BinaryIO) -> None:
        self.vocabulary: defaultdict[str, int] = defaultdict()
        self.vocabulary.default_factory = self.vocabulary.__len__  # a new term gets the next id
        self.lengths = array("i")  # [documents], in terms
        self._files = documents, terms, counts
        self._waiting: list[int] = []
        self._first = 0  # the document that the waiting terms begin with

    def add(self, terms: list[str]) -> None:
        self._waiting.extend(map(self.vocabulary.__getitem__, terms))
        self.lengths.append(len(terms))
        if len(self._waiting) >= _TERMS_AT_ONCE:
            self._count()

    def _count(self) -> None:
        """Sorted by document, then term: each pair once, with how often it was there."""
        lengths = np.frombuffer(self.lengths, np.int32)[self._first :]
        documents = np.repeat(np.arange(self._first, len(self.lengths), dtype=np.int64), lengths)
        keys, counts = np.unique(
            documents << 32 | np.array(self._waiting, np.int64), return_counts=True
        )
        for file, column in zip(self._files, (keys >> 32, keys, counts), strict=True):
            file.write(column.astype(np.int32).tobytes())  # the lower half of a key is its term
        self._waiting.clear()
        self._first = len(self.lengths)

    def matrix(self, settings: Bm25Settings) -> bm25s.BM25:
        """The scores of Lucene's BM25, computed in advance as bm25s keeps them."""
        self._count()
        documents, terms, counts = (_mapped(file) for file in self._files)
        total = len(self.lengths)
        in_documents = np.bincount(terms, minlength=len(self.vocabulary))
        idf = np.log(1 + (total - in_documents + 0.5) / (in_documents + 0.5)).astype(np.float32)
        lengths = np.frombuffer(self.lengths, np.int32)
        k1, b = settings.k1, settings.b
        norm = (k1 * (1 - b + b * lengths / lengths.mean())).astype(np.float32)
        scores = idf[terms] * counts / (counts + norm[documents])
        shape = total, len(self.vocabulary)
        columns = csc_matrix((scores.astype(np.float32), (documents, terms)), shape=shape)
        matrix = bm25s.BM25(k1=k1, b=b, method="lucene")
        matrix.scores = {
            "data": columns.data,
            "indices": columns.indices,
            "indptr": columns.indptr,
            "num_docs": total,
        }
        matrix.vocab_dict = dict(self.vocabulary)
        matrix.nonoccurrence_array = None  # of other variants than Lucene's
        return matrix


def _mapped(file: BinaryIO) -> NDArray[np.int32]:
    file.flush()
    return np.memmap(file, dtype=np.int32, mode="r")


def _fill(folder: Path, documents: Iterable[Document], settings: Bm25Settings) -> None:
    with (
        TemporaryFile(dir=folder) as documents_of,
        TemporaryFile(dir=folder) as terms,
        TemporaryFile(dir=folder) as counts,
    ):
        postings = _Postings(documents_of, terms, counts)
        store = _store_and_tokenise(folder, documents, postings, analyzer(settings.analyzer))
        if not postings.vocabulary:
            raise IndexProblem(
                "the corpus holds no word to index; check that `corpus_format` reads the text you "
                "mean"
            )
        postings.matrix(settings).save(folder / MATRIX, show_progress=False)
        write_digests(folder / MATRIX)
    write_card(
        folder,
        IndexCard(
            engine="bm25s",
            settings=settings.model_dump(),
            documents=len(store),
            fingerprint=store.fingerprint,
        ),
    )


def _store_and_tokenise(
    folder: Path, documents: Iterable[Document], postings: _Postings, analyzer: Analyzer
) -> CorpusStore:
    """One pass over the corpus: texts into the store, terms into the postings, ids into a file."""
    id_ends = array("q", [0])
    with (folder / IDS).open("wb") as ids:

        def passing() -> Iterator[Document]:
            for document in documents:
                postings.add(analyzer.terms(contents(document)))
                id_ends.append(id_ends[-1] + ids.write(document.id.encode()))
                yield document

        store = CorpusStore.build(folder / _STORE, passing())
    np.save(folder / ID_ENDS, np.array(id_ends, dtype=np.int64))
    return store


def _refuse_other_content(folder: Path) -> None:
    """An older index is replaced; anything else is left alone."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not (folder / CARD).exists():
        raise IndexProblem(f"{folder} holds something else; name another folder for this index")
    read_card(folder)
    if _is_working_folder(folder):
        raise IndexProblem(
            f"{folder} is the folder that this runs in, and an index is replaced as a whole: run "
            "it from another folder"
        )


def _is_working_folder(folder: Path) -> bool:
    return folder.exists() and folder.samefile(".")


def _recover(folder: Path) -> None:
    """Undo what a process left that was killed while it swapped the new index for the old one."""
    old = _previous(folder)
    if old.exists() and folder.exists():
        _remove_previous(old, folder)
    elif old.exists():
        old.rename(folder)


def _previous(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _put_in_place(half: Path, folder: Path) -> None:
    """Swap the new index for what stands at `folder`, which may be an older one."""
    if not folder.exists():
        half.rename(folder)
        return
    if _is_working_folder(folder):  # empty, and not to be moved from under the user
        for path in sorted(half.iterdir(), key=lambda path: path.name == CARD):  # the card last
            path.rename(folder / path.name)
        half.rmdir()
        return
    old = _previous(folder)
    folder.rename(old)
    half.rename(folder)
    _remove_previous(old, folder)


def _remove_previous(old: Path, folder: Path) -> None:
    """Remove an older index; unfinished vectors of the same documents go on in the new one."""
    if _same_documents(old, folder):
        for name in UNFINISHED:
            if (old / name).exists():
                (old / name).rename(folder / name)
    shutil.rmtree(old)


def _same_documents(old: Path, folder: Path) -> bool:
    try:
        return read_card(old).fingerprint == read_card(folder).fingerprint
    except IndexProblem:  # it was empty, or a killed process has removed a part of it
        return False
