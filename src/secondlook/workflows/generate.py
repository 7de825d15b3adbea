"""Training queries generated from a corpus, kept if they retrieve their passage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.retrieve import Index
    from secondlook.train.generate import GeneratedQuery
    from secondlook.types import Document, Query, Ranking

_AT_ONCE = 8  # passages


@dataclass(frozen=True, slots=True)
class GenerateResult:
    """What was generated and kept."""

    output: Path
    queries: int
    """Kept; equal texts are one."""
    generated: int
    origin: str
    """What the judgments are made of, as re-rankers trained on them record it."""

    def summary(self) -> str:
        """How many were kept, and by what."""
        return f"{self.output}: {self.origin}"

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "output": str(self.output),
            "queries": self.queries,
            "generated": self.generated,
            "origin": self.origin,
        }


def generate(
    corpus: str | Path,
    index: str | Path,
    expander: str | Path,
    output: str | Path,
    *,
    passages: int = 1000,
    count: int = 3,
    within: int = 10,
    ranker: str | Path | None = None,
    seed: int = 1,
    device: str | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> GenerateResult:
    """Write queries and judgments in BEIR's layout: generated from passages drawn at random.

    `expander` writes `count` queries for each passage; a query is kept if the search finds its
    passage in the top `within`. The search is that of `index`, by words, vectors or both as it was
    tuned to be, with `ranker` also re-ranked. All queries are listed in generated.jsonl.
    Interrupted, the same call resumes. Raises SecondlookError where none is kept.

    Queries and judgments that were made before are replaced; queries that were added to them, and
    other files of judgments, stay. Raises Unwritable where those of `output` are people's.
    """
    from secondlook.data.origin import GENERATED, refuse_to_overwrite_judged, write_made
    from secondlook.errors import SecondlookError
    from secondlook.model.checkpoint import base_name, files_fingerprint, locate
    from secondlook.model.doc2query import load_expander
    from secondlook.score.predicted_queries import PredictedQueries
    from secondlook.train.generate import retrieving_their_passage, sampled
    from secondlook.workflows.documents import documents_of
    from secondlook.workflows.open_index import (
        first_stage_fingerprint,
        first_stage_name,
        open_index,
    )

    reported, folder, generator = as_progress(progress), Path(output), str(expander)
    refuse_to_overwrite_judged(folder)
    second = None if ranker is None else str(ranker)
    with reported.busy("loading the models"):
        engine = open_index(index).engine
        search = _search(engine, second, within)
        ask = PredictedQueries(load_expander(generator), count, top_k=10, seed=seed, device=device)
    chosen = sampled(documents_of(corpus, reported), passages, seed)
    folder.mkdir(parents=True, exist_ok=True)
    job = {
        "index": engine.card.fingerprint + first_stage_fingerprint(engine),
        "passages": [document.id for document in chosen],
        "models": [files_fingerprint(locate(name)) for name in (generator, second) if name],
        "draw": [count, within, seed],
    }
    listed = folder / "generated.jsonl"
    generated = _generated(listed, job, chosen, ask, search, reported)
    queries, qrels = retrieving_their_passage(generated)
    if not queries:
        raise SecondlookError(
            f"none of {len(generated):,} generated queries retrieved its passage in the top "
            f"{within}; {listed} lists them: raise `within`, or use a better `expander`"
        )
    reranked = "" if second is None else f", re-ranked by {base_name(second)}"
    origin = (
        f"{GENERATED}: {len(queries):,} of {len(generated):,} by {base_name(generator)}, "
        f"those whose passage is in the top {within} of {first_stage_name(engine)}{reranked}"
    )
    write_made(folder, queries, qrels, origin)
    return GenerateResult(folder, len(queries), len(generated), origin)


def _generated(
    listed: Path,
    job: dict[str, Any],
    passages: Sequence[Document],
    ask: Callable[[list[tuple[str, str]]], Sequence[Sequence[str]]],
    search: Callable[[Sequence[Query]], list[Ranking]],
    progress: Progress,
) -> list[GeneratedQuery]:
    """Every query of every passage, with the rank of its passage; what is `listed` is kept."""
    from secondlook.data.lines import lines
    from secondlook.data.partial import PartialLines
    from secondlook.retrieve.expand import text_of
    from secondlook.train.generate import GeneratedQuery, round_trip

    done = PartialLines(listed, job)

    def rows(some: list[Document]) -> list[str]:
        queries = ask([(document.id, text_of(document)) for document in some])
        return [generated.line for generated in round_trip(some, queries, search)]

    with progress.counting("generating queries", "passages", len(passages)) as advance:
        done.fill(passages, rows, _AT_ONCE, advance)
    done.finish(done.rows())
    return [GeneratedQuery.read(line) for _, line in lines(listed, may_be_empty=True)]


def _search(
    engine: Index, ranker: str | None, within: int
) -> Callable[[Sequence[Query]], list[Ranking]]:
    """Queries in, the best hits of the first stage or of re-ranking out."""
    from secondlook.rank import Searcher
    from secondlook.score.ranker import Ranker

    if ranker is None:
        return partial(engine.retrieve, k=within)
    second = Ranker.load(ranker)
    searcher = Searcher(engine, engine, second, second.fusion)
    return partial(searcher.search, k=within)
