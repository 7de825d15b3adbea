"""Make an API key for a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def key(
    name: Annotated[str, typer.Argument(help="Who will hold it; the server's log says this name.")],
    keys: Annotated[Path, typer.Option(help="The file its hash is added to.")],
) -> None:
    """Make a key for `secondlook serve --keys` and print it, this once.

    The file holds a hash only. To take a key back, delete its line and send the server SIGHUP.

    [bold]Example[/bold]

      secondlook key search-team --keys keys.txt
    """
    from secondlook.serve.keys import add_key

    typer.echo(add_key(keys, name))
