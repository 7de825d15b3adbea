"""`secondlook mine`: training groups with hard negatives."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import QueriesSource, Ray  # noqa: TC001 - typer reads it
from secondlook.cli.progress import progress, track
from secondlook.errors import SecondlookError
from secondlook.workflows.retrieve import rankings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from secondlook.data import CorpusStore
    from secondlook.train.mine import Counts, MineSettings
    from secondlook.types import Corpus, Qrels, Query, Ranking, Retriever

_AT_ONCE = 256  # queries of a part: little to lose by a kill


def mine(
    corpus: Annotated[
        str,
        typer.Argument(
            help="Documents: an index folder, or a corpus as `secondlook index` reads it."
        ),
    ],
    queries: QueriesSource,
    qrels: Annotated[str, typer.Argument(help="Relevance judgments: a file, or irds:NAME.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Group file to write (Parquet).")],
    run: Annotated[
        str | None,
        typer.Option(
            help="Run to draw candidates from, in any run format or as lists (query id, tab, "
            "document ids). Default: retrieve them from the index."
        ),
    ] = None,
    negatives: Annotated[
        int, typer.Option(help="Hard negatives drawn per query from the candidates.", min=0)
    ] = 20,
    all_: Annotated[
        bool,
        typer.Option(
            "--all", help="Keep all candidates instead, duplicates included: for validation."
        ),
    ] = False,
    ranks: Annotated[
        str, typer.Option(help="First-stage ranks to draw candidates from, FROM-TO.")
    ] = "1-100",
    random: Annotated[
        int,
        typer.Option(help="Additional random negatives per query, from the whole corpus.", min=0),
    ] = 0,
    judged: Annotated[
        bool,
        typer.Option("--judged", help="Also use all documents judged not relevant as negatives."),
    ] = False,
    positive_grade: Annotated[
        int, typer.Option(help="Lowest grade that makes a document a positive.", min=1)
    ] = 1,
    add_positives: Annotated[
        bool | None,
        typer.Option(
            "--add-positives/--found-only",
            help="Whether to add positives that are not among the candidates; default: yes, except "
            "with --all.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the sampling.")] = 7,
    ray: Ray = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Mine training groups: queries with positives and hard negatives, texts included.

    Negatives are drawn from the first-stage candidates. Judged positives, near-duplicates of them
    (equal but for case and punctuation, or sharing .8 of their word trigrams) and repeated texts
    are never drawn. With --all the candidates are kept as they are, for validation.

    With --ray, single-core workers mine parts of the queries from the same index folder; finished
    parts survive the loss of workers and of this program.

    [bold]Examples[/bold]

      secondlook mine my.index queries.jsonl qrels/train.tsv -o train.parquet
      secondlook mine my.index queries.jsonl qrels/dev.tsv --run bm25.trec --all -o dev.parquet
    """
    from secondlook.data import read_qrels, read_queries
    from secondlook.data.origin import read_origin
    from secondlook.train.mine import MineSettings

    settings = MineSettings(
        positive_grade=positive_grade,
        negatives=None if all_ else negatives,
        ranks=_ranks(ranks),
        random=random,
        judged=judged,
        add_positives=add_positives,
        seed=seed,
    )
    grades = read_qrels(qrels)
    about = {
        "queries": Path(queries).name,  # where they lay would make equal files differ
        "qrels": Path(qrels).name,
        "run": Path(run).name if run else "",
        "settings": settings.model_dump_json(),
    }
    if origin := read_origin(qrels):
        about["labels"] = origin
    asked = {query.id: query for query in read_queries(queries) if query.id in grades}
    job = _Job(corpus, asked, grades, run, settings, output, about)
    counts = _here(job) if ray is None else _on_ray(job, ray)
    if as_json:
        typer.echo(json.dumps(counts.as_dict()))
    else:
        typer.echo(f"{output}: {_report(counts)}")


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


def _here(job: _Job) -> Counts:
    """In this process, as the rankings come."""
    from secondlook.train.groups import write_groups
    from secondlook.train.mine import Miner

    with _texts(job.corpus) as texts:
        miner = Miner(job.queries, job.qrels, texts.corpus, job.settings, texts.pool)
        rankings = _first_look(job.run, texts, list(job.queries.values()), job.settings)
        groups = track(miner.groups(rankings), "mining", "queries", total=len(job.queries))
        write_groups(job.output, groups, about={"corpus": texts.fingerprint, **job.about})
    return miner.counts


