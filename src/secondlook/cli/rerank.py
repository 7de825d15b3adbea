"""Take the second look at a run."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from secondlook.score.ranker import Ranker
    from secondlook.types import Pair, Query, Ranking


class Backend(StrEnum):
    """What runs a ranker."""

    auto = "auto"
    torch = "torch"
    onnx = "onnx"
    openvino = "openvino"


class Precision(StrEnum):
    """In what it is computed."""

    auto = "auto"
    fp32 = "fp32"
    bf16 = "bf16"
    int8 = "int8"


_PAIRS_AT_ONCE = 4096  # enough that pairs of like length meet, little to lose by a kill


def rerank(
    run: Annotated[str, typer.Argument(help="The first look's run.")],
    index: Annotated[Path, typer.Option(help="The index folder that holds the texts.")],
    queries: Annotated[str, typer.Option(help="A file of queries, or irds:NAME.")],
    ranker: Annotated[str, typer.Option(help="A ranker: a folder or a hub id.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The run file to write.")],
    depth: Annotated[
        int | None, typer.Option(help="Re-rank only the best so many hits of a query.", min=1)
    ] = None,
    backend: Annotated[
        Backend, typer.Option(help="What runs it; auto takes the fastest export, else torch.")
    ] = Backend.auto,
    precision: Annotated[
        Precision, typer.Option(help="auto takes what the ranker was exported to, else fp32.")
    ] = Precision.auto,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|local", help="Score on this Ray cluster; local starts one here."
        ),
    ] = None,
) -> None:
    """Score every hit of a run anew with a ranker.

    The new run appears whole at the end. Interrupted, the same command goes on where it stopped.
    With --ray the pairs are scored in parts by workers of one core each, which must see the same
    folders; parts that are done survive the loss of workers and of this program.
    How texts are cut, marked and pooled is the ranker's own affair: there are no flags for it.

    [bold]Example[/bold]

      secondlook rerank bm25.trec --index my.index --queries queries.jsonl --ranker my.ranker
      -o reranked.trec
    """
    from functools import partial

    from secondlook.cli.progress import progress
    from secondlook.data import read_queries, read_run
    from secondlook.data.partial import PartialRun
    from secondlook.model.checkpoint import open_checkpoint
    from secondlook.rank import rerank as look_again
    from secondlook.retrieve import open_index
    from secondlook.scale.rerank import reranker
    from secondlook.score.exports import fingerprint
    from secondlook.score.ranker import Ranker

    asked = {query.id: query for query in read_queries(queries)}
    digest, total = _survey(_cut(read_run(run), depth), asked, queries)
    corpus = open_index(index)
    checkpoint = open_checkpoint(ranker)
    job = {
        "pairs": digest,
        "corpus": corpus.card.fingerprint,
        "weights": fingerprint(checkpoint),
        "encode": checkpoint.settings.encode.model_dump(mode="json"),
        "backend": f"{backend.value} {precision.value}",
    }
    if ray is not None:
        tools = partial(reranker, index.absolute(), _found(ranker), backend.value, precision.value)
        _on_ray(ray, output, job, tools, asked, _cut(read_run(run), depth), total)
        return
    scorer = _Watched(Ranker.load(ranker, backend=backend.value, precision=precision.value))
    made = PartialRun(output, job)
    rankings = _cut(read_run(run), depth)
    before = sum(len(ranking.hits) for ranking in islice(rankings, made.finished))
    with progress("re-ranking", "pairs", total) as advance:
        scorer.advance = advance
        advance(before)
        for batch in _batches(rankings):
            wanted = [asked[ranking.query_id] for ranking in batch]
            made.add(look_again(wanted, batch, corpus, scorer))
    made.finish()
    typer.echo(f"{output}: {total:,} pairs{scorer.truncation()}")


def _found(ranker: str) -> str:
    """A folder by its whole path, for workers that start elsewhere; a hub id as it is."""
    return str(Path(ranker).absolute()) if Path(ranker).is_dir() else ranker


def _on_ray(
    address: str,
    output: Path,
    job: Mapping[str, object],
    tools: Callable[[], Callable[[str], tuple[str, int]]],
    asked: Mapping[str, Query],
    rankings: Iterable[Ranking],
    total: int,
) -> None:
    """The same batches as on one machine, each a part of the job."""
    from itertools import chain

    from secondlook.cli.progress import progress
    from secondlook.data import read_run, write_run
    from secondlook.scale.parts import Parts
    from secondlook.scale.ray_job import run
    from secondlook.scale.rerank import as_work

    parts = Parts(output, job)
    count = parts.give(
        as_work([asked[ranking.query_id] for ranking in batch], batch)
        for batch in _batches(rankings)
    )
    with progress("re-ranking", "pairs", total) as advance:
        run(address, parts.missing(count), tools, advance=advance)
    done = (read_run(path, "trec") for path in parts.results(count))
    write_run(output, chain.from_iterable(done), tag="secondlook")
    parts.remove()
    typer.echo(f"{output}: {total:,} pairs")


class _Watched:
    """The ranker, with what a person wants to know of its work."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker
        self.advance: Callable[[int], None] = lambda _: None
        self._cut_texts, self._cut_tokens, self._pairs = 0, 0, 0

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        scored = self.ranker.scored(pairs)
        self._pairs += len(pairs)
        self._cut_texts += int((scored.cut > 0).sum())
        self._cut_tokens += int(scored.cut.sum())
        self.advance(len(pairs))
        return scored.scores

    def truncation(self) -> str:
        if not self._cut_texts:
            return ", no text cut short"
        return (
            f"; {self._cut_texts:,} of {self._pairs:,} texts were longer than the ranker reads "
            f"and cut short, by {self._cut_tokens / self._cut_texts:,.0f} tokens on average"
        )


def _cut(rankings: Iterable[Ranking], depth: int | None) -> Iterator[Ranking]:
    return (ranking if depth is None else ranking.top(depth) for ranking in rankings)


def _survey(
    rankings: Iterable[Ranking], asked: Mapping[str, Query], queries: str
) -> tuple[str, int]:
    """What the job is made of and how many pairs it has; a query without text is refused here."""
    from secondlook.errors import MissingQuery

    digest, total = sha256(), 0
    for ranking in rankings:
        if ranking.query_id not in asked:
            raise MissingQuery(ranking.query_id, queries)
        query = asked[ranking.query_id]
        names = (query.id, query.text, str(query.type), *(hit.doc_id for hit in ranking.hits))
        digest.update("\x00".join(names).encode() + b"\n")
        total += len(ranking.hits)
    return digest.hexdigest(), total


def _batches(rankings: Iterable[Ranking]) -> Iterator[list[Ranking]]:
    """Whole rankings together, until they make a good number of pairs."""
    batch: list[Ranking] = []
    pairs = 0
    for ranking in rankings:
        batch.append(ranking)
        pairs += len(ranking.hits)
        if pairs >= _PAIRS_AT_ONCE:
            yield batch
            batch, pairs = [], 0
    if batch:
        yield batch
