"""`secondlook warm`: a re-ranker from a bi-encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from secondlook.cli.arguments import Replace, ScaleCorpus  # noqa: TC001 - typer reads them


def warm(
    base: Annotated[str, typer.Argument(help="Bi-encoder: a folder or a Hugging Face model id.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Output folder of the re-ranker.", show_default=False),
    ],
    separate_layers: Annotated[
        str,
        typer.Option(
            "--separate-layers",
            "--separate",
            metavar="N|all",
            help="Number of lowest layers without attention between query and document; their "
            "document states can be cached, so known documents are scored faster. all: documents "
            "are scored by vectors that `index --vectors` stores.",
        ),
    ] = "0",
    window: Annotated[
        int | None,
        typer.Option(
            min=1, help="Read long documents in windows of N words; default: truncate them."
        ),
    ] = None,
    stride: Annotated[
        int | None, typer.Option(min=1, help="Words between window starts; default: half a window.")
    ] = None,
    query_prompt: Annotated[
        str | None,
        typer.Option(help="Text put before every query; default: as configured in BASE."),
    ] = None,
    document_prompt: Annotated[
        str | None,
        typer.Option(help="Text put before every document; default: as configured in BASE."),
    ] = None,
    corpus: ScaleCorpus = None,
    replace: Replace = False,
) -> None:
    """Create a re-ranker from a bi-encoder, without training.

    It ranks exactly as the bi-encoder does, and fine-tuning adds attention between query and
    document: the best start with few judgments. Its scores run from 0 (unrelated texts) to 1
    (related texts); --corpus fits that scale to your texts.

    [bold]Examples[/bold]

      secondlook warm sentence-transformers/all-MiniLM-L6-v2 -o ranker
      secondlook warm ./e5 -o ranker --query-prompt "query: " --document-prompt "passage: "
      secondlook warm ./e5 -o ranker --window 150
      secondlook warm ./e5 -o ranker --separate all
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.warm import warm as workflow

    result = workflow(
        base,
        output,
        separate_layers=_layers(separate_layers),
        window=window,
        stride=stride,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        corpus=corpus,
        replace=replace,
        progress=Bars(),
    )
    typer.echo(result.summary())


def _layers(given: str) -> int | Literal["all"]:
    if given == "all":
        return "all"
    if not given.isdecimal():
        raise typer.BadParameter(f"{given!r} is neither a number of layers nor all")
    return int(given)
