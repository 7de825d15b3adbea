"""Re-rank a run, into another run file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Literal

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.score.counting import CountingRanker, ScoringCost
    from secondlook.score.export_folder import Engine, Precision
    from secondlook.types import Corpus, Query, Ranking

_WORTH_AN_EXPORT = 2_000
"""Pairs; an export takes as long as scoring some hundred."""


@dataclass(frozen=True, slots=True)
class RerankResult:
    """What was scored, and where the run is."""

    output: Path
    pairs: int
    """Scored by the re-ranker this time; what an interrupted call had scored is not counted."""
    cost: ScoringCost | None = None
    """Time and truncated texts; None on a Ray cluster, whose workers do not report them."""
    cascade: str | None = None
    """The cheaper re-ranker that chose the candidates."""
    cascade_keep: int = 0
    """How many candidates of each query it kept."""
    cascade_cost: ScoringCost | None = None
    by_vectors: bool = False
    """Whether the re-ranker scored by the index's vectors, without reading a document."""
    by_states: bool = False
    """Whether it started from the states of documents that the index stores."""

    @property
    def seconds(self) -> float | None:
        """Spent on scoring by the re-ranker; None on a Ray cluster."""
        return None if self.cost is None else self.cost.seconds

    def summary(self) -> str:
        """Pairs, speed and truncated texts, in one line for each re-ranker."""
        own = f"{self.pairs:,} pairs" if self.cost is None else self.cost.summary()
        line = f"{self.output}: {own}"
        if self.by_vectors or self.by_states:
            line += ", by stored vectors" if self.by_vectors else ", from stored states"
        if self.cascade_cost is None:
            return line
        chosen = f"{self.cascade_cost.summary()}, to keep {self.cascade_keep} of each query"
        return f"{self.cascade}: {chosen}\n{line}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"output": str(self.output)}


