"""`secondlook explain`: why a document got its score."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import RANKER_HELP

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from secondlook.explain import Explanation
    from secondlook.explain.findings import AttentionMap, Word

_ROWS = 12  # words in the terminal's tables


def explain(
    ranker: Annotated[str, typer.Argument(metavar="RANKER", help=RANKER_HELP)],
    query: Annotated[str, typer.Argument(help="Text of the query.")],
    document: Annotated[str, typer.Argument(help="Text of the document, or its id in --index.")],
    index: Annotated[
        Path | None,
        typer.Option(help="Index folder of the document; also shows its ranks before and after."),
    ] = None,
    depth: Annotated[int, typer.Option(help="With --index: candidates re-ranked.", min=1)] = 100,
    query_type: Annotated[
        str | None, typer.Option("--type", help="Type of the query, if known.")
    ] = None,
    layer: Annotated[
        int | None, typer.Option(help="Attention layer to show, 1 is the lowest; default: all.")
    ] = None,
    head: Annotated[int | None, typer.Option(help="Attention head to show; default: all.")] = None,
    html: Annotated[Path | None, typer.Option(help="Also write an HTML page to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain a score: what each word contributes, and the attention between the texts.

    The contribution of a word is the score lost when it is left out. Attention is shown as the
    re-ranker computes it and, for comparison, with STRM switched the other way. With --index, the
    document is named by its id, and its ranks before and after re-ranking and the first stage's
    share of its final score are shown (see `fuse`).

    [bold]Examples[/bold]

      secondlook explain my.ranker "where is bogue sound" "Bogue Sound is a lagoon." --html why.html
      secondlook explain my.ranker "where is bogue sound" d17 --index my.index
    """
    from secondlook.workflows.explain import explain as run

    explanation = run(
        ranker,
        query,
        document,
        index=index,
        depth=depth,
        query_type=query_type,
        layer=layer,
        head=head,
        html=html,
    )
    if as_json:
        typer.echo(json.dumps(explanation.to_json(), ensure_ascii=False))
    else:
        _show(explanation)


def _show(said: "Explanation") -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console()
    parts = " ".join(f"{value:+.3f} {name}" for name, value in said.parts.items())
    console.print(Text(f"score {said.score:.4f}" + (f" = {parts}" if parts else "")))
    if said.standing is not None:
        place = said.standing
        shares = " ".join(f"{value:+.3f} {name}" for name, value in place.parts.items())
        console.print(
            f"rank {place.first_rank} of {place.hits} in the first stage, {place.rank} after "
            f"re-ranking; final score {place.score:.4f} = {shares}"
        )
    both = (*said.query_words, *said.document_words)
    largest = max((abs(word.attribution) for word in both), default=0)
    for name, words in (("query", said.query_words), ("document", said.document_words)):
        console.print(Text(f"\n{name}: ", style="dim") + _line(words, largest))
    console.print(
        "\nblue raises the score, yellow lowers it; bold: in both texts; underlined: outside the "
        "vocabulary",
        style="dim",
    )
    for side, cut in (("query", said.cut_query), ("document", said.cut)):
        if cut:
            console.print(f"{cut} tokens of the {side} were not seen", style="yellow")
    if len(said.windows) > 1:
        scores = ", ".join(f"{window.score:.3f}" for window in said.windows)
        console.print(f"windows: {scores}; words are of number {said.window + 1}")
    console.print(_attributions(said))
    if said.attention_note:
        console.print(f"attention: {said.attention_note}")
    for one in said.attention:
        console.print(_attention(said, one))


def _line(words: "tuple[Word, ...]", largest: float) -> "Text":
    from rich.text import Text

    line = Text()
    for word in words:
        strong = abs(word.attribution) > 0.1 * largest
        style = ("blue " if word.attribution > 0 else "yellow ") if strong else ""
        style += "bold " * bool(word.matched) + "underline" * word.outside
        line.append(word.text, style=style.strip()).append(" ")
    return line


def _attributions(said: "Explanation") -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table("word", "of", "read as", "matched", box=box.SIMPLE_HEAD)
    table.add_column("score lost without it", justify="right")
    sides = (("query", said.query_words), ("document", said.document_words))
    words = [(side, word) for side, some in sides for word in some if word.attribution]
    for side, word in sorted(words, key=lambda one: -abs(one[1].attribution))[:_ROWS]:
        pieces, lost = Text(" ".join(word.pieces)), f"{word.attribution:+.4f}"
        table.add_row(Text(word.text), side, pieces, word.matched, lost)
    return table


def _attention(said: "Explanation", one: "AttentionMap") -> "Table":
    """For each query word the document words it looks at most."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    how = "as it scores" if one.as_trained else "for comparison"
    title = f"attention {'with' if one.strm else 'without'} STRM, {how}; score {one.score:.3f}"
    table = Table("query word", "looks most at", box=box.SIMPLE_HEAD, title=title)
    table.title_justify = "left"
    for word, row in zip(said.query_words, one.query_to_document, strict=True):
        best = sorted(range(len(row)), key=lambda at: -row[at])[:4]
        shown = ", ".join(f"{said.document_words[at].text} {row[at]:.2g}" for at in best)
        table.add_row(Text(word.text), Text(shown))
    return table
