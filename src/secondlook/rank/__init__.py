"""Both looks together."""

from secondlook.rank.fusion import Fusion, fuse_rankings, second_look
from secondlook.rank.searcher import Searcher, cut, rerank, with_tails

__all__ = ["Fusion", "Searcher", "cut", "fuse_rankings", "rerank", "second_look", "with_tails"]
