"""BERT re-rankers on top of your search engine: search, re-rank, train, evaluate, serve.

The names of this module are the public interface; all other modules are private and may change.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from secondlook.errors import SecondlookError
from secondlook.types import Corpus, Document, Hit, Pair, Qrels, Query, Ranking, Retriever, Scorer

if TYPE_CHECKING:
    from secondlook.data.conversions import load_qrels, load_queries, qrels_to_dataframe
    from secondlook.data.formats import write_qrels
    from secondlook.data.run import Run
    from secondlook.explain import explain as explain_score
    from secondlook.retrieve.search_index import SearchIndex
    from secondlook.score.open_ranker import open_ranker
    from secondlook.score.ranker import Ranker
    from secondlook.score.remote_ranker import RemoteRanker
    from secondlook.workflows.attach import attach_index
    from secondlook.workflows.bakeoff import bakeoff
    from secondlook.workflows.compare import compare
    from secondlook.workflows.distil import distil
    from secondlook.workflows.evaluate import evaluate as evaluate_run
    from secondlook.workflows.index import build_index
    from secondlook.workflows.mine import mine
    from secondlook.workflows.open_index import open_index
    from secondlook.workflows.report import report
    from secondlook.workflows.serve import create_app
    from secondlook.workflows.serve import serve as serve_ranker
    from secondlook.workflows.train import train as train_ranker
    from secondlook.workflows.tune import tune

__version__ = "0.2.0"

__all__ = [
    "Corpus",
    "Document",
    "Hit",
    "Pair",
    "Qrels",
    "Query",
    "Ranker",
    "Ranking",
    "RemoteRanker",
    "Retriever",
    "Run",
    "Scorer",
    "SearchIndex",
    "SecondlookError",
    "__version__",
    "attach_index",
    "bakeoff",
    "build_index",
    "compare",
    "create_app",
    "distil",
    "evaluate_run",
    "explain_score",
    "load_qrels",
    "load_queries",
    "mine",
    "open_index",
    "open_ranker",
    "qrels_to_dataframe",
    "report",
    "serve_ranker",
    "train_ranker",
    "tune",
    "write_qrels",
]

# A function cannot have the name of a package below: `secondlook.train` is the package as soon as
# anything in it is imported. Hence `train_ranker`, `evaluate_run`, `explain_score`, `serve_ranker`.
_LATE = {
    "Ranker": "score.ranker:Ranker",
    "RemoteRanker": "score.remote_ranker:RemoteRanker",
    "Run": "data.run:Run",
    "SearchIndex": "retrieve.search_index:SearchIndex",
    "attach_index": "workflows.attach:attach_index",
    "bakeoff": "workflows.bakeoff:bakeoff",
    "build_index": "workflows.index:build_index",
    "compare": "workflows.compare:compare",
    "create_app": "workflows.serve:create_app",
    "distil": "workflows.distil:distil",
    "evaluate_run": "workflows.evaluate:evaluate",
    "explain_score": "explain:explain",
    "load_qrels": "data.conversions:load_qrels",
    "load_queries": "data.conversions:load_queries",
    "mine": "workflows.mine:mine",
    "open_index": "workflows.open_index:open_index",
    "open_ranker": "score.open_ranker:open_ranker",
    "qrels_to_dataframe": "data.conversions:qrels_to_dataframe",
    "report": "workflows.report:report",
    "serve_ranker": "workflows.serve:serve",
    "train_ranker": "workflows.train:train",
    "tune": "workflows.tune:tune",
    "write_qrels": "data.formats:write_qrels",
}


def __dir__() -> list[str]:
    """What completion offers: the names that are imported late too."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    """Import a name when it is first used: `import secondlook` loads neither torch nor numpy."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATE[name].split(":")
    globals()[name] = value = getattr(import_module(f"secondlook.{module}"), attribute)
    return value
