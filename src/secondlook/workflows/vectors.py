"""Vectors of an index's documents: made by a re-ranker, kept beside the index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress
from secondlook.workflows.states import state_keeper
from secondlook.workflows.vector_refusals import (
    refuse_corpus_of_attached,
    refuse_other_corpus,
    refuse_precision,
    refuse_ray_for_attached,
    refuse_states,
    refuse_windows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.retrieve import Index
    from secondlook.retrieve.engines import Engine
    from secondlook.retrieve.vector_files import VectorCard, VectorPrecision, VectorWriter
    from secondlook.score.vector_scorer import StoredScorer
    from secondlook.score.vectors import TextVectors, VectorEncoder
    from secondlook.types import Document
    from secondlook.workflows.states import KeepStates

    Encoded = Iterator[tuple[list[str], TextVectors]]
    """The ids of some documents, and their vectors."""

_AT_ONCE = 512
"""Documents: the same batches on any machine and after any interruption give the same vectors."""


@dataclass(frozen=True, slots=True)
class VectorsResult:
    """The vectors of an index, and what they take."""

    index: Path
    card: VectorCard
    cut: int
    """Documents that were longer than the ranker reads, of those added by this call."""

    def summary(self) -> str:
        """What there is now, in a line or two."""
        from secondlook.retrieve.state_files import told_states

        card = self.card
        search = f"{card.graphs} HNSW graphs" if card.graphs else "exact search"
        if card.stored == "cluster":
            search = "k-NN on the cluster"
        text = (
            f"{self.index}: {card.rows:,} vectors of {card.dimension} dimensions by {card.ranker}, "
            f"{card.precision}, {search}{told_states(card)}"
        )
        if self.cut:
            text += f"\n{self.cut:,} documents were longer than the ranker reads and cut short"
        return text

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {"index": str(self.index), "cut": self.cut} | self.card.model_dump(mode="json")


def check_encoder(ranker: str | Path) -> None:
    """Raise CheckpointProblem for a ranker that makes no vectors, before the corpus is read."""
    from secondlook.score.encoder_copy import identity

    identity(ranker)


def add_vectors(
    index: str | Path,
    corpus: str | Path,
    ranker: str | Path,
    *,
    precision: VectorPrecision = "fp32",
    states: bool = False,
    corpus_format: str = "auto",
    ray: str | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> VectorsResult:
    """Encode every document of an index, so that it can be searched by vectors.

    `ranker` is a re-ranker made from a bi-encoder, or a bi-encoder: a folder or a hub id. A copy is
    kept in the index folder, to encode queries. `corpus` must be what was indexed; for an attached
    index it is that index itself, whose documents are read and to which nothing is written. After
    an interruption the same call resumes; earlier vectors are replaced when the new ones are
    complete. With `ray`, an address or "local", workers of that cluster encode parts of the corpus.
    With `states`, what the separate layers of the ranker make of every token is stored, too, so
    that re-ranking starts above them.
    """
    from secondlook.data import read_corpus
    from secondlook.retrieve import open_index

    reported, folder = as_progress(progress), Path(index)
    engine = open_index(folder)
    refuse_precision(type(engine), precision)
    if states:
        kind = "attached" if engine.card.engine == "attached" else type(engine)
        refuse_states(ranker, engine=kind, ray=ray)
    if engine.card.engine == "attached":
        refuse_corpus_of_attached(folder, corpus)
        refuse_ray_for_attached(folder, ray)
        live: Any = engine
        return make_vectors(folder, engine, live.documents(), ranker, precision, reported)

    def documents() -> Iterator[Document]:
        return read_corpus(str(corpus), corpus_format)

    if getattr(engine, "stores_vectors", False):
        on_cluster: Any = engine
        settings = on_cluster.rebuild_settings()
        refuse_other_corpus(engine, documents(), folder, reported)
        return build_with_vectors(
            folder, type(engine), settings, documents, ranker, reported, ray=ray
        )
    refuse_other_corpus(engine, documents(), folder, reported)
    return make_vectors(
        folder, engine, documents(), ranker, precision, reported, states=states, ray=ray
    )


def make_vectors(
    index: Path,
    engine: Engine,
    documents: Iterable[Document],
    ranker: str | Path,
    precision: VectorPrecision,
    progress: Progress,
    *,
    states: bool = False,
    ray: str | None = None,
) -> VectorsResult:
    """The same for documents that are known to be the index's.

    Those of an attached index may change at any time: they are always encoded anew.
    """
    from secondlook.retrieve.vector_files import FOLDER, has_vectors, read_vector_card
    from secondlook.retrieve.vector_graph import refuse_without_library
    from secondlook.score.encoder_copy import identity

    live = engine.card.engine == "attached"
    if has_vectors(index) and not live:
        card = read_vector_card(index / FOLDER)
        made_of = card.source, card.precision, card.corpus
        same = made_of == (identity(ranker), precision, engine.card.fingerprint)
        if same and (card.state_tokens or not states):
            return VectorsResult(index, card, 0)
    refuse_without_library(engine.card.documents)
    writer, encoder, cut = encode_corpus(
        index,
        engine.card.fingerprint,
        engine.card.documents,
        documents,
        ranker,
        precision,
        progress,
        live=live,
        states=states,
        ray=ray,
    )
    card = _finish(writer, encoder, engine.card.fingerprint, ranker, precision, progress)
    return VectorsResult(index, card, cut)


def build_with_vectors(
    index: Path,
    engine: type[Any],
    settings: Any,  # noqa: ANN401 - the engine's own
    documents: Callable[[], Iterator[Document]],
    ranker: str | Path,
    progress: Progress,
    *,
    ray: str | None = None,
) -> VectorsResult:
    """Build an index whose engine keeps the vectors with the documents, as a cluster does.

    They are encoded first, once the engine has said that it can take them; both steps resume. What
    the engine served before goes on serving until the new index is complete.
    """
    from secondlook.data import Fingerprint
    from secondlook.retrieve.cluster import VectorField
    from secondlook.score.vectors import dimension_of

    refuse_windows(ranker)
    engine.prepare(index, settings, dimension_of(ranker))
    reading = progress.track(documents(), "reading", "documents")
    corpus = Fingerprint.of(reading)
    index.mkdir(parents=True, exist_ok=True)
    writer, encoder, cut = encode_corpus(
        index, corpus.digest(), corpus.documents, documents(), ranker, "fp32", progress, ray=ray
    )
    rows = writer.complete()
    card = _card(writer, encoder, corpus.digest(), ranker, "fp32").model_copy(
        update={"stored": "cluster"}
    )
    field = VectorField(dimension=encoder.dimension, made_by=card.fingerprint)
    loaded = progress.track(documents(), "loading", "documents", total=corpus.documents)
    engine.build(index, loaded, settings.model_copy(update={"vectors": field}), vectors=rows)
    writer.finish(card)
    return VectorsResult(index, card, cut)


def encode_corpus(
    index: Path,
    corpus: str,
    total: int | None,
    documents: Iterable[Document],
    ranker: str | Path,
    precision: VectorPrecision,
    progress: Progress,
    *,
    live: bool = False,
    states: bool = False,
    ray: str | None = None,
) -> tuple[VectorWriter, VectorEncoder, int]:
    """Encode the documents into a folder in the making; how many were cut short.

    `corpus` is their fingerprint. A resumed call skips as many documents as were encoded, or those
    with the same ids where the corpus is `live`: there, another order or number is to be expected.
    """
    from secondlook.retrieve.vector_files import ENCODER, VectorWriter
    from secondlook.score.encoder_copy import copy_encoder, identity
    from secondlook.score.vectors import VectorEncoder, dimension_of

    with progress.busy("preparing the encoder"):
        job = {"ranker": identity(ranker), "corpus": corpus, "precision": precision}
        if states:
            job["states"] = "fp16"
        writer = VectorWriter(index, job, dimension_of(ranker), precision)
        own = writer.folder / ENCODER
        if not own.is_dir() and not copy_encoder(ranker, own, states=states):
            progress.say("torch is used; for faster encoding: pip install 'secondlook[export]'")
        writer.save()  # one encoder for the whole job, however often it is interrupted
        encoder = VectorEncoder.load(own)
        keep = state_keeper(writer, own) if states else None
    rest: Iterator[Document] = islice(documents, 0 if live else writer.documents, None)
    if live:
        rest = _unseen(rest, set(writer.doc_ids()))
    cut = 0
    with progress.counting("encoding", "documents", total) as advance:
        advance(writer.documents)
        try:
            made = (
                _encoded_here(encoder, rest, advance, keep)
                if ray is None
                else _encoded_on_ray(writer, job, encoder, rest, advance, ray)
            )
            for doc_ids, vectors in made:
                writer.add(doc_ids, vectors.counts, vectors.rows)
                cut += int((vectors.cut > 0).sum())
        except BaseException:
            writer.close()
            raise
    return writer, encoder, cut


def _encoded_here(
    encoder: VectorEncoder,
    documents: Iterator[Document],
    advance: Callable[[int], None],
    keep_states: KeepStates | None,
) -> Encoded:
    while some := list(islice(documents, _AT_ONCE)):
        vectors = encoder.documents(some)
        if keep_states is not None:  # before the writer may save that it has these documents
            keep_states(some)
        yield [one.id for one in some], vectors
        advance(len(some))


def _encoded_on_ray(
    writer: VectorWriter,
    job: Mapping[str, Any],
    encoder: VectorEncoder,
    documents: Iterator[Document],
    advance: Callable[[int], None],
    address: str,
) -> Encoded:
    """The same batches, each a part of a job of workers that open the copied encoder.

    `documents` are those that the writer has not. The parts are removed when it has all.
    """
    from secondlook.retrieve.vector_files import ENCODER
    from secondlook.scale.documents import encoding, made, vectors_of

    parts = made(
        writer.target,
        job,
        partial(encoding, (writer.folder / ENCODER).absolute()),
        documents,
        _AT_ONCE,
        advance=advance,
        ray=address,
        first=writer.documents // _AT_ONCE,
    )
    rows = parts.rows()
    while some := list(islice(rows, _AT_ONCE)):
        yield vectors_of(some, encoder.dimension)
    writer.save()
    parts.remove()


def _unseen(documents: Iterable[Document], seen: set[str]) -> Iterator[Document]:
    """The documents whose ids were not seen, each once."""
    for document in documents:
        if document.id not in seen:
            seen.add(document.id)
            yield document


def stored_scorer_of(index: Index, ranker: str | Path) -> StoredScorer | None:
    """What scores as the ranker does from the index's vectors or states; None without its own."""
    from secondlook.retrieve.hybrid import HybridIndex
    from secondlook.score.vector_scorer import StoredScoring, stored_scorer

    if not isinstance(index, HybridIndex):
        return None
    encoder: Any = index  # whose encoder is loaded only where it is needed
    stored = index.vectors
    return stored_scorer(
        StoredScoring.of(ranker),
        lambda: encoder.encoder,
        stored,
        stored.card.fingerprint,
        reads_texts=index.card.engine == "attached",
    )


