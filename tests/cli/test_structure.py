"""The command line holds no logic: a verb parses, calls one workflow, prints."""

import ast
from pathlib import Path

import pytest

import secondlook.cli

FILES = sorted(Path(secondlook.cli.__file__).parent.glob("*.py"))
SHARED = {"arguments", "serve_options"}
"""Not verbs: the options of several verbs, and those of `serve`."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_verb_is_short_and_imports_no_other(path):
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 150
    if path.stem == "__init__":  # which gathers them
        return
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "secondlook.cli":
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("secondlook.cli."):
            imported.add(str(node.module).removeprefix("secondlook.cli."))
    assert imported <= SHARED


def test_verbs_are_short_on_average():
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES)
    assert lines / len(FILES) < 90
