"""A folder in the navigation stands for all of its pages, so that a new one needs no line there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put a folder's pages, its README first, where the navigation names the folder."""
    for section in config.nav or []:
        if isinstance(section, dict):
            for title, place in section.items():
                if isinstance(place, str) and place.endswith("/"):
                    section[title] = _pages(Path(config.docs_dir), place)
    return config


def _pages(docs: Path, folder: str) -> list[str]:
    names = sorted(page.name for page in (docs / folder).glob("*.md"))
    return [folder + name for name in sorted(names, key=lambda name: name != "README.md")]
