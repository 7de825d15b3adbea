"""`secondlook search`: search an index from the terminal."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table
    from rich.text import Text

    from secondlook.types import Corpus, Document, Query, Ranking

_SNIPPET = 240  # characters


def search(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder.")],
    words: Annotated[str, typer.Argument(help="Query text.")],
    k: Annotated[int, typer.Option("-k", help="Results to show.", min=1)] = 10,
    ranker: Annotated[str | None, typer.Option(help="Re-rank with this re-ranker.")] = None,
    depth: Annotated[int, typer.Option(help="First-stage candidates to re-rank.", min=1)] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Search an index and show the top results, matched words highlighted.

    With --ranker, first-stage and re-ranked results are shown side by side, with each document's
    change of rank. For a re-ranker that reads documents in windows, the best window is shown.

    [bold]Examples[/bold]

      secondlook search scifact.index "vitamin d and bone density" -k 5
      secondlook search scifact.index "vitamin d and bone density" --ranker my.ranker
    """
    from secondlook.retrieve import open_index
    from secondlook.types import Query

    engine = open_index(folder)
    query = Query("search", words)
    (first,) = engine.retrieve([query], k if ranker is None else max(k, depth))
    looks = [first]
    hits = {hit.doc_id: _Shown(hit.score) for hit in first.hits}
    if ranker is not None:
        second, hits = _second_look(ranker, query, first, engine)
        looks.append(second)
    shown = dict.fromkeys(hit.doc_id for look in looks for hit in look.hits[:k])
    texts = dict(zip(shown, engine.fetch(list(shown)), strict=True))
    if as_json:
        import json

        typer.echo(json.dumps(_for_machines(looks, hits, texts, k), ensure_ascii=False))
    elif not texts:
        typer.echo("no results: no document contains a word of the query", err=True)
    else:
        from rich.console import Console

        Console().print(_table(looks, hits, texts, k, words))


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown of a hit of the last look."""

    score: float
    """With a ranker its relevance score, from 0 to 1, as the server gives it."""
    raw_score: float | None = None
    """The ranker's; None without one."""
    passage: tuple[int, int] | None = None
    """Where the best window of a document in windows begins and ends, in characters."""


def _second_look(
    source: str, query: Query, first: Ranking, corpus: Corpus
) -> tuple[Ranking, dict[str, _Shown]]:
    from secondlook.rank import second_look
    from secondlook.score.ranker import Ranker

    ranker = Ranker.load(source)
    texts = corpus.fetch([hit.doc_id for hit in first.hits])
    encoded = ranker.encode([(query, text) for text in texts])
    scored = ranker.score_encoded(encoded)
    second = second_look(first, scored.scores, ranker.fusion)
    hits = {
        hit.doc_id: _Shown(score, raw_score, one.spans[best] if len(one.spans) > 1 else None)
        for hit, score, raw_score, one, best in zip(
            first.hits,
            ranker.relevance(scored.scores).tolist(),
            scored.scores.tolist(),
            encoded,
            scored.best.tolist(),
            strict=True,
        )
    }
    return second, hits


def _for_machines(
    looks: list[Ranking], shown: Mapping[str, _Shown], texts: Mapping[str, Document], k: int
) -> list[dict[str, Any]]:
    """The hits of the last look; with two looks, where the first one had them."""
    first = {hit.doc_id: (rank, hit) for rank, hit in enumerate(looks[0].hits, start=1)}
    hits = []
    for rank, hit in enumerate(looks[-1].hits[:k], start=1):
        document, own = texts[hit.doc_id], shown[hit.doc_id]
        one: dict[str, Any] = {"rank": rank, "id": hit.doc_id, "score": own.score}
        if len(looks) > 1:
            first_rank, first_hit = first[hit.doc_id]
            one |= {"first_rank": first_rank, "first_score": first_hit.score}
        if own.raw_score is not None:
            one |= {"raw_score": own.raw_score, "final_score": hit.score}
        if own.passage is not None:
            start, end = own.passage
            one["passage"] = {"start": start, "end": end, "text": document.text[start:end]}
        hits.append(one | {"title": document.title, "text": document.text})
    return hits


def _table(
    looks: list[Ranking],
    shown: Mapping[str, _Shown],
    texts: Mapping[str, Document],
    k: int,
    words: str,
) -> Table:
    from rich import box
    from rich.table import Table

    names = ["first stage", "re-ranked"] if len(looks) > 1 else ["hit"]
    table = Table("", *names, box=box.SIMPLE_HEAD, show_lines=True, pad_edge=False)
    before = {hit.doc_id: rank for rank, hit in enumerate(looks[0].hits, start=1)}
    for rank, row in enumerate(zip(*(look.hits[:k] for look in looks), strict=True), start=1):
        cells = []
        for number, hit in enumerate(row, start=1):
            last = shown[hit.doc_id] if number == len(looks) else _Shown(hit.score)
            moved = _moved(before[hit.doc_id] - rank) if number > 1 else None
            snippet = _snippet(texts[hit.doc_id], last.passage, words)
            cells.append(_cell(hit.doc_id, last.score, moved, snippet))
        table.add_row(str(rank), *cells)
    return table


def _moved(places: int) -> tuple[str, str]:
    """How far a hit came up or went down, and the style to say it in."""
    if places == 0:
        return "=", "dim"
    return (f"▲{places}", "green") if places > 0 else (f"▼{-places}", "red")


def _cell(doc_id: str, score: float, moved: tuple[str, str] | None, snippet: Text) -> Text:
    from rich.text import Text

    head = Text.assemble((doc_id, "bold"), f"  {score:.3f}")
    if moved is not None:
        head.append("  ").append(*moved)
    return head.append("\n").append_text(snippet)


def _densest(starts: list[int]) -> int:
    """The first place from which on the most of these places, in order, are in one snippet."""
    within = {
        begin: bisect_left(starts, begin + _SNIPPET - 20, lo=place) - place
        for place, begin in enumerate(starts)
    }
    return max(within, key=within.__getitem__, default=0)


def _snippet(document: Document, passage: tuple[int, int] | None, words: str) -> Text:
    """The stretch of the text or its passage with the most matched words, these highlighted."""
    from rich.text import Text

    from secondlook.retrieve.analyze import EnglishAnalyzer

    analyzer = EnglishAnalyzer()
    wanted = frozenset(analyzer.terms(words))
    text = document.text if passage is None else document.text[slice(*passage)]
    text = f"{document.title}. {text}" if document.title else text
    matched = [(start, end) for start, end, term in analyzer.spans(text) if term in wanted]
    begin = _densest([start for start, _ in matched])
    begin = text.rfind(" ", 0, max(0, begin - 20)) + 1 if begin > 40 else 0
    shown = Text(text[begin : begin + _SNIPPET].replace("\n", " "))
    for start, end in matched:
        if begin <= start and end <= begin + _SNIPPET:
            shown.stylize("bold yellow", start - begin, end - begin)
    if begin > 0:
        shown = Text("…") + shown
    if begin + _SNIPPET < len(text):
        shown.append("…")
    return shown
