"""Why a document scored as it did."""

from secondlook.explain.explanation import Explanation
from secondlook.explain.marks import Mark, mark
from secondlook.explain.pair import explain

__all__ = ["Explanation", "Mark", "explain", "mark"]
