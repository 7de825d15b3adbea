"""`secondlook add`: add documents to an index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import CorpusFormat  # noqa: TC001 - typer reads it


def add(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder.")],
    corpus: Annotated[str, typer.Argument(help="Documents to add, in any corpus format.")],
    corpus_format: CorpusFormat = "auto",
) -> None:
    """Add documents to an index on a cluster, replacing those with the same id.

    They are searchable when the command ends. A later `index --replace` rebuilds the whole index.

    [bold]Example[/bold]

      secondlook add marco.index todays-passages.jsonl
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.index import add_documents

    index = add_documents(folder, corpus, corpus_format=corpus_format, progress=Bars())
    typer.echo(f"{folder}: {index.card.documents:,} documents")
