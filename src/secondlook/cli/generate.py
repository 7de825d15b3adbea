"""`secondlook generate`: training queries generated from a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import CorpusSource, Device  # noqa: TC001 - typer reads them


def generate(
    corpus: CorpusSource,
    index: Annotated[Path, typer.Option(help="Index folder of this corpus.")],
    expander: Annotated[
        str, typer.Option(help="Query generator of `expand train`, or a Hugging Face seq2seq id.")
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

    For a corpus without judgments or clicks. The index is searched as `search` does it. OUTPUT has
    BEIR's layout; its generated.jsonl lists all queries with the rank of their passage, including
    those that were dropped. Queries and judgments of people are not overwritten. Every re-ranker
    trained on it records that its labels are generated. If interrupted, the same command resumes.

    [bold]Example[/bold]

      secondlook generate corpus.jsonl --index my.index --expander my.expander -o generated
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.generate import generate as workflow

    result = workflow(
        corpus,
        index,
        expander,
        output,
        passages=passages,
        count=count,
        within=within,
        ranker=ranker,
        seed=seed,
        device=device,
        progress=Bars(),
    )
    typer.echo(result.summary())