def _on_ray(job: _Job, address: str) -> Counts:
    """The same in parts, by workers that open the index."""
    from functools import partial
    from hashlib import sha256

    from secondlook.retrieve.folder import CARD, read_card
    from secondlook.scale.mine import mined, miner
    from secondlook.scale.parts import Parts
    from secondlook.scale.ray_job import run
    from secondlook.train.groups import write_groups
    from secondlook.train.mine import Counts

    index = Path(job.corpus).absolute()
    if not (index / CARD).is_file():
        raise SecondlookError(
            f"with --ray workers open an index folder, and {job.corpus} is not one; create it "
            f"with: secondlook index {job.corpus} my.index"
        )
    fingerprint = read_card(index).fingerprint
    digest = sha256()
    for part in _work(job, Counts()):
        digest.update(part.encode() + b"\n")
    made_of = {"corpus": fingerprint, "work": digest.hexdigest(), **job.about}
    parts, counts = Parts(job.output, made_of), Counts()
    count = parts.give(_work(job, counts))
    missing = parts.missing(count)
    with progress("mining", "queries", len(job.queries)) as advance:
        advance(_AT_ONCE * (count - len(missing)))
        run(address, missing, partial(miner, index, job.settings), advance=advance)
    groups = mined(parts.results(count), counts)
    write_groups(job.output, groups, about={"corpus": fingerprint, **job.about})
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
    while found := list(islice(rankings, _AT_ONCE)):
        yield as_work([job.queries[one.query_id] for one in found], job.qrels, found)


@dataclass(frozen=True, slots=True)
class _Texts:
    """The corpus as it was given, and what can be done with it."""

    corpus: Corpus
    fingerprint: str
    engine: Retriever | None
    pool: CorpusStore | None


@contextmanager
def _texts(source: str) -> Iterator[_Texts]:
    from tempfile import TemporaryDirectory

    from secondlook.data import CorpusStore, read_corpus
    from secondlook.retrieve import open_index
    from secondlook.retrieve.folder import CARD

    if (Path(source) / CARD).is_file():
        index = open_index(Path(source))
        yield _Texts(index, index.card.fingerprint, index, getattr(index, "store", None))
        return
    with TemporaryDirectory() as folder:  # a corpus is read in order, and mined in none
        documents = track(read_corpus(source), "reading", "documents")
        with CorpusStore.build(Path(folder) / "corpus.sqlite", documents) as store:
            yield _Texts(store, store.fingerprint, None, store)


def _first_look(
    run: str | None, texts: _Texts, queries: Sequence[Query], settings: MineSettings
) -> Iterable[Ranking]:
    from secondlook.data import read_run

    if run is not None:
        return read_run(run)
    if texts.engine is not None:
        return rankings_of(texts.engine, queries, settings.ranks[1])
    if settings.negatives:
        raise SecondlookError(
            "candidates come from a run or an index; give --run, or an index folder instead of the "
            "corpus, or use random or judged negatives only (--negatives 0)"
        )
    return ()


def _ranks(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal()):
        raise SecondlookError(f"--ranks {text!r} must be two ranks, FROM-TO, as in 1-100")
    return int(first), int(last)


def _report(counts: Counts) -> str:
    dropped = ", ".join(f"{rule} {count:,}" for rule, count in counts.dropped.items())
    return (
        f"{counts.queries:,} queries\n"
        f"  positives {counts.positives:,}, of which {counts.positives_added:,} were not among the "
        f"candidates; {counts.positives_missed:,} more are in no group "
        f"({counts.positives_without_text:,} have no text)\n"
        f"  negatives {counts.negatives:,}, of which {counts.negatives_judged:,} judged\n"
        f"  dropped while drawing: {dropped}\n"
        f"  queries left out: {counts.queries_without_positive:,} without a positive, "
        f"{counts.queries_without_candidate:,} without a positive or a negative in the group; "
        f"{counts.queries_unjudged:,} of the run are not judged"
    )
