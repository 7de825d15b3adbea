"""`secondlook gap`: how far a corpus is from general English."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

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
    documents: Annotated[
        int, typer.Option(help="Documents to read at most; 0 reads all.", min=0)
    ] = 100_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    corpus_format: Annotated[
        str, typer.Option("--format", help="Corpus format; auto detects it.")
    ] = "auto",
) -> None:
    """Measure how far a corpus's vocabulary is from general English.

    Compares the 10,000 most frequent words of the corpus with those of general English (the
    wordfreq package), as DR-BERT did, and advises whether to adapt the base model to the domain.

    [bold]Example[/bold]

      secondlook gap corpus.jsonl --ranker my.ranker
    """
    from secondlook.data import read_corpus
    from secondlook.evaluate.gap import domain_gap

    read = islice(read_corpus(corpus, corpus_format), documents or None)
    texts = (f"{document.title} {document.text}" for document in read)
    found = domain_gap(texts, _pieces(ranker) if ranker else None)
    if as_json:
        said = asdict(found) | {"advice": found.advice}
        typer.echo(json.dumps(said, ensure_ascii=False, indent=2))
    else:
        _show(found)


def _pieces(source: str) -> Callable[[Sequence[str]], list[int]]:
    from secondlook.model.checkpoint import locate, read_tokenizer

    tokenizer = read_tokenizer(locate(source))

    def count(words: Sequence[str]) -> list[int]:
        encodings = tokenizer.encode_batch([f" {word}" for word in words], add_special_tokens=False)
        return [len(encoding) for encoding in encodings]

    return count


def _show(found: "Gap") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    console.print(
        f"{found.documents:,} documents, {found.words:,} words, {found.distinct:,} distinct"
    )
    table = Table("word", box=box.SIMPLE_HEAD, title="the words that differ most")
    table.title_justify = "left"
    table.add_column("times", justify="right")
    table.add_column("as often as in general English", justify="right")
    for word, times, ratio in found.strangers:
        table.add_row(Text(word), f"{times:,}", f"{ratio:,.0f} ×")
    console.print(table)
    if found.split is not None:
        console.print(
            f"the tokenizer splits {found.split:.1%} of running words, and "
            f"{found.split_distinct:.1%} of the {found.compared:,} most frequent"
        )
    console.print(Text(found.advice, style="bold"))
