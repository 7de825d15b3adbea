"""`secondlook generate`: training queries generated from a corpus."""

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
    index: Annotated[Path, typer.Option(help="Index folder of this corpus.")],
    expander: Annotated[
        str,
        typer.Option(
            help="Query generator: from `expand train`, or a seq2seq model on Hugging Face."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output folder for queries and judgments.")
    ],
    passages: Annotated[
        int, typer.Option(help="Passages to generate from, drawn at random.", min=1)
    ] = 1000,
    count: Annotated[int, typer.Option("-n", help="Queries per passage.", min=1)] = 3,
    within: Annotated[
        int, typer.Option(help="Keep a query only if its passage ranks in the top N.", min=1)
    ] = 10,
    ranker: Annotated[
        str | None,
        typer.Option(help="Check the ranks with this re-ranker, on the top 100 candidates."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the sampling.")] = 1,
    device: Device = None,
) -> None:
    """Generate training queries from a corpus, and keep those that retrieve their passage.

    For a corpus without judgments or clicks. OUTPUT has BEIR's layout; asked.jsonl in it lists all
    queries with the rank of their passage, including those that were dropped. Every re-ranker
    trained on it records that its labels are generated. If interrupted, the same command resumes.

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
            f"none of {len(everything):,} generated queries retrieved its passage in the top "
            f"{within}; {listed} lists them: raise --within, or use a better --expander"
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
