"""Figures of the front pages stand on the results pages, and these open with what was found."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))
FRONT_PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md"]
LINK = re.compile(r"\]\(([^)#]*results/[^)#]+\.md)(?:#[^)]*)?\)")
FIGURE = re.compile(r"(?<![\w.])(?:\d[\d,]*)?\.?\d+(?:e-\d+)?(?!\w)")


def figures(text):
    """The numbers of a text, but not those inside names such as e5-small or bf16."""
    return set(FIGURE.findall(text))


def missing_figures(row, folder):
    """The figures of a table row that stand on none of the results pages that it links to."""
    linked = [folder / target for target in LINK.findall(row)]
    results = {figure for page in linked for figure in figures(page.read_text(encoding="utf-8"))}
    return figures(LINK.sub("]", row)) - results


@pytest.mark.parametrize("page", FRONT_PAGES, ids=lambda page: page.name)
def test_figures_of_a_front_page_stand_on_the_linked_results_page(page):
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    linking = [row for row in rows if LINK.search(row)]
    assert sum(len(figures(row)) > 1 for row in linking) >= 5
    missing = {row: missing_figures(row, page.parent) for row in linking}
    assert {row: numbers for row, numbers in missing.items() if numbers} == {}


@pytest.mark.parametrize("page", FRONT_PAGES, ids=lambda page: page.name)
def test_a_row_with_a_measured_figure_links_to_a_results_page(page):
    measured = re.compile(r"(?<![\w.])\d*\.\d+(?!\w)")
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert [row for row in rows if measured.search(row) and not LINK.search(row)] == []


def test_a_figure_that_the_results_page_lacks_is_found(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "page.md").write_text("e5-small has .7042 and 254.9 of 1,000, to 1e-5.")
    row = "| e5-small: .7042, .704, +.042, 1,000, 1e-5, 254.9 | [page](results/page.md#speed-2) |"
    assert missing_figures(row, tmp_path) == {".704", ".042"}


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.stem)
def test_a_results_page_opens_with_a_table_and_ends_with_what_did_not_work(page):
    opening, *sections = page.read_text(encoding="utf-8").split("\n## ")
    paragraphs = [text for text in opening.split("\n\n")[1:] if not text.startswith(">")]
    assert paragraphs[0].startswith("|")
    assert not paragraphs[1].startswith(("|", "    "))
    assert sections[-1].startswith("What did not work\n")