def rerank(
    run: str | Path,
    index: str | Path,
    queries: str | Path,
    ranker: str | Path,
    output: str | Path,
    *,
    depth: int | None = None,
    cascade: tuple[str | Path, int] | None = None,
    raw: bool = False,
    backend: Literal["auto", "torch"] | Engine = "auto",
    precision: Literal["auto"] | Precision = "auto",
    stored_vectors: bool = True,
    ray: str | None = None,
    replace: bool = False,
    progress: Progress | ProgressCallback | None = None,
) -> RerankResult:
    """Score the candidates of a run with a re-ranker and write the new run.

    `depth` scores only the top candidates of each query, `cascade` (a cheaper re-ranker and a
    number) only those that the cheaper one keeps; the others stay below in their old order. `raw`
    writes scores without fusion, one line per window. A re-ranker whose layers are all separate
    scores by the vectors of the index where they are its own, and one with some separate layers by
    its states, unless `stored_vectors` is off. `ray` is the address of a Ray cluster, or "local".

    The file appears when it is complete; after an interruption the same call resumes. Raises
    Unwritable if the file exists, unless `replace` is set, and UnknownFormat if its name does not
    say the format: .trec, .run and .txt are TREC's, .tsv is MS MARCO's.
    """
    from secondlook.data import read_queries, read_run
    from secondlook.data.durable import refuse_to_overwrite
    from secondlook.score.counting import CountingRanker
    from secondlook.score.open_ranker import unused_scores_advice
    from secondlook.workflows.export import faster_exported
    from secondlook.workflows.open_index import open_index
    from secondlook.workflows.vectors import stored_scorer_of

    _refuse_unsupported(ranker, cascade, raw=raw, ray=ray)
    reported, target = as_progress(progress), Path(output)
    refuse_to_overwrite(target, replace=replace)
    _refuse_name(target, raw=raw)
    texts = {query.id: query for query in read_queries(str(queries))}
    name, keep = (str(cascade[0]), cascade[1]) if cascade else ("", 0)
    with reported.busy("reading run and ranker"):
        digest, total = _survey(read_run(str(run)), texts, str(queries), depth, keep)
        corpus = open_index(index, by="bm25").engine
        scorer = CountingRanker(str(ranker), backend, precision)
        chooser = CountingRanker(name, backend, precision) if cascade else None
        if stored_vectors and ray is None:
            scorer.stored = stored_scorer_of(corpus, ranker)
            if chooser:
                chooser.stored = stored_scorer_of(corpus, name)
    contents = {
        "pairs": digest,
        "corpus": corpus.card.fingerprint,
        "rankers": [used.made_of for used in (chooser, scorer) if used],
        "depth": depth,
        "keep": keep,
        "raw": raw,
        "stored vectors": [used.stored is not None for used in (chooser, scorer) if used],
    }
    if not raw and (advice := unused_scores_advice(ranker, scorer.ranker)):
        reported.say(advice)
    job = _Job(str(run), texts, target, depth, keep, raw, total, contents)
    if ray is not None:
        open_tools = _tools(Path(index), str(ranker), scorer)
        _on_ray(job, ray, open_tools, scorer, reported)
        return RerankResult(target, total)
    many = scorer.stored is None and total >= _WORTH_AN_EXPORT
    if many and backend == "auto" and (advice := faster_exported(ranker, scorer.ranker)):
        reported.say(advice)
    _here(job, corpus, scorer, chooser, reported)
    cost = scorer.cost()
    used = None if scorer.stored is None else scorer.stored.scores_from
    return RerankResult(
        target,
        cost.pairs,
        cost,
        name or None,
        keep,
        chooser.cost() if chooser else None,
        by_vectors=used == "vectors",
        by_states=used == "states",
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """What is re-ranked, and where it goes."""

    run: str
    queries: Mapping[str, Query]
    output: Path
    depth: int | None
    keep: int
    raw: bool
    total: int
    contents: Mapping[str, Any]
    """What the result depends on: a job of other contents does not resume this one."""

    def whole(self) -> Iterator[Ranking]:
        """The rankings of the run."""
        from secondlook.data import read_run

        return read_run(self.run)

    def candidates(self) -> Iterator[Ranking]:
        """The part of each ranking that is scored."""
        return _cut(self.whole(), self.depth)

    def tag(self, scorer: CountingRanker) -> str:
        """The run tag, which says what the scores are."""
        from secondlook.score.raw import run_tag

        fused, tail = scorer.ranker.fusion is not None, self.depth is not None or self.keep > 0
        return run_tag(raw=self.raw, fused=fused, tail=tail)


def _refuse_unsupported(
    ranker: str | Path, cascade: tuple[str | Path, int] | None, *, raw: bool, ray: str | None
) -> None:
    from secondlook.errors import WrongArgument
    from secondlook.remote.address import is_remote

    if cascade is not None and cascade[1] < 1:
        raise WrongArgument("a cascade keeps 1 candidate or more, as in ('small.ranker', 100)")
    if ray is not None and (cascade is not None or raw):
        raise WrongArgument(
            "a Ray cluster does not support a cascade or raw scores yet; leave out ray"
        )
    if ray is not None and is_remote(ranker):
        raise WrongArgument("a remote re-ranker is asked from this machine; leave out ray")


def _refuse_name(output: Path, *, raw: bool) -> None:
    """What would be written in vain, or not at all, is said before hours of scoring."""
    from secondlook.data.formats import will_have_scores
    from secondlook.errors import WrongArgument

    scores = will_have_scores(output)
    if raw and not scores:
        raise WrongArgument(
            f"{output} would be in MS MARCO's format, which has ranks and no scores; with `raw`, "
            "give a name that ends in .trec"
        )


def _here(
    job: _Job,
    corpus: Corpus,
    scorer: CountingRanker,
    chooser: CountingRanker | None,
    progress: Progress,
) -> None:
    """In this process, batch by batch; finished batches survive an interruption."""
    from secondlook.data.partial import PartialRun
    from secondlook.rank import cut, with_tails
    from secondlook.rank.batches import batches

    partial_run = PartialRun(job.output, job.contents, job.tag(scorer))
    rankings, whole = job.candidates(), job.whole()
    before = sum(_pairs(ranking, job.keep) for ranking in islice(rankings, partial_run.finished))
    with progress.counting("re-ranking", "pairs", job.total) as advance:
        advance(before)
        scorer.advance = advance
        if chooser:
            chooser.advance = advance
        for batch in batches(rankings, scorer.at_once):
            wanted = [job.queries[ranking.query_id] for ranking in batch]
            if chooser:
                batch = cut(wanted, batch, corpus, chooser, job.keep, chooser.ranker.fusion)
            reranked = scorer.rerank(wanted, batch, corpus, raw=job.raw)
            partial_run.add(reranked if job.raw else list(with_tails(reranked, whole)))
    partial_run.finish()


def _tools(
    index: Path, ranker: str, scorer: CountingRanker
) -> Callable[[], Callable[[str], tuple[str, int]]]:
    """What a worker elsewhere opens once: index and re-ranker, with the back end opened here.

    Another one would give other scores than the job is made of.
    """
    from functools import partial

    from secondlook.scale.ray_job import reachable
    from secondlook.scale.rerank import reranker
    from secondlook.score.ranker import Ranker

    assert isinstance(scorer.ranker, Ranker)  # remote ones are refused
    run = scorer.ranker.backend
    return partial(reranker, index.absolute(), reachable(ranker), run.engine, run.precision)


def _on_ray(
    job: _Job,
    address: str,
    open_tools: Callable[[], Callable[[str], tuple[str, int]]],
    scorer: CountingRanker,
    progress: Progress,
) -> None:
    """The same batches as on one machine, some of them a part of the job."""
    from secondlook.data import read_run, write_run
    from secondlook.rank import with_tails
    from secondlook.rank.batches import parts as parts_of
    from secondlook.scale.parts import Parts
    from secondlook.scale.ray_job import run
    from secondlook.scale.rerank import as_work

    parts = Parts(job.output, job.contents)
    count = parts.give(
        as_work([job.queries[ranking.query_id] for ranking in some], some)
        for some in parts_of(job.candidates(), scorer.at_once)
    )
    with progress.counting("re-ranking", "pairs", job.total) as advance:
        run(address, parts.missing(count), open_tools, advance=advance)
    done = (read_run(path, "trec") for path in parts.results(count))
    rankings = with_tails(chain.from_iterable(done), job.whole())
    write_run(job.output, rankings, tag=job.tag(scorer))
    parts.remove()


def _pairs(ranking: Ranking, keep: int) -> int:
    """How many pairs are scored for a ranking, by both rankers of a cascade together."""
    hits = len(ranking.hits)
    return hits + keep if 0 < keep < hits else hits


def _cut(rankings: Iterable[Ranking], depth: int | None) -> Iterator[Ranking]:
    return (ranking if depth is None else ranking.top(depth) for ranking in rankings)


def _survey(
    rankings: Iterable[Ranking],
    texts: Mapping[str, Query],
    queries: str,
    depth: int | None,
    keep: int,
) -> tuple[str, int]:
    """A digest of the candidates, and how many pairs there are; refuses a query without text."""
    from secondlook.errors import MissingQuery

    digest, total = sha256(), 0
    for ranking in rankings:
        if ranking.query_id not in texts:
            raise MissingQuery(ranking.query_id, queries)
        query = texts[ranking.query_id]
        hits = (part for hit in ranking.hits for part in (hit.doc_id, repr(hit.score)))
        digest.update("\x00".join((query.id, query.text, str(query.type), *hits)).encode() + b"\n")
        total += sum(_pairs(cut, keep) for cut in _cut([ranking], depth))
    return digest.hexdigest(), total
