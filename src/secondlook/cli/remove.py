"""`secondlook remove`: remove documents from an index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def remove(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder.")],
    doc_ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Ids of the documents to remove.")
    ],
) -> None:
    """Remove documents from an index on a cluster.

    If one id is unknown, none is removed.

    [bold]Example[/bold]

      secondlook remove marco.index 7067032 7067056
    """
    from secondlook.workflows.index import remove_documents

    index = remove_documents(folder, doc_ids)
    typer.echo(f"{folder}: {index.card.documents:,} documents")
