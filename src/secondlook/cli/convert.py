"""`secondlook convert`: convert between file formats."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Kind(StrEnum):
    """What a file can hold."""

    corpus = "corpus"
    queries = "queries"
    qrels = "qrels"
    run = "run"


def convert(
    kind: Annotated[Kind, typer.Argument(help="Content of the file.")],
    source: Annotated[
        str,
        typer.Argument(
            help="Source: a file (also .gz, .zst), a BEIR folder, or irds:ID of ir_datasets."
        ),
    ],
    target: Annotated[Path, typer.Argument(help="File to write; .gz and .zst compress it.")],
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            "--format",
            help="Source format: beir, msmarco, trec, car or irds; auto detects it.",
        ),
    ] = "auto",
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="Target format: beir, msmarco or trec; auto goes by the target's name: corpus "
            ".jsonl beir, .tsv msmarco; queries .jsonl beir, .tsv msmarco, .xml trec; qrels .tsv "
            "beir, .txt .qrels .trec trec; run .trec .run .txt trec, .tsv msmarco.",
        ),
    ] = "auto",
) -> None:
    """Convert a corpus, queries, judgments or a run from one format to another.

    A title, query type, term weight or expansion query that the target format cannot hold is an
    error. Other metadata of a source is not converted, nor are scores to an MS MARCO run, which
    holds ranks only. The target file appears when it is complete, or not at all.

    [bold]Examples[/bold]

      secondlook convert run run.dev.tsv run.dev.trec.gz
      secondlook convert corpus irds:beir/scifact corpus.jsonl.zst
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.convert import convert as convert_file

    convert_file(kind.value, source, target, source_format=from_, target_format=to, progress=Bars())
