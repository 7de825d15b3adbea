"""A run of raw scores: what a ranker says before pooling and fusing, and what these learn from.

Where documents are scored in windows, a line stands for a window: `doc#2` is the third one of
`doc`, as in the runs of segments that MS MARCO's documents are ranked by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from secondlook.data.formats import has_scores
from secondlook.data.formats import run_tag as tag_of
from secondlook.encode.windows import pool
from secondlook.errors import MalformedInput, SecondlookError
from secondlook.rank.present import pairs_of
from secondlook.types import Hit, Ranking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from secondlook.encode.settings import WindowSettings
    from secondlook.model.settings import RankerSettings
    from secondlook.score.scored import Scored
    from secondlook.types import Corpus, Pair, Query

_MARK = "#"
RAW_TAG = "secondlook-raw"
"""The tag of a run of raw scores, a line for each window where there are any."""
FUSED_TAG = "secondlook-fused"
"""The tag of a run whose scores are fused with the first stage's."""

TAIL_TAG = "secondlook-tail"
"""The tag of a run in which hits that the ranker has not scored stand below the others."""

_MAKE_RAW = (
    f"make a run of raw scores (its last column says {RAW_TAG}): secondlook rerank … --raw "
    "-o raw.trec"
)


def run_tag(*, raw: bool, fused: bool, tail: bool = False) -> str:
    """What the last column of a re-ranked run says of its scores."""
    if raw:
        return RAW_TAG
    if fused:
        return FUSED_TAG
    return TAIL_TAG if tail else "secondlook"


def tag_of_scores(run: Path | str) -> str | None:
    """The tag of a run, None where its format has none; see `require_raw_scores`.

    Raises SecondlookError where the format has no scores: 1/rank, which is read instead, is the
    opinion of no ranker.
    """
    if not has_scores(run):
        raise SecondlookError(f"{run} has ranks and no scores; {_MAKE_RAW}")
    return tag_of(run)


def require_raw_scores(settings: RankerSettings, tag: str | None, needed_for: str) -> None:
    """Raises SecondlookError where a run's tag says that its scores are not the ranker's own.

    `tag` is the run's last column, by which `secondlook rerank` says what scores are: refused are
    fused ones, and those of hits that the ranker has not seen. `needed_for` is in the message.
    """
    if tag == FUSED_TAG or (settings.fusion is not None and tag != RAW_TAG):
        problem = "the ranker fuses its scores with the first-stage scores"
    elif tag == TAIL_TAG:
        problem = "the run has hits that the ranker has not scored"
    else:
        return
    raise SecondlookError(f"{problem}, and {needed_for} its raw scores; {_MAKE_RAW}")


class ScoresWindows(Protocol):
    """Scores each window of a document."""

    def scored_windows(self, pairs: Sequence[Pair]) -> Scored:
        """What `Ranker.scored_windows` promises."""
        ...


def raw_windows(
    queries: Sequence[Query],
    rankings: Sequence[Ranking],
    corpus: Corpus,
    ranker: ScoresWindows,
) -> list[Ranking]:
    """The windows of the hits, scored, whatever the ranker's pooling."""
    present, pairs = pairs_of(queries, rankings, corpus, ranker)
    scores = iter(ranker.scored_windows(pairs).windows)
    return [
        Ranking.of(
            ranking.query_id,
            [
                Hit(f"{hit.doc_id}{_MARK}{number}", score)
                for hit in ranking.hits
                for number, score in enumerate(next(scores).tolist())
            ],
        )
        for ranking in present
    ]


def windows_of(ranking: Ranking) -> Mapping[str, NDArray[np.float32]]:
    """Document id → the scores of its windows, in the document's order."""
    found: dict[str, dict[int, float]] = {}
    for hit in ranking.hits:
        doc_id, mark, number = hit.doc_id.rpartition(_MARK)
        if not (mark and number.isdecimal()):
            raise MalformedInput(
                f"query {ranking.query_id!r} of the run",
                None,
                f"{hit.doc_id!r} is no window (such as doc#0), and the ranker reads documents in "
                "windows; make the run with `secondlook rerank --raw`",
            )
        found.setdefault(doc_id, {})[int(number)] = hit.score
    return {
        doc_id: np.array([own[number] for number in sorted(own)], np.float32)
        for doc_id, own in found.items()
    }


def pooled(ranking: Ranking, windows: WindowSettings) -> Ranking:
    """The documents of a ranking of windows, each with the score that this pooling gives it."""
    own = windows_of(ranking)
    if not own:
        return ranking
    scores = pool(np.concatenate(list(own.values())), [len(one) for one in own.values()], windows)
    return Ranking.of(ranking.query_id, map(Hit, own, scores.tolist()))
