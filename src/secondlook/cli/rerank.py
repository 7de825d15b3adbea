"""`secondlook rerank`: re-rank a run."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import Ray, Replace, reachable, refuse_to_overwrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from secondlook.types import Corpus, Pair, Query, Ranking


class Backend(StrEnum):
    """Inference back ends."""

    auto = "auto"
    torch = "torch"
    onnx = "onnx"
    openvino = "openvino"


class Precision(StrEnum):
    """Numeric precision."""

    auto = "auto"
    fp32 = "fp32"
    bf16 = "bf16"
    int8 = "int8"


def rerank(
    run: Annotated[str, typer.Argument(help="First-stage run.")],
    index: Annotated[Path, typer.Option(help="Index folder that holds the texts.")],
    queries: Annotated[str, typer.Option(help="Queries: a file, or irds:NAME.")],
    ranker: Annotated[str, typer.Option(help="Re-ranker: a folder or a Hugging Face model id.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Run file to write.")],
    depth: Annotated[
        int | None,
        typer.Option(
            help="Re-rank only the top N candidates of each query; the others stay below them in "
            "their old order.",
            min=1,
        ),
    ] = None,
    cascade: Annotated[
        str | None,
        typer.Option(
            metavar="RANKER:KEEP",
            help="Let a cheaper re-ranker choose the KEEP candidates of each query that this one "
            "scores; the others stay below them in their old order.",
        ),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Write raw scores without fusion, one line per window, scored documents only: the "
            "input of `fuse tune` and `calibrate`.",
        ),
    ] = False,
    backend: Annotated[
        Backend, typer.Option(help="Inference back end; auto: the fastest export, else torch.")
    ] = Backend.auto,
    precision: Annotated[
        Precision,
        typer.Option(
            help="Numeric precision: fp32, bf16 or int8; auto: that of the export, else fp32."
        ),
    ] = Precision.auto,
    ray: Ray = None,
    replace: Replace = False,
) -> None:
    """Re-rank a retrieval run with a re-ranker.

    The run file appears when it is complete. If interrupted, the same command resumes. An existing
    run is overwritten only with --replace.

    Truncation, markers, pooling of windows and score fusion are settings of the re-ranker, stored
    with it: there are no options for them here.

    With --ray, single-core workers that see the same folders score parts of the pairs; finished
    parts survive the loss of workers and of this program.

    [bold]Examples[/bold]

      secondlook rerank bm25.trec --index my.index --queries queries.jsonl --ranker my.ranker
          -o reranked.trec
      secondlook rerank bm25.trec --index my.index --queries queries.jsonl --ranker my.ranker
          --cascade small.ranker:100 -o reranked.trec
    """
    from functools import partial

    from secondlook.cli.progress import busy, progress
    from secondlook.data import read_queries, read_run
    from secondlook.data.partial import PartialRun
    from secondlook.rank import cut, with_tails
    from secondlook.rank.batches import batches, parts
    from secondlook.retrieve import open_index
    from secondlook.scale.rerank import reranker
    from secondlook.score.raw import run_tag

    refuse_to_overwrite(output, replace=replace)
    asked = {query.id: query for query in read_queries(queries)}
    cheap, keep = _cascade(cascade)
    with busy("reading run and ranker"):
        digest, total = _survey(read_run(run), asked, queries, depth, keep)
        corpus = open_index(index)
        scorer = Watched(ranker, backend, precision)
        chooser = Watched(cheap, backend, precision) if cheap else None
    job = {
        "pairs": digest,
        "corpus": corpus.card.fingerprint,
        "rankers": [one.made_of for one in (chooser, scorer) if one],
        "depth": depth,
        "keep": keep,
        "raw": raw,
    }
    fused, tail = scorer.ranker.fusion is not None, depth is not None or chooser is not None
    tag = run_tag(raw=raw, fused=fused, tail=tail)
    if ray is not None:
        if chooser or raw:
            raise typer.BadParameter("does not support --cascade or --raw yet", param_hint="--ray")
        tools = partial(
            reranker, index.absolute(), reachable(ranker), backend.value, precision.value
        )
        work = parts(_cut(read_run(run), depth), scorer.at_once)
        _on_ray(ray, output, job, tools, asked, work, total, read_run(run), tag)
        return
    made = PartialRun(output, job, tag)
    rankings, whole = _cut(read_run(run), depth), read_run(run)
    before = sum(_pairs(ranking, keep) for ranking in islice(rankings, made.finished))
    with progress("re-ranking", "pairs", total) as advance:
        advance(before)
        scorer.advance = advance
        if chooser:
            chooser.advance = advance
        for batch in batches(rankings, scorer.at_once):
            wanted = [asked[ranking.query_id] for ranking in batch]
            if chooser:
                batch = cut(wanted, batch, corpus, chooser, keep, chooser.ranker.fusion)
            looks = scorer.look(wanted, batch, corpus, raw=raw)
            made.add(looks if raw else list(with_tails(looks, whole)))
    made.finish()
    if chooser:
        typer.echo(f"{cheap}: {chooser.cost()}, to keep {keep} of each query")
    typer.echo(f"{output}: {scorer.cost()}")


def _on_ray(
    address: str,
    output: Path,
    job: Mapping[str, object],
    tools: Callable[[], Callable[[str], tuple[str, int]]],
    asked: Mapping[str, Query],
    work: Iterable[list[Ranking]],
    total: int,
    first: Iterable[Ranking],
    tag: str,
) -> None:
    """The same batches as on one machine, some of them a part of the job."""
    from itertools import chain

    from secondlook.cli.progress import progress
    from secondlook.data import read_run, write_run
    from secondlook.rank import with_tails
    from secondlook.scale.parts import Parts
    from secondlook.scale.ray_job import run
    from secondlook.scale.rerank import as_work

    parts = Parts(output, job)
    count = parts.give(
        as_work([asked[ranking.query_id] for ranking in some], some) for some in work
    )
    with progress("re-ranking", "pairs", total) as advance:
        run(address, parts.missing(count), tools, advance=advance)
    done = (read_run(path, "trec") for path in parts.results(count))
    write_run(output, with_tails(chain.from_iterable(done), first), tag=tag)
    parts.remove()
    typer.echo(f"{output}: {total:,} pairs")


class Watched:
    """A ranker that counts scored pairs, truncated texts and elapsed time."""

    def __init__(self, source: str, backend: Backend, precision: Precision) -> None:
        from secondlook.model.checkpoint import open_checkpoint
        from secondlook.rank.batches import DOCUMENTS, PAIRS
        from secondlook.score.exports import fingerprint
        from secondlook.score.ranker import Ranker

        self.ranker = Ranker.load(
            source, backend=backend.value, precision=precision.value, same_on_any_machine=True
        )
        self.advance: Callable[[int], None] = lambda _: None
        settings = self.ranker.settings
        self.made_of = {
            "weights": fingerprint(open_checkpoint(source)),
            "encode": settings.encode.model_dump(mode="json"),
            "fusion": settings.fusion and settings.fusion.model_dump(mode="json"),
            "backend": f"{backend.value} {precision.value}",
        }
        self.at_once = DOCUMENTS if settings.encode.windows else PAIRS
        self._cut_texts, self._cut_tokens, self._pairs, self._seconds = 0, 0, 0, 0.0
        self._cut_queries: set[str] = set()

    def look(
        self, queries: list[Query], rankings: list[Ranking], corpus: Corpus, *, raw: bool
    ) -> list[Ranking]:
        """The second look at a batch of rankings."""
        from secondlook.rank import rerank as look_again
        from secondlook.score.raw import raw_windows

        if not raw:
            return look_again(queries, rankings, corpus, self, self.ranker.fusion)
        if self.ranker.settings.encode.windows is None:
            return look_again(queries, rankings, corpus, self)
        began = monotonic()
        made = raw_windows(queries, rankings, corpus, self.ranker)
        self._count(sum(len(ranking.hits) for ranking in rankings), began)
        return made

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The ranker's scores."""
        began = monotonic()
        scored = self.ranker.scored(pairs)
        self._cut_texts += int((scored.cut > 0).sum())
        self._cut_tokens += int(scored.cut.sum())
        for place in scored.cut_query.nonzero()[0].tolist():
            self._cut_queries.add(pairs[place][0].id)
        self._count(len(pairs), began)
        return scored.scores

    def _count(self, pairs: int, began: float) -> None:
        self._pairs += pairs
        self._seconds += monotonic() - began
        self.advance(pairs)

    def cost(self) -> str:
        """What was scored, how fast, and what was cut short."""
        spent = f"{self._pairs:,} pairs"
        if self._seconds:
            rate = self._pairs / self._seconds
            spent += f" in {self._seconds:,.1f} s ({rate:,.1f} a second)"
        if self._cut_queries:
            spent += f"; queries cut short: {len(self._cut_queries):,}"
        if not self._cut_texts:
            return f"{spent}, no text cut short" if not self._cut_queries else spent
        return (
            f"{spent}; {self._cut_texts:,} of {self._pairs:,} texts were longer than the ranker "
            f"reads and cut short, by {self._cut_tokens / self._cut_texts:,.0f} tokens on average"
        )


