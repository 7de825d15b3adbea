"""Make a ranker from a bi-encoder, at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def warm(
    base: Annotated[str, typer.Argument(help="The bi-encoder: a folder or a hub id.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the ranker goes.", show_default=False)
    ],
    separate_layers: Annotated[
        int,
        typer.Option(
            min=0,
            help="In this many lowest layers query and document do not see each other, so that "
            "documents seen before are scored faster.",
        ),
    ] = 0,
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Read long documents in windows of so many words; else cut them."),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(min=1, help="Words from window to window; half of one if not given."),
    ] = None,
    query_prompt: Annotated[
        str | None, typer.Option(help="Before every query, where BASE does not say it itself.")
    ] = None,
    document_prompt: Annotated[
        str | None, typer.Option(help="Before every document, likewise.")
    ] = None,
) -> None:
    """Make a ranker from a bi-encoder, without training.

    It ranks as the bi-encoder does from the first moment, and learns from your judgments to look
    at query and document together: the best start when judgments are few.

    [bold]Examples[/bold]

      secondlook warm sentence-transformers/all-MiniLM-L6-v2 -o ranker

      secondlook warm ./e5 -o ranker --query-prompt "query: " --document-prompt "passage: "

      secondlook warm ./e5 -o ranker --window 150
    """
    from secondlook.model.network import new_warm, save_model

    given = {"query_prompt": query_prompt, "document_prompt": document_prompt}
    encode: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    if window is not None:
        encode["windows"] = {"length": window, "stride": stride or max(1, window // 2)}
    model = new_warm(base, separate_layers=separate_layers, encode=encode)
    save_model(model, output)
    settings = model.settings.encode
    assert model.settings.warm is not None
    typer.echo(
        f"{output}: begins as {model.settings.lineage.base}, {model.settings.warm.pooling} "
        f"pooling, {settings.max_length} tokens, prompts {settings.query_prompt!r} and "
        f"{settings.document_prompt!r}"
    )
