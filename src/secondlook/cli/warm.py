"""Make a ranker from a bi-encoder, at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from secondlook.cli.arguments import ScaleCorpus  # noqa: TC001 - typer reads it


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
    corpus: ScaleCorpus = None,
) -> None:
    """Make a ranker from a bi-encoder, without training.

    It ranks as the bi-encoder does from the first moment, and learns from your judgments to look
    at query and document together: the best start when judgments are few. Its scores run from 0 to
    1 by a scale that tells related from unrelated texts; --corpus fits it to yours.

    [bold]Examples[/bold]

      secondlook warm sentence-transformers/all-MiniLM-L6-v2 -o ranker
      secondlook warm ./e5 -o ranker --query-prompt "query: " --document-prompt "passage: "
      secondlook warm ./e5 -o ranker --window 150
    """
    from secondlook.cli.calibrate import told_scale
    from secondlook.cli.documents import scale_pairs
    from secondlook.score.warm import make_warm

    given = {"query_prompt": query_prompt, "document_prompt": document_prompt}
    encode: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    if window is not None:
        encode["windows"] = {"length": window, "stride": stride or max(1, window // 2)}
    settings = make_warm(
        base, output, separate_layers=separate_layers, encode=encode, pairs=scale_pairs(corpus)
    )
    assert settings.warm is not None
    assert settings.calibration is not None
    assert settings.calibration.fitted_on is not None
    typer.echo(
        f"{output}: begins as {settings.lineage.base}, {settings.warm.pooling} pooling, "
        f"{settings.encode.max_length} tokens, prompts {settings.encode.query_prompt!r} and "
        f"{settings.encode.document_prompt!r}\n{told_scale(settings.calibration.fitted_on)}"
    )
