"""Texts become vectors: documents at index time, queries when they are searched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.errors import BackendProblem, CheckpointProblem, MissingExtra
from secondlook.model.checkpoint import layer_count, locate, open_checkpoint, read_config
from secondlook.score.export_folder import fingerprint
from secondlook.score.text_encoder import TextEncoder, open_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from secondlook.encode.features import Features
    from secondlook.model.checkpoint import Checkpoint
    from secondlook.score.text_encoder import PartBackend
    from secondlook.types import Document, Query


@dataclass(frozen=True, slots=True, eq=False)
class QueryVectors:
    """Queries as vectors: the ranker's raw score is `slope · cosine + intercept`."""

    vectors: NDArray[np.float32]  # [queries, dimension], of length 1
    slopes: NDArray[np.float32]  # [queries]
    intercepts: NDArray[np.float32]  # [queries]


@dataclass(frozen=True, slots=True, eq=False)
class TextVectors:
    """Documents as vectors, one for each window."""

    rows: NDArray[np.float32]  # [rows, dimension], of length 1
    counts: NDArray[np.int64]  # [documents], how many rows each has
    cut: NDArray[np.int64]  # [documents], how many tokens did not fit


class VectorEncoder(TextEncoder):
    """Makes vectors as one ranker reads texts. Threads may share it."""

    def __init__(self, checkpoint: Checkpoint, backend: PartBackend) -> None:
        super().__init__(checkpoint, backend)
        self.dimension = _dimension(checkpoint.config)

    @classmethod
    def load_for_queries(cls, folder: Path) -> VectorEncoder:
        """The same, for texts that come one at a time: all cores work on each."""
        return cls.load(folder, one_at_a_time=True)

    @classmethod
    def load(cls, folder: Path, *, one_at_a_time: bool = False) -> VectorEncoder:
        """The encoder of a ranker's folder: its export, the fastest there is, or else torch."""
        checkpoint = open_checkpoint(folder)
        refuse_without_vectors(checkpoint)
        opened = open_part(checkpoint, "encoder", one_at_a_time=one_at_a_time)
        if opened is not None:
            return cls(checkpoint, opened)
        try:
            from secondlook.score.torch_vectors import TorchVectors
        except ImportError as error:
            raise MissingExtra(
                "torch", f"{folder} was not exported, and encoding with it"
            ) from error
        return cls(checkpoint, TorchVectors.load(checkpoint.folder))

    def query_vectors(self, queries: Sequence[Query]) -> NDArray[np.float32]:
        """One unit vector for each query: [queries, dimension]."""
        return self.queries(queries).vectors

    def queries(self, queries: Sequence[Query]) -> QueryVectors:
        """The queries' vectors, and how cosines with them become scores."""
        made = self._rows(self._read_queries(queries))
        return QueryVectors(_units(made[:, :-2]), made[:, -2], made[:, -1])

    def documents(self, documents: Sequence[Document]) -> TextVectors:
        """The documents' vectors, each read as beside an empty query."""
        windows = self._encoder.windows(documents)
        read = self._read_documents([one.document for own in windows for one in own])
        counts = np.array([len(own) for own in windows], np.int64)
        cut = np.array([one.cut for one in read], np.int64)
        rows = _units(self._rows(read)[:, :-2])
        starts = np.cumsum(counts) - counts
        return TextVectors(rows, counts, np.add.reduceat(cut, starts) if len(cut) else cut)

    def _rows(self, texts: Sequence[Features]) -> NDArray[np.float32]:
        """For each text its vector, then slope and intercept: [texts, dimension + 2]."""
        rows = np.empty((len(texts), self.dimension + 2), np.float32)
        self._run(texts, rows.__setitem__)
        return rows


def dimension_of(source: str | Path) -> int:
    """Of the vectors that a ranker or bi-encoder makes."""
    return _dimension(read_config(locate(source)))


def _dimension(config: Mapping[str, Any]) -> int:
    return int(config.get("hidden_size") or config["dim"])  # DistilBERT's name


def vector_fingerprint(checkpoint: Checkpoint) -> str:
    """A digest of all that a ranker's vectors depend on: weights, and how it reads texts."""
    encode = checkpoint.settings.encode.model_dump(mode="json")
    if encode["windows"] is not None:  # how their scores are pooled changes no vector
        encode["windows"] = {name: encode["windows"][name] for name in ("unit", "length", "stride")}
    made_of = {"network": fingerprint(checkpoint), "encode": encode}
    return f"sha256:{sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()}"


def refuse_without_vectors(checkpoint: Checkpoint) -> None:
    """Raise CheckpointProblem for a ranker that makes no vectors of single texts."""
    settings = checkpoint.settings
    if settings.warm is None:
        raise CheckpointProblem(
            f"{checkpoint.folder} reads query and document together and makes no vectors; take a "
            "bi-encoder, or a ranker that was made from one with: secondlook warm"
        )
    if settings.encode.markers is not None:
        raise CheckpointProblem(
            f"{checkpoint.folder} marks the query's words in documents, so that their vectors "
            "would depend on the query; take a ranker without markers"
        )


def scores_by_vectors(checkpoint: Checkpoint) -> bool:
    """Whether stored vectors give the ranker's scores: none of its layers sees both texts."""
    warm, markers = checkpoint.settings.warm, checkpoint.settings.encode.markers
    if warm is None or markers is not None:
        return False
    return warm.separate_layers == layer_count(checkpoint.config)


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of length 1 exactly as float32 has it, whatever precision the engine computed in."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise BackendProblem("the encoder gave a vector that is no number; check its export")
    units: NDArray[np.float32] = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return units