def _finish(
    writer: VectorWriter,
    encoder: VectorEncoder,
    corpus: str,
    ranker: str | Path,
    precision: VectorPrecision,
    progress: Progress,
) -> VectorCard:
    from secondlook.retrieve.vector_graph import EXACT_ROWS, build_graphs
    from secondlook.score.cores import threads

    rows = writer.complete()
    graphs = 0
    if len(rows) > EXACT_ROWS:
        with progress.counting("building the HNSW graphs", "vectors", len(rows)) as advance:
            given = rows, writer.folder, precision, encoder.dimension, advance
            graphs = build_graphs(*given, threads=threads())
    card = _card(writer, encoder, corpus, ranker, precision).model_copy(update={"graphs": graphs})
    with progress.busy("taking digests of the vectors"):
        writer.finish(card)
    return card


def _card(
    writer: VectorWriter,
    encoder: VectorEncoder,
    corpus: str,
    ranker: str | Path,
    precision: VectorPrecision,
) -> VectorCard:
    from secondlook.model.checkpoint import base_name, open_checkpoint
    from secondlook.retrieve.state_files import count_tokens
    from secondlook.retrieve.vector_files import ENCODER, VectorCard
    from secondlook.score.encoder_copy import identity
    from secondlook.score.vectors import vector_fingerprint

    return VectorCard(
        ranker=base_name(ranker),
        source=identity(ranker),
        fingerprint=vector_fingerprint(open_checkpoint(writer.folder / ENCODER)),
        dimension=encoder.dimension,
        precision=precision,
        documents=writer.documents,
        rows=writer.rows,
        corpus=corpus,
        windows=encoder.settings.encode.windows,
        state_tokens=count_tokens(writer.folder),
    )
