"""Build an index of a corpus, add documents to it, and remove some."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import Progress, as_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from secondlook.progress import ProgressCallback
    from secondlook.retrieve import UpdatableIndex
    from secondlook.retrieve.search_index import SearchIndex
    from secondlook.retrieve.vector_files import VectorPrecision
    from secondlook.types import Document


def build_index(
    corpus: str | Path,
    folder: str | Path,
    *,
    engine: str | None = None,
    corpus_format: str = "auto",
    k1: float | None = None,
    b: float | None = None,
    language: str | None = None,
    url: str | Sequence[str] | None = None,
    discover: bool = True,
    name: str | None = None,
    shards: int = 1,
    replicas: int = 0,
    options: Mapping[str, Any] | None = None,
    vectors: str | Path | None = None,
    vector_precision: VectorPrecision = "fp32",
    states: bool = False,
    ray: str | None = None,
    replace: bool = False,
    progress: Progress | ProgressCallback | None = None,
) -> SearchIndex:
    """Index a corpus for first-stage retrieval (BM25); gives the opened index.

    `folder` appears when the index is complete. Raises IndexProblem if it is an index already,
    unless `replace` is set. `vectors` is a re-ranker or bi-encoder that encodes every document, so
    that the index can be searched by vectors too, stored as fp32, fp16 or int8 (on a cluster only
    fp32); an index of the same corpus that is there already gets them, and an interrupted call
    resumes. With `ray`, an address or "local", workers of that cluster encode parts of the corpus.
    With `states`, what the separate layers of that re-ranker make of every token is stored, too:
    re-ranking starts above.

    By default `engine` is "bm25s", `k1` 0.9, `b` 0.4 and `language` "english", which says how words
    are stemmed and which are stop words: "german", "french", …, "cjk", or "none" for neither. For
    `engine="opensearch"`: `url` names nodes of the cluster (default: OPENSEARCH_URL, or
    localhost:9200), `discover` finds the other nodes, `name` is the index on the cluster (default:
    the folder's name), with so many `shards` and `replicas`. An engine that an installed package
    adds may take other `options`.

    >>> import secondlook as sl
    >>> index = sl.build_index("corpus.jsonl", "my.index")
    >>> index.retrieve(["cats land on their feet"], k=2)
    <Run 'bm25s': 1 queries, 2 hits>
    """
    from secondlook.data.formats import corpus_file
    from secondlook.errors import DuplicateId, IndexProblem, WrongArgument
    from secondlook.retrieve.engines import ENGINES
    from secondlook.retrieve.folder import CARD
    from secondlook.retrieve.search_index import SearchIndex
    from secondlook.workflows.open_index import open_index
    from secondlook.workflows.vector_refusals import (
        refuse_other_settings,
        refuse_precision,
        refuse_states,
    )
    from secondlook.workflows.vectors import (
        add_vectors,
        build_with_vectors,
        check_encoder,
        make_vectors,
    )

    target, reported = Path(folder), as_progress(progress)
    if vectors is not None:
        check_encoder(vectors)
    elif ray is not None:
        raise WrongArgument("workers of a Ray cluster make vectors alone: give vectors too")
    chosen = ENGINES[engine or "bm25s"]
    refuse_precision(chosen, vector_precision)
    if states:
        refuse_states(vectors, engine=chosen, ray=ray)
    if (target / CARD).exists() and not replace:
        if vectors is None:
            raise IndexProblem(f"{target} is already an index; to rebuild it, give `replace=True`")
        refuse_other_settings(target, engine=engine, k1=k1, b=b, language=language)
        add_vectors(
            target,
            corpus,
            vectors,
            precision=vector_precision,
            states=states,
            corpus_format=corpus_format,
            ray=ray,
            progress=reported,
        )
        return open_index(target)
    documents = _Documents(str(corpus), corpus_format, reported)
    settings = chosen.options(
        target,
        k1=0.9 if k1 is None else k1,
        b=0.4 if b is None else b,
        analyzer="english" if language is None else language,
        url=url,
        discover=discover,
        name=name,
        shards=shards,
        replicas=replicas,
        **options or {},
    )
    if vectors is not None and getattr(chosen, "stores_vectors", False):
        again = _Documents(str(corpus), corpus_format, Progress())
        build_with_vectors(target, chosen, settings, again.__iter__, vectors, reported, ray=ray)
        return open_index(target)
    try:
        built = chosen.build(target, documents, settings)
    except DuplicateId as twice:
        path = corpus_file(str(corpus), corpus_format)
        raise (twice.in_file(path) if path else twice) from twice
    if vectors is None:
        return SearchIndex(built)
    again = _Documents(str(corpus), corpus_format, Progress())
    make_vectors(target, built, again, vectors, vector_precision, reported, states=states, ray=ray)
    return open_index(target)


def add_documents(
    index: str | Path,
    corpus: str | Path,
    *,
    corpus_format: str = "auto",
    progress: Progress | ProgressCallback | None = None,
) -> UpdatableIndex:
    """Add documents to an index on a cluster, replacing those with the same id.

    They are searchable when this returns; gives the opened index.
    """
    from secondlook.retrieve import open_updatable

    opened = open_updatable(Path(index))
    documents = _Documents(str(corpus), corpus_format, as_progress(progress), "adding")
    encode = _encode_for(Path(index))
    if encode is None:
        opened.upsert(iter(documents))
    else:
        with_vectors: Any = opened
        with_vectors.upsert(iter(documents), encode)
    return opened


def _encode_for(index: Path) -> Callable[[list[Document]], Any] | None:
    """What makes the vectors of documents that are added; None for an index without vectors."""
    from secondlook.retrieve.vector_files import ENCODER, FOLDER, has_vectors
    from secondlook.score.vectors import VectorEncoder

    if not has_vectors(index):
        return None
    encoder = VectorEncoder.load(index / FOLDER / ENCODER)
    return lambda documents: encoder.documents(documents).rows


def remove_documents(index: str | Path, doc_ids: Iterable[str]) -> UpdatableIndex:
    """Remove documents from an index on a cluster; if one id is unknown, none is removed.

    Gives the opened index.
    """
    from secondlook.retrieve import open_updatable

    opened = open_updatable(Path(index))
    opened.delete(list(doc_ids))
    return opened


class _Documents:
    """The documents of a corpus, counted as they are read; an engine may read them twice."""

    def __init__(
        self, source: str, corpus_format: str, progress: Progress, doing: str = "indexing"
    ) -> None:
        self.source, self.corpus_format = source, corpus_format
        self._progress, self._doing = progress, doing

    def __iter__(self) -> Iterator[Document]:
        from secondlook.data import read_corpus

        documents = read_corpus(self.source, self.corpus_format)
        return self._progress.track(documents, self._doing, "documents")
