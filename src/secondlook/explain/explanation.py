"""What is said of a score: the findings, as JSON and as a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from secondlook.explain.findings import Findings
from secondlook.explain.page import page


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Findings):
    """Why a pair scored as it did."""

    def to_json(self) -> dict[str, Any]:
        """All of it in plain numbers, strings, lists and mappings."""
        return asdict(self)

    def to_html(self) -> str:
        """All of it as one page that needs nothing from elsewhere."""
        return page(self)
