"""Put more documents into an index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import CorpusFormat  # noqa: TC001 - typer reads it


def add(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="An index folder.")],
    corpus: Annotated[str, typer.Argument(help="The documents to add, in any corpus format.")],
    corpus_format: CorpusFormat = "auto",
) -> None:
    """Add documents to an index on a cluster, or replace those of the same id.

    Searches see them when the command ends. A later `index` replaces everything again.

    [bold]Example[/bold]

      secondlook add marco.index todays-passages.jsonl
    """
    from secondlook.cli.progress import track
    from secondlook.data import read_corpus
    from secondlook.retrieve import open_updatable

    index = open_updatable(folder)
    index.upsert(track(read_corpus(corpus, corpus_format), "adding", "documents"))
    typer.echo(f"{folder}: {index.card.documents:,} documents")
