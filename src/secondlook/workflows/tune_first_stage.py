"""Which first stage a tuning re-ranks: BM25, or vectors with it where they are cheap to make."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secondlook.workflows.tune_stages import Tuning

_MOST_OF_THE_TIME = 0.1
"""What making vectors may take of the whole."""
_EXPORT_SECONDS = 20.0  # of the encoder, until an export was made and timed


def choose(tuning: Tuning) -> None:
    """Search the index by what is best on the validation queries; BM25 unless something is better.

    An index that the user gave is searched as it was tuned to be, and is not changed.
    """
    from secondlook.data.durable import write_at_once
    from secondlook.workflows.choose_first_stage import choose_first_stage

    if tuning.given_index or tuning.first_stage_file.exists():
        return
    chosen = {"by": "bm25"}
    begun = tuning.run("bm25", "dev").exists()  # by a version that knew BM25 only
    if not begun and _add_vectors(tuning):
        depth = tuning.planned("depth")
        given = tuning.index, tuning.queries, tuning.used("dev")
        result = choose_first_stage(*given, k=depth, progress=tuning.progress)
        tuning.progress.say(result.summary())
        chosen = result.choice.model_dump(mode="json")
    write_at_once(tuning.first_stage_file, json.dumps(chosen))


def _add_vectors(tuning: Tuning) -> bool:
    """Whether the index has vectors now; they are made by the base, if it can in little time."""
    from secondlook.errors import CheckpointProblem
    from secondlook.retrieve.folder import read_card
    from secondlook.retrieve.vector_files import has_vectors
    from secondlook.workflows.tune_files import file_of
    from secondlook.workflows.vectors import add_vectors, check_encoder

    if has_vectors(tuning.index):
        return True
    try:
        check_encoder(tuning.ranker("untuned"))
    except CheckpointProblem:
        tuning.progress.say("candidates by BM25 alone: the base model makes no document vectors")
        return False
    documents = read_card(tuning.index).documents
    seconds = tuning.known.get("export", _EXPORT_SECONDS)
    seconds += documents / tuning.planned("pairs_per_second")
    if seconds > _MOST_OF_THE_TIME * tuning.clock.seconds:
        minutes = seconds / _MOST_OF_THE_TIME / 60
        tuning.progress.say(
            f"candidates by BM25 alone: vectors of {documents:,} documents would take too much of "
            f"the time; with {minutes:,.0f} minutes or more they would be tried"
        )
        return False
    corpus, base = file_of(tuning.data, "corpus"), tuning.ranker("untuned")
    tuning.progress.say(add_vectors(tuning.index, corpus, base, progress=tuning.progress).summary())
    return True
