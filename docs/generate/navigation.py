"""A folder in the navigation stands for all of its pages, so that a new one needs no line there.

The overview of the results is made of the title, table and finding that each of them opens with.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ICON = Path(__file__).parents[2] / "src" / "secondlook" / "serve" / "page" / "icon.svg"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put a folder's pages where a section of the navigation names the folder."""
    for section in config.nav or []:
        for title, entries in section.items():
            section[title] = [page for entry in entries for page in _pages(config.docs_dir, entry)]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the overview of the results, and the icon that the search page has."""
    from mkdocs.structure.files import File

    page = results_page(Path(config.docs_dir) / "results")
    files.append(File.generated(config, "results/index.md", content=page))
    files.append(File.generated(config, "images/icon.svg", abs_src_path=str(ICON)))
    return files


def results_page(folder: Path) -> str:
    """Each results page with its finding, the paragraph after its first table."""
    rows = [
        "# Results",
        "Each page gives the commands behind its figures, and ends with what did not work.",
        "| page | finding |\n|---|---|",
    ]
    for page in sorted(folder.glob("*.md")):
        title, finding = _opening(page.read_text(encoding="utf-8"))
        rows[-1] += f"\n| [{title}]({page.name}) | {finding} |"
    return "\n\n".join(rows) + "\n"


def _opening(text: str) -> tuple[str, str]:
    title, *paragraphs = text.split("\n## ")[0].split("\n\n")
    first_table = next(n for n, one in enumerate(paragraphs) if one.startswith("|"))
    return title.removeprefix("# "), " ".join(paragraphs[first_table + 1].split())


def _pages(docs: str, entry: object) -> list[object]:
    if not (isinstance(entry, str) and entry.endswith("/")):
        return [entry]
    return [entry + page.name for page in sorted((Path(docs) / entry).glob("*.md"))]
