"""The second look: a BERT re-ranker on top of your search engine."""

from secondlook.types import Corpus, Document, Hit, Pair, Qrels, Query, Ranking, Retriever, Scorer

__version__ = "0.1.0.dev0"

__all__ = [
    "Corpus",
    "Document",
    "Hit",
    "Pair",
    "Qrels",
    "Query",
    "Ranking",
    "Retriever",
    "Scorer",
    "__version__",
]
