"""Ask an index one question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.text import Text

    from secondlook.types import Document

_SNIPPET = 240  # characters


def search(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="An index folder.")],
    words: Annotated[str, typer.Argument(help="What to look for.")],
    k: Annotated[int, typer.Option("-k", help="How many hits to show.", min=1)] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Search an index and show the best hits, the matched words highlighted.

    [bold]Example[/bold]

      secondlook search scifact.index "vitamin d and bone density" -k 5
    """
    from secondlook.retrieve import open_index
    from secondlook.types import Query

    engine = open_index(folder)
    (ranking,) = engine.retrieve([Query("search", words)], k)
    documents = engine.fetch([hit.doc_id for hit in ranking.hits])
    if as_json:
        import json

        typer.echo(
            json.dumps(
                [
                    {
                        "rank": rank,
                        "id": document.id,
                        "score": hit.score,
                        "title": document.title,
                        "text": document.text,
                    }
                    for rank, (hit, document) in enumerate(
                        zip(ranking.hits, documents, strict=True), start=1
                    )
                ],
                ensure_ascii=False,
            )
        )
        return
    if not documents:
        typer.echo("nothing found: no document shares a word with the query", err=True)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("", "score", "id", "text", show_edge=False, pad_edge=False)
    for rank, (hit, document) in enumerate(zip(ranking.hits, documents, strict=True), start=1):
        table.add_row(str(rank), f"{hit.score:.3f}", document.id, _snippet(document, words))
    Console().print(table)


def _snippet(document: Document, words: str) -> Text:
    """The stretch of the text with the most matched words, these in bold."""
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
