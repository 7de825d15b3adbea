"""`secondlook --version`."""

from __future__ import annotations

from typing import Annotated

import typer

from secondlook import __version__


def _print(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if wanted:
        typer.echo(f"secondlook {__version__}")
        raise typer.Exit


def options_before_a_verb(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take what stands before the verb."""
