"""Ask an index one question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table
    from rich.text import Text

    from secondlook.types import Document, Ranking

_SNIPPET = 240  # characters


def search(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="An index folder.")],
    words: Annotated[str, typer.Argument(help="What to look for.")],
    k: Annotated[int, typer.Option("-k", help="How many hits to show.", min=1)] = 10,
    ranker: Annotated[
        str | None, typer.Option(help="Take the second look too, with this ranker.")
    ] = None,
    depth: Annotated[
        int, typer.Option(help="How many hits of the first look the ranker sees.", min=1)
    ] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Search an index and show the best hits, the matched words highlighted.

    With a ranker, both looks stand side by side, and each hit of the second shows how far it moved.

    [bold]Examples[/bold]

      secondlook search scifact.index "vitamin d and bone density" -k 5

      secondlook search scifact.index "vitamin d and bone density" --ranker my.ranker
    """
    from secondlook.rank import rerank
    from secondlook.retrieve import open_index
    from secondlook.types import Query

    engine = open_index(folder)
    query = Query("search", words)
    (first,) = engine.retrieve([query], k if ranker is None else max(k, depth))
    looks = [first]
    scores = [hit.score for hit in first.hits]
    if ranker is not None:
        import numpy as np

        from secondlook.score.ranker import Ranker

        loaded = Ranker.load(ranker)
        looks += rerank([query], [first], engine, loaded)
        raw = np.array([hit.score for hit in looks[-1].hits], np.float32)
        scores = loaded.shown(raw).tolist()
    shown = dict.fromkeys(hit.doc_id for look in looks for hit in look.hits[:k])
    texts = dict(zip(shown, engine.fetch(list(shown)), strict=True))
    if as_json:
        import json

        typer.echo(json.dumps(_for_machines(looks, scores[:k], texts), ensure_ascii=False))
    elif not texts:
        typer.echo("nothing found: no document shares a word with the query", err=True)
    else:
        from rich.console import Console

        Console().print(_table(looks, scores[:k], texts, words))


def _for_machines(
    looks: list[Ranking], scores: list[float], texts: Mapping[str, Document]
) -> list[dict[str, Any]]:
    """The hits of the last look; with two looks, where the first one had them.

    `scores` are the last look's, as users see them, for as many hits as are shown.
    """
    first = {hit.doc_id: (rank, hit) for rank, hit in enumerate(looks[0].hits, start=1)}
    hits = []
    for rank, (hit, score) in enumerate(zip(looks[-1].hits, scores, strict=False), start=1):
        document = texts[hit.doc_id]
        shown: dict[str, Any] = {"rank": rank, "id": hit.doc_id, "score": score}
        if len(looks) > 1:
            first_rank, first_hit = first[hit.doc_id]
            shown |= {"first_rank": first_rank, "first_score": first_hit.score}
        hits.append(shown | {"title": document.title, "text": document.text})
    return hits


def _table(
    looks: list[Ranking], scores: list[float], texts: Mapping[str, Document], words: str
) -> Table:
    from rich import box
    from rich.table import Table

    names = ["first look", "second look"] if len(looks) > 1 else ["hit"]
    table = Table("", *names, box=box.SIMPLE_HEAD, show_lines=True, pad_edge=False)
    before = {hit.doc_id: rank for rank, hit in enumerate(looks[0].hits, start=1)}
    for rank, last_score in enumerate(scores, start=1):
        cells = []
        for number, look in enumerate(looks, start=1):
            hit = look.hits[rank - 1]
            score = last_score if number == len(looks) else hit.score
            moved = _moved(before[hit.doc_id] - rank) if number > 1 else None
            cells.append(_cell(hit.doc_id, score, moved, _snippet(texts[hit.doc_id], words)))
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


def _snippet(document: Document, words: str) -> Text:
    """The stretch of the text with the most matched words, these highlighted."""
    from rich.text import Text

    from secondlook.retrieve.analyze import EnglishAnalyzer

    analyzer = EnglishAnalyzer()
    wanted = frozenset(analyzer.terms(words))
    text = f"{document.title}. {document.text}" if document.title else document.text
    matched = [(start, end) for start, end, term in analyzer.spans(text) if term in wanted]
    begin = max(
        (start for start, _ in matched),
        key=lambda begin: sum(begin <= start < begin + _SNIPPET - 20 for start, _ in matched),
        default=0,
    )
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
