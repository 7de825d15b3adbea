"""Compare re-rankers on the user's own queries: quality, significance, latency and cost."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from secondlook.evaluate.bakeoff import Contest, Contestant, Cost, Speed
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.retrieve import Index
    from secondlook.score.counting import CountingRanker
    from secondlook.types import Qrels, Query, Ranking

FIRST_STAGE = "first stage"
DEFAULT_MEASURE = "nDCG@10"
DEFAULT_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class BakeoffResult:
    """Which re-ranker is best, and where the report and the runs are."""

    output: Path
    runs: Path
    """The folder of the runs, one for the first stage and one for each re-ranker."""
    found: Contest
    spent: dict[str, float]
    """What this call cost, by remote re-ranker with a price."""

    @property
    def best(self) -> str:
        """The name of the best, which may be the first stage."""
        return self.found.best.name

    def summary(self, *, width: int = 120) -> str:
        """The table and the answer, as plain text."""
        from secondlook.evaluate.tables import as_text

        return as_text(self.tables(), width)

    def tables(self) -> RenderableType:
        """The same for a console of rich."""
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        from secondlook.evaluate.bakeoff_page import HEADER, cells

        found = self.found
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("re-ranker", overflow="fold")
        for name in (*found.rows[0].measures, *HEADER):
            table.add_column(Text(name), justify="right")
        for row in found.rows:
            style = "bold" if row == found.best else ""
            table.add_row(*(Text(cell, style=style) for cell in cells(row, found)))
        said = [found.sentence(), found.cheapest(), *(f"Note: {one}." for one in found.doubts())]
        said += [f"{name} cost {cost:.4g} this time." for name, cost in self.spent.items()]
        said.append(f"Report: {self.output}; runs: {self.runs}")
        return Group(table, *(Text(line) for line in said if line))

    def to_dict(self) -> dict[str, Any]:
        """All figures, unrounded."""
        places = {"output": str(self.output), "runs": str(self.runs), "spent": self.spent}
        return self.found.to_dict() | places


def bakeoff(
    qrels: str | Path,
    index: str | Path,
    queries: str | Path,
    rankers: Sequence[str | Path],
    output: str | Path,
    *,
    run: str | Path | None = None,
    depth: int = 100,
    measures: Sequence[str] = (DEFAULT_MEASURE,),
    alpha: float = DEFAULT_ALPHA,
    machine_price: float | None = None,
    seed: int = 0,
    progress: Progress | ProgressCallback | None = None,
) -> BakeoffResult:
    """Find out which re-ranker is best on judged queries, how surely, how fast and at what price.

    Each re-ranker, a folder, a hub id or the address of a rerank API, re-ranks the first `depth`
    candidates of every judged query, one query at a time: those that the index finds, searched as
    it was tuned to be (hybrid if it has vectors and was not tuned), or those of a `run`. All pairs
    of runs, the first stage among them, are tested by Fisher's randomisation test, Holm-adjusted
    over all pairs and measures; the best is that of the highest first measure. Costs are by the
    price in an address, or by `machine_price`, what this machine costs an hour.

    The report is one HTML file, `output`; the runs stand in a folder beside it. After an
    interruption the same call resumes, and a run that is there is not made again.

    >>> import secondlook as sl
    >>> found = sl.bakeoff("qrels/train.tsv", "my.index", "queries.jsonl", ["my.ranker"],
    ...                    "bakeoff.html", depth=3)
    >>> found.best in ("first stage", "my.ranker")
    True
    """
    import numpy as np

    from secondlook.data import read_qrels, write_run
    from secondlook.data.durable import write_at_once
    from secondlook.errors import WrongArgument
    from secondlook.evaluate.bakeoff import Contestant, Cost, Speed, contest
    from secondlook.evaluate.bakeoff_page import bakeoff_page  # says now if plots cannot be drawn
    from secondlook.evaluate.compare import require_alpha
    from secondlook.evaluate.measures import parse_measure
    from secondlook.workflows.open_index import open_index

    if not rankers:
        raise WrongArgument("give at least one re-ranker to compare with the first stage")
    require_alpha(alpha)
    for measure in measures:
        parse_measure(measure)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    reported, target = as_progress(progress), Path(output)
    folder = target.with_name(f"{target.stem}.runs")
    folder.mkdir(parents=True, exist_ok=True)
    judged = read_qrels(str(qrels))
    engine = open_index(index, by=None if run is None else "bm25").engine  # a run: texts only
    texts = _judged_queries(str(queries), judged)
    first, took = _first_stage(engine, texts, run, depth, reported)
    names = _names(rankers)
    write_run(folder / f"{_slug(FIRST_STAGE)}.trec", first)
    job = _Job(engine, texts, first, folder, machine_price)
    entered = [Contestant(FIRST_STAGE, first, Speed(took), Cost(None))]
    spent: dict[str, float] = {}
    for name, source in zip(names, map(str, rankers), strict=True):
        contestant, cost = _enter(job, name, source, reported)
        entered.append(contestant)
        if cost:
            spent[name] = cost
    rng = np.random.default_rng(seed)
    known = {query.id: query.text for query in texts.values()}
    with reported.busy("testing the differences"):
        found = contest(judged, entered, measures, alpha=alpha, rng=rng, texts=known)
    command = _command(
        qrels, index, queries, rankers, output, run, depth, measures, alpha, machine_price, seed
    )
    facts = _facts(engine, run, first, depth, machine_price, load)
    write_at_once(target, bakeoff_page(found, facts, command))
    return BakeoffResult(target, folder, found, spent)


@dataclass(frozen=True, slots=True)
class _Job:
    """What every re-ranker is given."""

    engine: Index
    queries: Mapping[str, Query]
    candidates: Sequence[Ranking]
    folder: Path
    machine_price: float | None

    def fingerprint(self) -> dict[str, str]:
        """What a run depends on beside its re-ranker."""
        whole = sha256()
        for ranking in self.candidates:
            query = self.queries[ranking.query_id]
            ids = (hit.doc_id for hit in ranking.hits)
            scores = (repr(hit.score) for hit in ranking.hits)
            whole.update("\x00".join((query.id, query.text, *ids, *scores)).encode() + b"\n")
        return {"candidates": whole.hexdigest(), "corpus": self.engine.card.fingerprint}


def _judged_queries(source: str, judged: Qrels) -> dict[str, Query]:
    from secondlook.data import read_queries
    from secondlook.errors import SecondlookError

    found = {query.id: query for query in read_queries(source) if judged.get(query.id)}
    if not found:
        raise SecondlookError(
            f"none of the queries in {source} has a judgment; give the queries that were judged"
        )
    return found


def _first_stage(
    engine: Index,
    queries: Mapping[str, Query],
    run: str | Path | None,
    depth: int,
    progress: Progress,
) -> tuple[list[Ranking], tuple[float, ...]]:
    """The candidates, and how long finding those of each query took; of a run that is unknown."""
    from secondlook.data import read_run

    if run is not None:
        given = (ranking for ranking in read_run(str(run)) if ranking.query_id in queries)
        return [ranking.top(depth) for ranking in given], ()
    rankings, seconds = [], []
    asked = list(queries.values())
    engine.retrieve(asked[:1], depth)  # warms the caches
    for query in progress.track(asked, "retrieving", "queries", total=len(asked)):
        began = perf_counter()
        rankings += engine.retrieve([query], depth)
        seconds.append(perf_counter() - began)
    return rankings, tuple(seconds)


def _enter(job: _Job, name: str, source: str, progress: Progress) -> tuple[Contestant, float]:
    """A re-ranker's run, which may be there already, and what it cost this time."""
    from secondlook.data import read_run
    from secondlook.evaluate.bakeoff import Contestant, Speed
    from secondlook.remote.address import is_remote
    from secondlook.score.counting import CountingRanker

    with progress.busy(f"loading {name}"):
        scorer = CountingRanker(source, "auto", "auto")
    contents = {**job.fingerprint(), "ranker": scorer.made_of}
    slug = _slug(name)
    run, timings = job.folder / f"{slug}.trec", job.folder / f"{slug}.seconds.jsonl"
    if not (run.is_file() and _made_by(timings, contents)):
        doing = f"re-ranking with {name}"
        with progress.counting(doing, "queries", len(job.candidates)) as advance:
            _rerank(job, scorer, contents, run, timings, advance)
    _, *rows = map(json.loads, timings.read_text("utf-8").splitlines())
    seconds = tuple(row["seconds"] for row in rows if row["seconds"] is not None)
    speed = Speed(seconds)
    cost = _cost(scorer, job, speed)
    spent = scorer.ranker.usage.cost if hasattr(scorer.ranker, "usage") else 0.0
    return Contestant(name, list(read_run(run)), speed, cost, is_remote(source)), spent


