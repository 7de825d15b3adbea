"""Both looks together."""

from secondlook.rank.fusion import Fusion, second_look
from secondlook.rank.searcher import Searcher, cut, rerank

__all__ = ["Fusion", "Searcher", "cut", "rerank", "second_look"]
