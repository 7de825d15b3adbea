"""A picture that has a dark twin (`name-dark.svg` beside `name.svg`) follows the site's colours.

Pages name the light one only, so that they read well where nothing is built.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)#\s]+)\.(svg|png)\)")


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:  # noqa: ANN401 - mkdocs' own
    """Put the dark twin beside each picture that has one."""
    source = page.file.abs_src_path
    return markdown if source is None else with_dark(markdown, Path(source).parent)


def with_dark(markdown: str, folder: Path) -> str:
    """The text of a page in `folder`, with both pictures where there are two."""

    def both(found: re.Match[str]) -> str:
        words, name, kind = found.groups()
        if not (folder / f"{name}-dark.{kind}").is_file():
            return found[0]
        return f"![{words}]({name}.{kind}#only-light)\n![{words}]({name}-dark.{kind}#only-dark)"

    return _PICTURE.sub(both, markdown)
