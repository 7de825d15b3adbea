"""Make queries and judgments of a corpus alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import CorpusSource, Device  # noqa: TC001 - typer reads them

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from secondlook.types import Document, Query, Ranking

_AT_ONCE = 8  # passages


def generate(
    corpus: CorpusSource,
    index: Annotated[Path, typer.Option(help="The index folder of this corpus.")],
    expander: Annotated[
        str, typer.Option(help="Who asks: what `expand train` made, or a seq2seq model's hub id.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for queries and judgments.")
    ],
    passages: Annotated[int, typer.Option(help="Asked of so many, drawn at random.", min=1)] = 1000,
    count: Annotated[int, typer.Option("-n", help="Queries for each of them.", min=1)] = 3,
    within: Annotated[
        int, typer.Option(help="Kept is what brings its passage back so high.", min=1)
    ] = 10,
    ranker: Annotated[
        str | None, typer.Option(help="Search with the second look too, at the best 100 hits.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 1,
    device: Device = None,
) -> None:
    """Make queries of passages, and keep those that find their passage again.

    For a corpus without judgments and clicks. OUTPUT is in BEIR's layout; asked.jsonl in it lists
    every query with the rank of its passage, also those that were left out. Every ranker that
    learns from it says that its labels are generated. Interrupted, the same command goes on.

    [bold]Example[/bold]

      secondlook generate corpus.jsonl --index my.index --expander my.expander -o generated
    """
    from secondlook.cli.progress import busy, progress, track
    from secondlook.data import read_corpus
    from secondlook.data.lines import lines
    from secondlook.data.origin import write_made
    from secondlook.data.partial import PartialLines
    from secondlook.errors import SecondlookError
    from secondlook.model.checkpoint import base_name, files_fingerprint, locate
    from secondlook.model.doc2query import load_expander
    from secondlook.retrieve.expand import text_of
    from secondlook.score.predicted_queries import PredictedQueries
    from secondlook.train.generate import Asked, brought_back, round_trip, sampled

    with busy("loading the models"):
        search, corpus_fingerprint = _search(index, ranker, within)
        ask = PredictedQueries(load_expander(expander), count, top_k=10, seed=seed, device=device)
    chosen = sampled(track(read_corpus(corpus), "reading", "documents"), passages, seed)
    output.mkdir(parents=True, exist_ok=True)
    listed = output / "asked.jsonl"
    job = {
        "index": corpus_fingerprint,
        "passages": [one.id for one in chosen],
        "models": [files_fingerprint(locate(one)) for one in (expander, ranker) if one],
        "draw": [count, within, seed],
    }
    made = PartialLines(listed, job)

    def rows(some: list[Document]) -> list[str]:
        queries = ask([(one.id, text_of(one)) for one in some])
        return [one.line for one in round_trip(some, queries, search)]

    with progress("asking", "passages", len(chosen)) as advance:
        made.fill(chosen, rows, _AT_ONCE, advance)
    made.finish(made.rows())
    everything = [Asked.read(line) for _, line in lines(listed, may_be_empty=True)]
    queries, qrels = brought_back(everything)
    if not queries:
        raise SecondlookError(
            f"none of {len(everything):,} queries brought its passage back; {listed} lists them: "
            "raise --within, or take an expander that asks better"
        )
    looks = "BM25" if ranker is None else f"BM25 and {base_name(ranker)}"
    origin = (
        f"generated queries: {len(queries):,} of {len(everything):,} that {base_name(expander)} "
        f"asked, which {looks} brought back within {within}"
    )
    write_made(output, queries, qrels, origin)
    typer.echo(f"{output}: {origin}")


def _search(
    index: Path, ranker: str | None, within: int
) -> tuple[Callable[[Sequence[Query]], list[Ranking]], str]:
    """Queries in, the best hits of one look or of both out; and the corpus they are from."""
    from functools import partial

    from secondlook.rank import Searcher
    from secondlook.retrieve import open_index
    from secondlook.score.ranker import Ranker

    engine = open_index(index)
    if ranker is None:
        return partial(engine.retrieve, k=within), engine.card.fingerprint
    second = Ranker.load(ranker)
    searcher = Searcher(engine, engine, second, second.fusion)
    return partial(searcher.search, k=within), engine.card.fingerprint
