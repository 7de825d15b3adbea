"""Mine training groups with hard negatives, into a Parquet file."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from secondlook.data import CorpusStore
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.retrieve import Index
    from secondlook.train.groups import Group
    from secondlook.train.mine import Counts, MineSettings
    from secondlook.types import Corpus, Qrels, Query, Ranking, Retriever

_AT_ONCE = 256  # queries of a part: little to lose by a kill


def mine(
    corpus: str | Path,
    queries: str | Path,
    qrels: str | Path,
    output: str | Path,
    *,
    run: str | Path | None = None,
    negatives: int = 20,
    ranks: tuple[int, int] = (1, 100),
    keep_all: bool = False,
    random: int = 0,
    judged: bool = False,
    positive_grade: int = 1,
    add_positives: bool | None = None,
    seed: int = 7,
    ray: str | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> Counts:
    """Write training groups: queries with positives and hard negatives, texts included.

    `corpus` is an index folder, or a corpus. Candidates come from `run`, or from the index,
    searched as it was tuned to be (hybrid if it has vectors and was not tuned): of those at
    `ranks` (first and last), so many `negatives` are drawn; `keep_all` keeps them all, for
    validation. `random` negatives more come from the whole corpus; `judged` adds all documents
    judged not relevant. `add_positives` adds positives that are not among the candidates (None:
    unless all are kept). `ray` is the address of a Ray cluster, or "local". Gives what was counted.

    >>> import secondlook as sl
    >>> counts = sl.mine("my.index", "queries.jsonl", "qrels/train.tsv", "train.parquet")
    >>> counts.queries > 0
    True
    """
    from secondlook.data import read_qrels, read_queries
    from secondlook.data.origin import read_origin
    from secondlook.errors import WrongArgument
    from secondlook.train.mine import MineSettings

    if not 1 <= ranks[0] <= ranks[1]:
        raise WrongArgument(f"`ranks` {ranks[0]}-{ranks[1]}: they count from 1, upwards: 1-100")

    settings = MineSettings(
        positive_grade=positive_grade,
        negatives=None if keep_all else negatives,
        ranks=ranks,
        random=random,
        judged=judged,
        add_positives=add_positives,
        seed=seed,
    )
    grades = read_qrels(str(qrels))
    about = {
        "queries": Path(queries).name,  # where they lay would make equal files differ
        "qrels": Path(qrels).name,
        "run": Path(run).name if run else "",
        "settings": settings.model_dump_json(),
    }
    if origin := read_origin(str(qrels)):
        about["labels"] = origin
    texts = {query.id: query for query in read_queries(str(queries)) if query.id in grades}
    job = _Job(
        str(corpus),
        texts,
        grades,
        None if run is None else str(run),
        settings,
        Path(output),
        about,
        as_progress(progress),
    )
    return _here(job) if ray is None else _on_ray(job, ray)


@dataclass(frozen=True, slots=True)
class _Job:
    """What is mined, and where it goes."""

    corpus: str
    queries: Mapping[str, Query]
    qrels: Qrels
    run: str | None
    settings: MineSettings
    output: Path
    about: Mapping[str, str]
    progress: Progress


def _here(job: _Job) -> Counts:
    """In this process, as the rankings come."""
    from secondlook.train.mine import Miner

    with _texts(job) as texts:
        miner = Miner(job.queries, job.qrels, texts.corpus, job.settings, texts.pool)
        rankings = _candidates(job.run, texts, list(job.queries.values()), job.settings)
        groups = job.progress.track(
            miner.groups(rankings), "mining", "queries", total=len(job.queries)
        )
        _write(job, groups, texts.about)
    return miner.counts


def _write(job: _Job, groups: Iterable[Group], about: Mapping[str, str]) -> None:
    """Raises SecondlookError where there is none."""
    from secondlook.errors import SecondlookError
    from secondlook.train.groups import write_groups

    rest = iter(groups)
    first = next(rest, None)
    if first is None:
        begin, end = job.settings.ranks
        raise SecondlookError(
            "nothing to learn from: no query has a positive and a negative, with candidates of "
            f"ranks {begin} to {end}. Look whether the judgments are of this corpus, and whether "
            "the index has its language (secondlook index --language)"
        )
    write_groups(job.output, chain([first], rest), about={**about, **job.about})


def _on_ray(job: _Job, address: str) -> Counts:
    """The same in parts, by workers that open the index."""
    from functools import partial
    from hashlib import sha256

    from secondlook.errors import SecondlookError
    from secondlook.retrieve.folder import CARD
    from secondlook.scale.mine import mined, miner
    from secondlook.scale.parts import Parts
    from secondlook.scale.ray_job import run
    from secondlook.train.mine import Counts
    from secondlook.workflows.open_index import first_stage_fingerprint, searched_by

    index = Path(job.corpus).absolute()
    if not (index / CARD).is_file():
        raise SecondlookError(
            f"the workers of a Ray cluster open an index folder, and {job.corpus} is not one; "
            f"create it with: secondlook index {job.corpus} my.index"
        )
    engine = _opened(job)
    about = _about(job, engine)
    digest = sha256()
    for part in _work(job, Counts()):
        digest.update(part.encode() + b"\n")
    first_stage = first_stage_fingerprint(engine)
    made_of = {**about, "work": digest.hexdigest(), "candidates": first_stage, **job.about}
    parts, counts = Parts(job.output, made_of), Counts()
    count = parts.give(_work(job, counts))
    missing = parts.missing(count)
    with job.progress.counting("mining", "queries", len(job.queries)) as advance:
        advance(_AT_ONCE * (count - len(missing)))
        tools = partial(miner, index, job.settings, searched_by(engine))
        run(address, missing, tools, advance=advance)
    groups = mined(parts.results(count), counts)
    _write(job, groups, about)
    parts.remove()
    return counts


def _work(job: _Job, counts: Counts) -> Iterator[str]:
    """What each part is to do; the queries that fall to none are counted."""
    from secondlook.data import read_run
    from secondlook.scale.mine import as_work
    from secondlook.train.mine import judged

    if job.run is None:
        rest = iter(job.queries.values())
        while some := list(islice(rest, _AT_ONCE)):
            yield as_work(some, job.qrels, None)
        return
    rankings = judged(read_run(job.run), job.queries, job.qrels, counts)
    while part := list(islice(rankings, _AT_ONCE)):
        yield as_work([job.queries[ranking.query_id] for ranking in part], job.qrels, part)


@dataclass(frozen=True, slots=True)
class _Texts:
    """The corpus as it was given, and what can be done with it."""

    corpus: Corpus
    about: Mapping[str, str]
    engine: Retriever | None
    pool: CorpusStore | None


@contextmanager
def _texts(job: _Job) -> Iterator[_Texts]:
    from tempfile import TemporaryDirectory

    from secondlook.data import CorpusStore, read_corpus
    from secondlook.retrieve.folder import CARD
    from secondlook.scale.mine import store_of

    source = job.corpus
    if (Path(source) / CARD).is_file():
        engine = _opened(job)
        yield _Texts(engine, _about(job, engine), engine, store_of(engine))
        return
    with TemporaryDirectory() as folder:  # a corpus is read in order, and mined in none
        documents = job.progress.track(read_corpus(source), "reading", "documents")
        with CorpusStore.build(Path(folder) / "corpus.sqlite", documents) as store:
            yield _Texts(store, {"corpus": store.fingerprint}, None, store)


def _opened(job: _Job) -> Index:
    """The index; where a run has the candidates, only texts are asked of it."""
    from secondlook.workflows.open_index import open_index

    return open_index(job.corpus, by=None if job.run is None else "bm25").engine


def _about(job: _Job, engine: Index) -> dict[str, str]:
    """Its documents and, where vectors found candidates, what it was searched by."""
    from secondlook.workflows.open_index import searched_by

    about, by = {"corpus": engine.card.fingerprint}, searched_by(engine)
    return about if by == "bm25" else {**about, "first stage": by}


def _candidates(
    run: str | None, texts: _Texts, queries: Sequence[Query], settings: MineSettings
) -> Iterable[Ranking]:
    from secondlook.data import read_run
    from secondlook.errors import SecondlookError
    from secondlook.workflows.retrieve import rankings_of

    if run is not None:
        return read_run(run)
    if texts.engine is not None:
        return rankings_of(texts.engine, queries, settings.ranks[1])
    if settings.negatives:
        raise SecondlookError(
            "candidates come from a run or an index; give a run, or an index folder instead of the "
            "corpus, or use random or judged negatives only (0 negatives from candidates)"
        )
    return ()
