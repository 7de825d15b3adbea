"""A verb as a person meets it: its errors, and its help laid out for the width of the terminal.

Docstrings are wrapped for the editor. Rich keeps those line breaks and adds its own, so a paragraph
would come out ragged on a narrower terminal: its lines are joined here, and rich wraps the whole.
Indented lines are examples: one command a line, continued by deeper indentation.
"""

from __future__ import annotations

import re
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from secondlook.errors import UnknownFormat, WrongArgument
from secondlook.terminal.problems import as_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_SHELL_WORD = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")
_CONTINUED, _BACKSLASH = " " * 4, " \\"
_BLANK = "[dim][/dim]"
"""Typer dedents a help whose lines are all indented or empty; this one only looks empty."""


class Verb(TyperCommand):
    """A command whose help fills the terminal's lines, and whose errors name its own options."""

    def __init__(self, *given: Any, **settings: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(*given, **settings)
        for one in self.params:
            if one.param_type_name == "argument" and one.metavar is None:
                one.metavar = str(one.name).upper()  # as the help's text has it

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - click's context, whose place varies
        """Run it; what a person can mend is a message in the words of the command line."""
        try:
            _refuse_to_overwrite_input(ctx.params)
            return super().invoke(ctx)
        except (KeyboardInterrupt, Exception) as error:
            problem = as_problem(error, self.params)
            if problem is None or problem is error:
                raise
            raise problem from error

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own click
        """Print the help."""
        from rich.console import Console
        from typer.rich_utils import MAX_WIDTH

        margins = 2
        text = laid_out(self.help or "", Console(width=MAX_WIDTH).width - margins)
        summary, blank, rest = text.partition("\n\n")
        shown = copy(self)
        shown.help = summary + blank + rest.replace("\n\n  ", f"\n{_BLANK}\n  ")
        TyperCommand.format_help(shown, ctx, formatter)


def _refuse_to_overwrite_input(given: Mapping[str, Any]) -> None:
    """Of files that are read and written, one slip would lose what cannot be made again."""
    read_too: list[str] = []
    outputs = {name: given[name] for name in ("output", "out", "target") if name in given}
    for output in outputs.values():
        for name, value in given.items():
            for source in value if isinstance(value, list | tuple) else [value]:
                if name in outputs or not isinstance(source, str | Path):
                    continue
                with suppress(OSError, ValueError):  # a text that is no path
                    if output.is_file() and any(map(output.samefile, _files_of(source))):
                        read_too.append(str(output))
    if read_too:
        raise WrongArgument(f"{read_too[0]} is read, too; name another file to write")


def _files_of(source: str | Path) -> Iterator[str | Path]:
    """The source itself; of a data folder what is read of it."""
    from secondlook.data import beir

    yield source
    if Path(source).is_dir():
        for kind in ("corpus", "queries", "qrels"):
            with suppress(UnknownFormat):
                yield beir.part(Path(source), kind)


class VerbApp(typer.Typer):
    """A Typer app of such verbs."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:  # noqa: ANN401
        """Register a verb."""
        return super().command(name, cls=Verb, **settings)


def laid_out(text: str, width: int) -> str:
    """Paragraphs as one line each; examples as commands that fit the width, where they can."""
    blocks = re.split(r"\n\s*\n", text.strip("\n"))
    return "\n\n".join(
        "\n".join(line for command in _commands(block) for line in _broken(command, width))
        if block.startswith(" ")
        else " ".join(block.split())
        for block in blocks
    )


def _commands(block: str) -> Iterator[str]:
    """The lines of an indented block, each with the more deeply indented ones after it."""
    indent = re.match(" *", block)[0]  # type: ignore[index]  # matches always
    for command in re.split(rf"\n(?={indent}\S)", block):
        first, *more = command.split("\n")
        yield " ".join([first, *(line.strip() for line in more)])


def _broken(command: str, width: int) -> Iterator[str]:
    """The command itself if it fits; else lines that a shell reads as one, broken at options."""
    if len(command) <= width:
        yield command
        return
    indent = re.match(" *", command)[0]  # type: ignore[index]  # matches always
    line, *parts = _options(command)
    line = indent + line
    for part in parts:
        if len(line) + 1 + len(part) + len(_BACKSLASH) > width:
            yield line + _BACKSLASH
            line = indent + _CONTINUED + part
        else:
            line += f" {part}"
    yield line


def _options(command: str) -> list[str]:
    """The words of a command; an option and its value stay together, and so do quoted words."""
    parts: list[str] = []
    value_may_follow = False
    for word in _SHELL_WORD.findall(command):
        if value_may_follow and not word.startswith("-"):
            parts[-1] += f" {word}"
            value_may_follow = False
        else:
            parts.append(word)
            value_may_follow = word.startswith("-")
    return parts
