"""The door: a query, a document and a ranker become an explanation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from secondlook.errors import SecondlookError
from secondlook.explain.explanation import Explanation
from secondlook.explain.findings import AttentionMap, WindowScore, Word
from secondlook.explain.plain_words import PlainWordReader
from secondlook.explain.visible import worth_showing
from secondlook.explain.words import ReadWord, WordReader, matches
from secondlook.score.remote_ranker import RemoteRanker, sent_text
from secondlook.score.scored import Scored
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from secondlook.encode.settings import WindowSettings
    from secondlook.encode.windows import Window
    from secondlook.score.open_ranker import AnyRanker
    from secondlook.score.ranker import Ranker
    from secondlook.types import Pair

T = TypeVar("T")

_AT_ONCE = 16
"""Pairs that are scored between two looks whether the explanation is still wanted."""

_MOST_WORDS = 400
"""Of a document that a remote ranker scores without each: every word is a document to pay for."""

_MOST_QUERY_WORDS = 30
"""Of a query that a remote ranker scores without each: every word is a request of its own."""

_DECIMALS = 7  # a warm ranker before training looks across with a thousandth


_NO_ATTENTION = (
    "this ranker shows no attention between the texts, so there is no layer or head to choose; "
    "load a joint or warm one with torch"
)


class Stopped(SecondlookError):
    """An explanation that nobody waits for any longer."""


def explain(
    query: str,
    document: str,
    ranker: AnyRanker,
    *,
    title: str = "",
    query_type: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    until: float | None = None,
    analyzer: str | None = None,
) -> Explanation:
    """Why this document scores as it does for this query.

    Each word's attribution is what the score loses without it; some are scored at once, and between
    them `should_stop()` is called: once it is true, this raises Stopped. The
    `title` is read with the document as the ranker reads titles, but not taken apart. `layer`
    and `head`, counted from 1, choose whose attention is shown; without them it is the mean. An
    exported ranker gives no attention: load it with `backend="torch"` for that; a remote one gives
    none either, is asked once more for each of the first words, and no longer than `until`, of
    `time.monotonic()`. Words of both texts match by `analyzer`, the index's; by the language of the
    ranker's markers where none is named.

    >>> import secondlook as sl
    >>> ranker = sl.Ranker.from_biencoder("intfloat/e5-small")
    >>> why = sl.explain_score("where is the river", "the river is in the sea", ranker)
    >>> [word.text for word in why.document_words][:2]
    ['the', 'river']
    """
    asked, whole = Query("", query, query_type), Document("", document, title)
    if isinstance(ranker, RemoteRanker):
        if layer is not None or head is not None:
            raise SecondlookError(_NO_ATTENTION)
        return _explain_remote(asked, whole, ranker, should_stop, until, analyzer)
    looked_into, note = _can_be_looked_into(ranker)
    if not looked_into and (layer is not None or head is not None):
        raise SecondlookError(note or _NO_ATTENTION)
    [windows] = ranker.encoder.windows([whole])
    scored, scores = _score_windows(ranker, (asked, whole), windows, should_stop)
    shape = ranker.settings.encode.windows
    best = 0 if shape is not None and shape.pooling == "first" else int(scores.argmax())
    seen = _Seen(ranker, asked, windows[best].document, analyzer)
    query_words, document_words = _attributed(
        ranker, seen, float(scores[best]), windows[best].start, should_stop
    )
    parts: dict[str, float] = {}
    attention: tuple[AttentionMap, ...] = ()
    if looked_into:
        parts, maps = _look_inside(ranker.backend, seen, layer, head)
        if not _one_window_scores(shape, len(windows)):
            parts = {}  # those of the window that is shown: their sum is not the score
        attention, note = worth_showing(maps, two_vectors=ranker.settings.form == "warm")
    return Explanation(
        query=query,
        document=document,
        score=float(scored.scores[0]),
        shown=float(ranker.relevance(scored.scores)[0]),
        parts=parts,
        cut=int(scored.cut[0]),
        cut_query=int(scored.cut_query[0]),
        windows=tuple(
            WindowScore(window.start, window.end, float(score))
            for window, score in zip(windows, scores, strict=True)
        ),
        window=best,
        query_words=query_words,
        document_words=document_words,
        attention=attention,
        attention_note=note,
    )


def _score_windows(
    ranker: Ranker, pair: Pair, windows: Sequence[Window], should_stop: Callable[[], bool]
) -> tuple[Scored, NDArray[np.float32]]:
    """The pair's score as `Ranker.scored` gives it, and each window's as a document of its own."""
    query, _ = pair
    shape = ranker.settings.encode.windows
    logits = []
    for some in _while_wanted(windows, _AT_ONCE, should_stop):
        rows = ranker.encoder.encode([(query, window.document) for window in some])
        logits.append(ranker.backend.logits(rows))
    raw = np.concatenate(logits)
    [read] = ranker.encode([pair])  # which counts windows that do not count for the score as cut
    scored = Scored.of(raw, [len(windows)], shape, cut=[read.cut], cut_query=[read.cut_query])
    return scored, Scored.of(raw, [1] * len(windows), shape).scores


def _one_window_scores(shape: WindowSettings | None, windows: int) -> bool:
    """Whether a document's score is that of one window, not pooled from several or scaled."""
    if shape is None or shape.pooling in ("first", "max"):
        return True
    return shape.pooling == "mean" and windows == 1