def _made_by(timings: Path, contents: Mapping[str, Any]) -> bool:
    """Whether a finished run is of the same candidates and the same re-ranker."""
    if not timings.is_file():
        return False
    first = timings.read_text("utf-8").partition("\n")[0]
    try:
        return bool(json.loads(first) == json.loads(json.dumps(contents)))
    except ValueError:
        return False


def _rerank(
    job: _Job,
    scorer: CountingRanker,
    contents: Mapping[str, Any],
    run: Path,
    timings: Path,
    advance: Callable[[int], None],
) -> None:
    """One query after the other; finished ones survive an interruption."""
    from secondlook.data import write_run
    from secondlook.data.partial import PartialLines
    from secondlook.score.remote_ranker import RemoteRanker
    from secondlook.types import Hit, Ranking

    partial = PartialLines(timings, contents)
    ranker = scorer.ranker
    first = next((ranking for ranking in job.candidates if ranking.hits), None)
    if first is not None and not isinstance(ranker, RemoteRanker):  # which would bill it
        scorer.rerank([job.queries[first.query_id]], [first], job.engine, raw=False)

    def rows(some: list[Ranking]) -> Iterator[str]:
        for ranking in some:
            before = ranker.usage.cached if isinstance(ranker, RemoteRanker) else 0
            began = perf_counter()
            query = job.queries[ranking.query_id]
            [made] = scorer.rerank([query], [ranking], job.engine, raw=False)
            seconds: float | None = perf_counter() - began
            if isinstance(ranker, RemoteRanker) and ranker.usage.cached > before:
                seconds = None  # a cache's time, not the service's
            hits = [[hit.doc_id, hit.score] for hit in made.hits]
            yield json.dumps({"query": made.query_id, "seconds": seconds, "hits": hits})

    partial.fill(job.candidates, rows, 1, advance)
    done = [json.loads(row) for row in partial.rows()]
    rankings = (
        Ranking.of(row["query"], (Hit(doc_id, score) for doc_id, score in row["hits"]))
        for row in done
    )
    write_run(run, rankings)
    times = [json.dumps({"query": row["query"], "seconds": row["seconds"]}) for row in done]
    partial.finish([json.dumps(contents), *times])


