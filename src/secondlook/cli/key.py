"""`secondlook key`: create an API key for a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def key(
    name: Annotated[
        str, typer.Argument(help="Name of the key's holder, as it appears in the server's log.")
    ],
    keys: Annotated[Path, typer.Option(help="Key file to add the key's hash to.")],
) -> None:
    """Create an API key for `secondlook serve --keys`, and print it once.

    The file stores only a hash. To revoke a key, delete its line and send the server SIGHUP.

    [bold]Example[/bold]

      secondlook key search-team --keys keys.txt
    """
    from secondlook.serve.keys import add_key

    typer.echo(add_key(keys, name))
