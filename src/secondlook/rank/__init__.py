"""Both looks together."""

from secondlook.rank.searcher import Searcher, rerank

__all__ = ["Searcher", "rerank"]