def _cost(scorer: CountingRanker, job: _Job, speed: Speed) -> Cost:
    """What 1,000 searches like these cost."""
    from math import ceil

    from secondlook.evaluate.bakeoff import Cost
    from secondlook.score.remote_ranker import RemoteRanker

    if isinstance(scorer.ranker, RemoteRanker):
        address = scorer.ranker.client.address
        sizes = [len(ranking.hits) for ranking in job.candidates]
        options, batch = address.options, address.batch
        if options.price_per_1000_searches is not None:
            each = sum(ceil(size / batch) for size in sizes) / max(1, len(sizes))
            price = options.price_per_1000_searches
            return Cost(price * each, f"{price:g} per 1,000 requests of up to {batch} documents")
        if options.price_per_1000_documents is not None:
            price, each = options.price_per_1000_documents, sum(sizes) / max(1, len(sizes))
            return Cost(price * each, f"{price:g} per 1,000 documents, {each:.0f} a search")
        return Cost(None)
    if job.machine_price is None or speed.mean is None:
        return Cost(None)
    return Cost(
        1000 * speed.mean / 3600 * job.machine_price,
        f"{job.machine_price:g} an hour for this machine, used fully",
    )


def _names(rankers: Sequence[str | Path]) -> list[str]:
    """What each is called: not as another or the first stage, nor are their files.

    That holds where a disk does not tell cases apart, too.
    """
    from secondlook.score.open_ranker import name_of

    names: list[str] = []
    taken = {_slug(FIRST_STAGE)}
    for source in rankers:
        name, number = name_of(source), 2
        base = name
        while _slug(name).casefold() in taken:
            name, number = f"{base} ({number})", number + 1
        names.append(name)
        taken.add(_slug(name).casefold())
    return names


def _slug(name: str) -> str:
    """The name as files are called."""
    return re.sub(r"[^\w.-]+", "-", name).rstrip("-") or "ranker"


def _facts(
    engine: Index,
    run: str | Path | None,
    candidates: Sequence[Ranking],
    depth: int,
    machine_price: float | None,
    load: float | None,
) -> list[tuple[str, str]]:
    from datetime import UTC, datetime

    from secondlook.scale.machine import cpuinfo, processor
    from secondlook.score.cores import threads
    from secondlook.workflows.open_index import first_stage_name

    pairs = sum(len(ranking.hits) for ranking in candidates)
    facts = [
        ("date", datetime.now(UTC).date().isoformat()),
        ("machine", f"{processor(cpuinfo())['name']}, {threads():g} cores"),
        ("index", f"{engine.card.engine}, {engine.card.documents:,} documents"),
        ("first stage", first_stage_name(engine) if run is None else f"the run {run}"),
        ("queries", f"{len(candidates):,}, up to {depth:,} candidates each, {pairs:,} pairs"),
    ]
    if load is not None:
        busy = "; other programs were running, so latencies are too high" if load > 0.5 else ""
        facts.append(("load average before", f"{load:.1f}{busy}"))
    if machine_price is not None:
        facts.append(("price of this machine", f"{machine_price:g} an hour"))
    return facts


def _command(
    qrels: str | Path,
    index: str | Path,
    queries: str | Path,
    rankers: Sequence[str | Path],
    output: str | Path,
    run: str | Path | None,
    depth: int,
    measures: Sequence[str],
    alpha: float,
    machine_price: float | None,
    seed: int,
) -> str:
    """The same on the command line; an address holds no secret."""
    words = ["secondlook", "bakeoff", str(qrels), "--index", str(index), "--queries", str(queries)]
    words += [word for ranker in rankers for word in ("--ranker", str(ranker))]
    words += [] if run is None else ["--run", str(run)]
    words += ["--depth", str(depth)]
    words += [word for measure in measures for word in ("-m", measure)]
    words += [] if alpha == DEFAULT_ALPHA else ["--alpha", f"{alpha}"]
    words += [] if machine_price is None else ["--machine-price", f"{machine_price:g}"]
    words += [] if seed == 0 else ["--seed", str(seed)]
    return shlex.join([*words, "-o", str(output)])
