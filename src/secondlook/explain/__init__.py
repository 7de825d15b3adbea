"""Why a document scored as it did."""

from secondlook.explain.explanation import Explanation
from secondlook.explain.marks import Mark, mark
from secondlook.explain.pair import Stopped, explain
from secondlook.explain.standing import standing

__all__ = ["Explanation", "Mark", "Stopped", "explain", "mark", "standing"]
