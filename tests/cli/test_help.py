"""The command line answers at once: what is heavy is imported by the verb that needs it."""

import inspect
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from typer import rich_utils
from typer.main import get_command

import secondlook
from secondlook.cli import app
from secondlook.terminal.help_layout import laid_out

SOURCE = Path(__file__).resolve().parents[2] / "src"
HEAVY = ["torch", "transformers", "numpy", "bm25s", "ir_measures", "opensearchpy", "pydantic"]
PANEL = "╭"
TYPERS_SHARE = 0.24
"""Seconds that importing what typer prints help with takes where `--help` takes .5."""
COMMAND = get_command(app)


def verbs(command, above=""):
    """All verbs below a command, each with the words that call it."""
    for name, verb in command.commands.items():
        if hasattr(verb, "commands"):
            yield from verbs(verb, f"{above}{name} ")
        else:
            yield above + name, verb


VERBS = [words for words, _ in verbs(COMMAND)]


def python(*arguments):
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize(
    "arguments",
    [["-c", "import secondlook"], ["-m", "secondlook", "--help"]],
    ids=["import", "help"],
)
def test_nothing_heavy_is_loaded(arguments):
    report = python("-X", "importtime", *arguments).stderr
    loaded = {line.split("|")[-1].strip().partition(".")[0] for line in report.splitlines()}
    assert "secondlook" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize("arguments", [["--version"], ["--version", "doctor"]])
def test_the_version_is_printed_and_no_verb_runs(arguments, capsys):
    COMMAND.main(arguments, "secondlook", standalone_mode=False)
    assert capsys.readouterr().out == f"secondlook {secondlook.__version__}\n"


def test_help_names_every_verb_in_under_six_tenths_of_a_second():
    resource = pytest.importorskip("resource")

    def seconds_of_work(*arguments):  # not of waiting: other processes may keep this machine busy
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        shown = python(*arguments).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, shown

    def is_quick():
        own, shown = seconds_of_work("-m", "secondlook", "--help")
        assert "eval" in shown
        assert "doctor" in shown
        # Neighbours also slow the work itself, by half and more: typer's own share tells how much.
        typers, _ = seconds_of_work("-c", "import typer.rich_utils")
        return own < 0.6 * max(1, typers / TYPERS_SHARE)

    assert any(is_quick() for _ in range(5))


@pytest.fixture
def shown(monkeypatch):
    """The help as it is printed, by the words of a verb and the terminal's width."""
    monkeypatch.setattr(rich_utils, "FORCE_TERMINAL", False)

    def shown(words, width):
        monkeypatch.setattr(rich_utils, "MAX_WIDTH", width)
        with redirect_stdout(StringIO()) as printed:
            COMMAND.main([*words.split(), "--help"], "secondlook", standalone_mode=False)
        return printed.getvalue()

    return shown


def blocks(shown):
    """What stands above the tables of a help, without the usage, as blocks of lines."""
    lines = [line.rstrip() for line in shown.partition(PANEL)[0].splitlines()]
    text = "\n".join(line.removeprefix(" ") for line in lines).strip()
    usage, *rest = text.split("\n\n")
    assert usage.startswith("Usage: ")
    assert not re.search(r"\{[a-z]", usage), "an argument that is not in capitals"
    return [block.splitlines() for block in rest]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("verb", VERBS)
def test_help_fills_the_terminals_lines_and_leaves_examples_whole(shown, verb, width):
    printed = shown(verb, width)
    assert max(len(line) for line in printed.splitlines()) <= width
    assert not re.search(r"\w…", printed), "a word that its column is too narrow for"
    inside = width - 2
    prose, examples = [], []
    for lines in blocks(printed):
        (examples if lines[0].startswith("  ") else prose).append(lines)
    for line, following in (pair for lines in prose for pair in pairwise(lines)):
        assert len(f"{line} {following.split()[0]}") > inside, line
    lines = [line for block in examples for line in block]
    whole = re.sub(r" \\\n {6}", " ", "\n".join(lines)).splitlines()
    called = f"  secondlook {verb.removesuffix(' corpus')} "
    assert any(f"{command} ".startswith(called) for command in whole)
    for command in whole:
        assert not command.startswith("   "), "a line that goes on says so with a backslash"
        assert len(command) > inside or command in lines


def test_a_quoted_word_and_the_value_of_an_option_are_not_torn_apart():
    command = "  curl host -H 'content-type: text' --data '{\"a b\": \"c d\"}' x"
    assert laid_out(command, 40).splitlines() == [
        "  curl host -H 'content-type: text' \\",
        '      --data \'{"a b": "c d"}\' x',
    ]


def test_a_command_goes_on_in_lines_of_deeper_indentation():
    written = "Do it\nat once.\n\n  secondlook do\n      --now\n  secondlook undo"
    assert laid_out(written, 80) == "Do it at once.\n\n  secondlook do --now\n  secondlook undo"


@pytest.mark.parametrize("verb", VERBS)
def test_the_first_line_says_in_one_sentence_what_a_verb_does(verb):
    first = inspect.getdoc(dict(verbs(COMMAND))[verb].callback).splitlines()[:2]
    assert first[0].endswith(".")
    assert first[1:] in ([], [""])


@pytest.mark.parametrize("verb", VERBS)
def test_brackets_in_a_help_are_styles_and_not_text_that_rich_drops(verb):
    command = dict(verbs(COMMAND))[verb]
    helps = [command.help, *(getattr(one, "help", None) for one in command.params)]
    tags = {tag for text in helps for tag in re.findall(r"\[([a-z#/@][^\[\]]*)\]", text or "")}
    assert tags <= {"b", "/b", "bold", "/bold", "dim", "/dim"}


def test_every_verb_stands_in_a_group(shown):
    panels = re.findall(rf"{PANEL}─ (.*?) ─", shown("", 80))
    assert panels == ["Options", "Search", "Train", "Evaluate", "Serve", "Scale", "First stage"]
