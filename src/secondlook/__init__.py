"""The second look: a BERT re-ranker on top of your search engine."""

from typing import TYPE_CHECKING, Any

from secondlook.types import Corpus, Document, Hit, Pair, Qrels, Query, Ranking, Retriever, Scorer

if TYPE_CHECKING:
    from secondlook.score.ranker import Ranker

__version__ = "0.1.0.dev0"

__all__ = [
    "Corpus",
    "Document",
    "Hit",
    "Pair",
    "Qrels",
    "Query",
    "Ranker",
    "Ranking",
    "Retriever",
    "Scorer",
    "__version__",
]


def __dir__() -> list[str]:
    """What completion offers: the names that are imported late too."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names below
    """`Ranker` is imported when it is asked for: it brings the tokenizers and numpy."""
    if name == "Ranker":
        from secondlook.score.ranker import Ranker

        return Ranker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
