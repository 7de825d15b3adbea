"""`secondlook gap`: how far a corpus is from general English, or from another corpus."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import CorpusFormat  # noqa: TC001 - typer reads it

if TYPE_CHECKING:
    from secondlook.evaluate.gap import Gap


def gap(
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="Corpus: a file, or irds:NAME.")],
    ranker: Annotated[
        str | None,
        typer.Option(
            help="Re-ranker or base model: also report how many words its tokenizer splits."
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Compare with this corpus instead of general English.")
    ] = None,
    documents: Annotated[
        int, typer.Option(help="Documents to read at most; 0 reads all.", min=0)
    ] = 100_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    corpus_format: CorpusFormat = "auto",
) -> None:
    """Measure how far a corpus's vocabulary is from general English, or from another corpus.

    Compares the 10,000 most frequent words of the corpus with those of general English (the
    wordfreq package), and advises whether to adapt the base model to the domain. With --against,
    compares them with those of another corpus, as DR-BERT did with the texts BERT was made of.

    [bold]Examples[/bold]

      secondlook gap corpus.jsonl --ranker my.ranker
      secondlook gap collection.tsv --against wikipedia.jsonl --documents 0
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.gap import gap as workflow

    result = workflow(
        corpus,
        against=against,
        ranker=ranker,
        documents=documents,
        corpus_format=corpus_format,
        progress=Bars(),
    )
    if as_json:
        typer.echo(json.dumps(result.to_dict(), ensure_ascii=False, indent=2))
    else:
        _show(result)


def _show(result: Gap) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    console.print(
        f"{result.documents:,} documents, {result.words:,} words, {result.distinct:,} distinct"
    )
    table = Table("word", box=box.SIMPLE_HEAD, title="the words that differ most")
    table.title_justify = "left"
    table.add_column("times", justify="right")
    table.add_column(f"as often as in {result.against}", justify="right")
    for word, times, ratio in result.strangers:
        table.add_row(Text(word), f"{times:,}", f"{ratio:,.0f} ×")
    console.print(table)
    if split := result.split_summary():
        console.print(split)
    console.print(Text(result.advice, style="bold"))
