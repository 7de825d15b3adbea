"""A verb that also has verbs under it: `weigh CORPUS …` beside `weigh train …`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

ITSELF = "corpus"
"""The command that is meant where none is named."""


class DefaultVerb(TyperGroup):
    """What begins with no name of a command, and asks for no help, is for the command `corpus`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own click
        """Put the name in where it was left out."""
        known = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, [ITSELF, *args] if args and args[0] not in known else args)
