"""Texts become states: what a ranker's separate layers make of a text, whatever it is paired with.

Documents' states are made at index time, a query's when it is searched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from secondlook.errors import BackendProblem, CheckpointProblem, MissingExtra
from secondlook.model.checkpoint import CARD, layer_count, locate, open_checkpoint
from secondlook.score.text_encoder import TextEncoder, open_part
from secondlook.score.vectors import refuse_without_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from secondlook.encode.features import Features
    from secondlook.model.checkpoint import Checkpoint
    from secondlook.score.text_encoder import PartBackend
    from secondlook.types import Document, Query


class TextStates(NamedTuple):
    """A text above the separate layers."""

    rows: NDArray[np.floating]  # [tokens, hidden]
    words: NDArray[np.integer]  # [tokens], the word each token belongs to, from 0


class StateEncoder(TextEncoder):
    """Makes states as one ranker reads texts. Threads may share it."""

    @classmethod
    def load(cls, folder: Path) -> StateEncoder:
        """The separate layers of the ranker in a folder: exported, or else run by torch."""
        checkpoint = open_checkpoint(folder)
        refuse_without_states(checkpoint)
        return cls(checkpoint, open_part(checkpoint, "lower") or torch_layers(folder)[0])

    def queries(self, queries: Sequence[Query]) -> list[TextStates]:
        """The states of each query, in float32."""
        return self._states(self._read_queries(queries), np.float32)

    def documents(self, documents: Sequence[Document]) -> list[TextStates]:
        """The states of each document, read as beside an empty query, in float16."""
        made = self._states(self._read_documents(documents), np.float16)
        if not all(np.isfinite(one.rows).all() for one in made):
            raise BackendProblem(
                "this ranker's states are too large for 16 bits, so that none can be stored: make "
                "vectors without states"
            )
        return made

    def _states(
        self, texts: Sequence[Features], kind: type[np.float16 | np.float32]
    ) -> list[TextStates]:
        rows: dict[int, NDArray[np.floating]] = {}

        def take(batch: NDArray[np.intp], made: NDArray[np.float32]) -> None:
            for place, own in zip(batch.tolist(), made, strict=True):
                with np.errstate(over="ignore"):  # looked for by whoever stores them
                    rows[place] = own[: len(texts[place])].astype(kind)  # without the padding

        self._run(texts, take)
        return [TextStates(rows[place], one.words) for place, one in enumerate(texts)]


def torch_layers(folder: Path) -> tuple[PartBackend, PartBackend]:
    """The separate layers of a ranker, and those above, run by torch."""
    try:
        from secondlook.score.torch_vectors import TorchVectors, state_networks
    except ImportError as error:
        raise MissingExtra("torch", f"{folder} was not exported, and scoring with it") from error
    lower, upper = state_networks(folder)
    return TorchVectors(lower), TorchVectors(upper)


def scores_by_states(checkpoint: Checkpoint) -> bool:
    """Whether stored states give the ranker's scores: some of its layers are separate, not all."""
    encode, warm = checkpoint.settings.encode, checkpoint.settings.warm
    if warm is None or encode.markers is not None or encode.windows is not None:
        return False
    return 0 < warm.separate_layers < layer_count(checkpoint.config)


def refuse_without_states(checkpoint: Checkpoint) -> None:
    """Raise CheckpointProblem for a ranker whose documents' states cannot be stored."""
    refuse_without_vectors(checkpoint)
    if scores_by_states(checkpoint):
        return
    folder, warm = checkpoint.folder, checkpoint.settings.warm
    if checkpoint.settings.encode.windows is not None:
        raise CheckpointProblem(
            f"{folder} reads long documents in windows, whose states are not stored: take a ranker "
            "without windows, or make vectors without states"
        )
    if warm is not None and warm.separate_layers:
        raise CheckpointProblem(
            f"all layers of {folder} are separate, so that it scores from vectors alone: make "
            "vectors without states"
        )
    raise CheckpointProblem(
        f"{folder} has no separate layers, so that it has no states to store; take a ranker with "
        "some, made with: secondlook warm BI-ENCODER --separate N"
    )


def check_states(source: str | Path) -> None:
    """The same for a ranker or a bi-encoder by its name."""
    folder = locate(source)
    if not (folder / CARD).is_file():
        raise CheckpointProblem(
            f"{source} is a bi-encoder, which scores from vectors alone; for states, make a ranker "
            f"of it: secondlook warm {source} -o RANKER --separate N"
        )
    refuse_without_states(open_checkpoint(folder))
