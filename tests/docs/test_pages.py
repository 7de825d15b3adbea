"""The pages tell the truth: commands that exist, pictures and reference as the code makes them."""

import importlib.util
import inspect
import re
import shlex
from pathlib import Path

import pytest
import typer

import secondlook
from markdown_code import fenced, shell_lines
from secondlook.cli import app
from secondlook.terminal.default_verb import ITSELF, DefaultVerb

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = typer.main.get_command(app)


def generator(name):
    folder = ROOT / "docs" / "generate"
    spec = importlib.util.spec_from_file_location(f"generate_{name}", folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(folder)  # as when it is run as a script
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference():
    return generator("reference")


def commands(page):
    """Complete `secondlook …` lines of a page's code blocks; those with an ellipsis are not."""
    for line in shell_lines(page.read_text(encoding="utf-8")):
        command = re.fullmatch(r"(?:torchrun .* -m )?(secondlook .*)", line)
        if command and "…" not in line:
            yield command[1]


def mentions(page):
    """Commands in the middle of a sentence, complete or not; `VERB` stands for any."""
    for line in re.findall(r"(?<!`)`(secondlook [a-z][^`]*)`", page.read_text(encoding="utf-8")):
        yield " ".join(line.replace("…", " ").split())


def found(words):
    """The verb that words ask for, and the words that are left for it."""
    verb = COMMAND
    while hasattr(verb, "commands") and words:
        if words[0] not in verb.commands and isinstance(verb, DefaultVerb):
            words = [ITSELF, *words]
        name, *words = words
        if name not in verb.commands:
            return f"no verb {name!r}", words
        verb = verb.commands[name]
    return verb, words


def problem_with(line, *, whole=True):
    """What the command line would say against it, before it looks at any file."""
    verb, words = found(shlex.split(line, comments=True)[1:])
    if isinstance(verb, str):
        return verb
    if not words and not whole:
        return None
    options = {flag: one for one in verb.params for flag in (*one.opts, *one.secondary_opts)}
    given, arguments = set(), 0
    while words:
        word = words.pop(0)
        if not re.match(r"--?[a-zA-Z]", word):
            arguments += 1
        elif word not in options:
            return f"no option {word}"
        else:
            given.add(options[word].name)
            if not getattr(options[word], "is_flag", False):
                del words[:1]
    if not whole:
        return None
    missing = [
        one.name
        for one in verb.params
        if one.required and one.param_type_name == "option" and one.name not in given
    ]
    wanted = [one for one in verb.params if one.param_type_name == "argument"]
    if missing:
        return f"missing {missing}"
    if arguments < sum(one.required for one in wanted):
        return "too few arguments"
    if arguments > len(wanted) and all(one.nargs == 1 for one in wanted):
        return "too many arguments"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_one_the_command_line_takes(page):
    wrong = {line: problem_with(line) for line in commands(page)}
    wrong |= {line: problem_with(line, whole=False) for line in mentions(page)}
    assert {line: why for line, why in wrong.items() if why} == {}


def test_wrong_commands_are_told():
    assert problem_with("secondlook frobnicate x") == "no verb 'frobnicate'"
    assert problem_with("secondlook index corpus my.index --sharks 3") == "no option --sharks"
    assert problem_with("secondlook retrieve my.index queries") == "missing ['output']"
    assert problem_with("secondlook index corpus") == "too few arguments"
    assert problem_with("secondlook index corpus my.index") is None


def test_the_readme_shows_the_verbs_a_newcomer_needs():
    shown = {line.split()[1] for line in commands(ROOT / "README.md")}
    assert {"index", "retrieve", "warm", "rerank", "compare", "tune", "serve"} <= shown


def test_the_readme_is_one_screen_and_shows_what_the_front_page_shows():
    readme, front = (
        (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/index.md")
    )
    assert len(readme.splitlines()) <= 80
    for language in ("python", "shell"):
        assert len(fenced(readme, language)) == 1
        assert fenced(readme, language) == fenced(front, language)


def test_files_that_the_readme_links_to_are_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r'(?:\]\(|src="|srcset=")([^)#"]+)', text)
    assert len([one for one in linked if one.endswith(".png")]) == 2
    assert [one for one in linked if not (ROOT / one).is_file()] == []


def test_the_pictures_are_what_their_script_draws():
    drawn = generator("pictures").files()
    folders = {ROOT / "docs" / Path(name).parent for name in drawn}
    there = {
        file.relative_to(ROOT / "docs").as_posix(): file.read_text(encoding="utf-8")
        for folder in folders
        for file in folder.glob("*.svg")
    }
    assert there == drawn, "run: python docs/generate/pictures.py"


def test_a_picture_with_a_dark_twin_is_shown_by_the_colours_of_the_site(tmp_path):
    for name in ("both.svg", "both-dark.svg", "one.png"):
        (tmp_path / name).touch()
    shown = generator("dark_pictures").with_dark("![x](both.svg) ![y](one.png)", tmp_path)
    assert shown == "![x](both.svg#only-light)\n![x](both-dark.svg#only-dark) ![y](one.png)"


def test_the_chart_of_the_front_page_has_the_figures_of_the_results_pages(tmp_path):
    page = (
        "# Title\n\n| nDCG@10 | BM25 | trained |\n|---|---|---|\n| Set, 60 | .248 | **.556** |\n\n"
    )
    (tmp_path / "page.md").write_text(page)
    row = generator("front_page").table_row
    assert row(tmp_path / "page.md", "Set") == {
        "nDCG@10": "Set, 60",
        "BM25": ".248",
        "trained": ".556",
    }
    with pytest.raises(ValueError, match=r"page\.md has no row that begins with 'Other'"):
        row(tmp_path / "page.md", "Other")


def test_the_site_has_its_six_tabs_and_names_no_page_twice():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    assert re.findall(r"^  - ([\w-]+(?: \w+)?):$", nav, re.MULTILINE) == [
        "Get started",
        "How-to",
        "Concepts",
        "API",
        "Results",
        "Project",
    ]
    pages = re.findall(r"(\S+\.md)$", nav, re.MULTILINE)
    assert len(pages) == len(set(pages))


def test_the_overview_of_the_results_has_every_page_with_its_finding():
    results = ROOT / "docs" / "results"
    page = generator("navigation").results_page(results)
    rows = re.findall(r"^\| \[.+\]\((.+\.md)\) \| (.+) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == sorted(one.name for one in results.glob("*.md"))
    assert (
        "gate.md",
        "`secondlook compare` reports a difference where there is none in 3.1% of 1,000 trials.",
    ) in rows


def test_every_public_name_is_on_the_page_of_the_python_api(reference):
    page = reference.python_api_page()
    shown = re.findall(r"^      heading: sl\.(\w+)$", page, re.MULTILINE)
    assert sorted(shown) == sorted(name for name in secondlook.__all__ if name != "__version__")
    for name in shown:
        assert not inspect.ismodule(getattr(secondlook, name))


def test_a_public_name_without_a_docstring_ends_the_build(reference, monkeypatch):
    monkeypatch.setattr(secondlook.Hit, "__doc__", None)
    with pytest.raises(ValueError, match=r"secondlook\.Hit has no docstring"):
        reference.python_api_page()


def test_examples_of_docstrings_become_blocks_of_code():
    text = "What it gives.\n\n>>> f(1)  # doctest: +SKIP\n1\n\nMore."
    expected = "What it gives.\n\n\n```pycon\n>>> f(1)\n1\n```\n\nMore."
    assert generator("docstrings").fenced(text) == expected
    assert generator("docstrings").fenced(">>> f(1)") == "\n```pycon\n>>> f(1)\n```"


def test_the_reference_has_every_verb_with_every_option(reference):
    page = reference.cli_page()
    for name, verb in reference.verbs(COMMAND):
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for one in verb.params:
            names = (
                one.opts if one.param_type_name == "option" else [one.metavar or one.name.upper()]
            )
            assert all(f"`{flag}`" in section for flag in names if flag not in ("-h", "--help"))


def test_the_reference_has_every_key_of_a_recipe(reference):
    from secondlook.train.recipe import Recipe

    page = reference.recipes_page()
    schema = Recipe.model_json_schema()
    for shape in (schema, *schema["$defs"].values()):
        for key in shape.get("properties", {}):
            assert key == "phase" or f"| `{key}` |" in page
    assert "PydanticUndefined" not in page


def test_the_reference_has_every_route_and_shape_of_the_server(reference):
    pytest.importorskip("fastapi")
    page = reference.api_page()
    for route in ("POST /v2/rerank", "POST /rerank", "POST /v1/search", "GET /metrics"):
        assert f"## {route}\n" in page
    assert set(re.findall(r"\]\(#(\w+)\)", page)) <= {
        name.lower() for name in re.findall(r"^### (\w+)$", page, re.MULTILINE)
    }
