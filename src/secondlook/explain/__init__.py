"""Why a document scored as it did."""

from secondlook.explain.explanation import Explanation
from secondlook.explain.pair import explain

__all__ = ["Explanation", "explain"]