def _cascade(given: str | None) -> tuple[str, int]:
    """The cheaper ranker and how many hits it keeps; no name without a cascade."""
    if given is None:
        return "", 0
    name, _, keep = given.rpartition(":")
    if not (name and keep.isdecimal() and int(keep)):
        raise typer.BadParameter(f"{given!r} is not RANKER:KEEP, as in small.ranker:100")
    return name, int(keep)


def _pairs(ranking: Ranking, keep: int) -> int:
    """How many pairs are scored for a ranking, by both rankers of a cascade together."""
    hits = len(ranking.hits)
    return hits + keep if 0 < keep < hits else hits


def _cut(rankings: Iterable[Ranking], depth: int | None) -> Iterator[Ranking]:
    return (ranking if depth is None else ranking.top(depth) for ranking in rankings)


def _survey(
    rankings: Iterable[Ranking],
    asked: Mapping[str, Query],
    queries: str,
    depth: int | None,
    keep: int,
) -> tuple[str, int]:
    """What the job is made of and how many pairs it has; a query without text is refused here."""
    from secondlook.errors import MissingQuery

    digest, total = sha256(), 0
    for ranking in rankings:
        if ranking.query_id not in asked:
            raise MissingQuery(ranking.query_id, queries)
        query = asked[ranking.query_id]
        hits = (part for hit in ranking.hits for part in (hit.doc_id, repr(hit.score)))
        digest.update("\x00".join((query.id, query.text, str(query.type), *hits)).encode() + b"\n")
        total += sum(_pairs(cut, keep) for cut in _cut([ranking], depth))
    return digest.hexdigest(), total