def _explain_remote(
    query: Query,
    document: Document,
    ranker: RemoteRanker,
    should_stop: Callable[[], bool],
    until: float | None,
    analyzer: str | None,
) -> Explanation:
    """What each word contributes, which leaving it out tells of any ranker."""
    [score] = _scores(ranker, [(query, document)], should_stop, until).tolist()
    reader = PlainWordReader(analyzer)
    words, asked = reader.read(document.text), reader.read(query.text)
    of_query, of_document = _Side(asked[:_MOST_QUERY_WORDS], []), _Side(words[:_MOST_WORDS], [])
    seen = _Words((query, document), of_query, of_document)
    query_words, document_words = _attributed(ranker, seen, score, 0, should_stop, until)
    note = f"{ranker.name} runs elsewhere and shows no attention."
    sides = (asked, [] if document.title else words)
    if any(len(side) == 1 and _counts(side[0]) for side in sides):
        note += " A word that is its whole text was not left out: services refuse empty texts."
    for side, there, most in (
        ("query", len(asked), _MOST_QUERY_WORDS),
        ("document", len(words), _MOST_WORDS),
    ):
        if there > most:
            some = f"{most} of {there:,} words of the {side}"
            note += f" Only the first {some} were left out in turn."
    return Explanation(
        query=query.text,
        document=document.text,
        score=score,
        shown=float(ranker.relevance(np.array([score], np.float32))[0]),
        windows=(WindowScore(0, len(document.text), score),),
        query_words=query_words,
        document_words=document_words,
        attention_note=note,
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """The words of one text that the ranker sees, and the tokens of each."""

    words: list[ReadWord]
    tokens: list[NDArray[np.intp]]


@dataclass(frozen=True, slots=True)
class _Words:
    """A pair and its words."""

    pair: Pair
    query: _Side
    document: _Side


class _Seen:
    """A pair as the ranker sees it."""

    def __init__(
        self, ranker: Ranker, query: Query, document: Document, analyzer: str | None
    ) -> None:
        encode = ranker.settings.encode
        reader = WordReader(ranker.tokenizer, encode, analyzer)
        [self.features] = ranker.encoder.encode([(query, document)])
        self.pair = query, document
        of_query, of_document = reader.places(self.features)
        self.query = _side(reader.read(query.text, encode.query_prompt), of_query)
        lead = encode.document_prompt + ranker.encoder.lead(document)
        self.document = _side(reader.read(document.text, lead), of_document)


def _side(words: Sequence[ReadWord], tokens: Sequence[NDArray[np.intp]]) -> _Side:
    """Without the prompt's words, whose span is empty, and what was cut off."""
    shown = [(w, t) for w, t in zip(words, tokens, strict=False) if w.end > w.start]
    return _Side([word for word, _ in shown], [some for _, some in shown])


def _attributed(
    ranker: AnyRanker,
    seen: _Seen | _Words,
    score: float,
    start: int,
    should_stop: Callable[[], bool],
    until: float | None = None,
) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """The words of both sides; `start` is where the window begins in its document."""
    query, document = seen.pair
    shorter = [
        (Query("", _without(query.text, word), query.type), document) for word in seen.query.words
    ]
    shorter += [
        (query, replace(document, text=_without(document.text, word)))
        for word in seen.document.words
    ]
    words = [*seen.query.words, *seen.document.words]
    asked = [
        place
        for place, (word, pair) in enumerate(zip(words, shorter, strict=True))
        if _counts(word) and not (isinstance(ranker, RemoteRanker) and _has_empty_side(pair))
    ]
    scores = _scores(ranker, [shorter[place] for place in asked], should_stop, until)
    lost = dict(zip(asked, (score - scores).tolist(), strict=True))
    attributions = iter([lost.get(place, 0.0) for place in range(len(words))])
    sides = []
    for side, other, shift in (
        (seen.query, seen.document, 0),
        (seen.document, seen.query, start),
    ):
        sides.append(
            tuple(
                Word(
                    word.text,
                    word.start + shift,
                    word.end + shift,
                    word.pieces,
                    word.outside,
                    matched,
                    next(attributions),
                )
                for word, matched in zip(side.words, matches(side.words, other.words), strict=True)
            )
        )
    return sides[0], sides[1]


def _scores(
    ranker: AnyRanker,
    pairs: Sequence[Pair],
    should_stop: Callable[[], bool],
    until: float | None = None,
) -> NDArray[np.float32]:
    """One score per pair; a few at a time, so that it can be stopped."""
    scores = [np.empty(0, np.float32)]
    at_once = ranker.client.address.batch if isinstance(ranker, RemoteRanker) else _AT_ONCE
    for some in _while_wanted(pairs, at_once, should_stop):
        if isinstance(ranker, RemoteRanker):
            scores.append(ranker.score(some, until=until))
        else:
            scores.append(ranker.score(some))
    return np.concatenate(scores)


def _while_wanted(
    items: Sequence[T], at_once: int, should_stop: Callable[[], bool]
) -> Iterator[Sequence[T]]:
    """Some of the items at a time; raises Stopped when the explanation is no longer wanted."""
    for start in range(0, len(items), at_once):
        if should_stop():
            raise Stopped("the explanation was stopped")
        yield items[start : start + at_once]


def _has_empty_side(pair: Pair) -> bool:
    query, document = pair
    return not query.text.strip() or not sent_text(document).strip()


def _counts(word: ReadWord) -> bool:
    return any(map(str.isalnum, word.text))


def _without(text: str, word: ReadWord) -> str:
    return text[: word.start] + text[word.end :]


def _can_be_looked_into(ranker: Ranker) -> tuple[bool, str]:
    """Whether there is attention to show, and where one would expect some, why there is none."""
    network: Any = getattr(ranker.backend, "network", None)
    if network is None or ranker.settings.form == "frozen":
        return False, ""
    from secondlook.model.families import Layered, description

    kind = network.encoder.config.model_type
    if issubclass(description({"model_type": kind}), Layered):
        return True, ""
    return False, f"attention is not shown for models of the family {kind!r}, whose layers differ"


def _look_inside(
    backend: Any,  # noqa: ANN401 - a TorchBackend, which needs torch
    seen: _Seen,
    layer: int | None,
    head: int | None,
) -> tuple[dict[str, float], tuple[AttentionMap, ...]]:
    """The parts of the score, and the attention as it is and with STRM the other way round."""
    from secondlook.explain.attention import attend, between_words, parts_of

    network, maps = backend.network, []
    for strm in (network.strm, not network.strm):
        with backend.network_lock:
            score, attention = attend(network, seen.features, strm=strm)
        chosen = _choose(attention, layer, head)  # [tokens, tokens]
        across = (
            between_words(chosen, seen.query.tokens, seen.document.tokens),
            between_words(chosen, seen.document.tokens, seen.query.tokens),
        )
        maps.append(
            AttentionMap(strm, strm == network.strm, layer, head, score, *map(_rows, across))
        )
    with backend.network_lock:
        return parts_of(network, seen.features), tuple(maps)


def _choose(
    attention: NDArray[np.float32], layer: int | None, head: int | None
) -> NDArray[np.float32]:
    for name, wanted, there in zip(("layer", "head"), (layer, head), attention.shape, strict=False):
        if wanted is not None and not 1 <= wanted <= there:
            raise SecondlookError(f"there is no {name} {wanted}; this ranker has 1 to {there}")
    layers = attention.mean(axis=0) if layer is None else attention[layer - 1]
    chosen: NDArray[np.float32] = layers.mean(axis=0) if head is None else layers[head - 1]
    return chosen


def _rows(matrix: NDArray[np.float32]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.astype(np.float64).round(_DECIMALS).tolist())
