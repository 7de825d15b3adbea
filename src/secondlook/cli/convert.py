"""`secondlook convert`: from one of the field's formats to another."""

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
    kind: Annotated[Kind, typer.Argument(help="What the file holds.")],
    source: Annotated[
        str,
        typer.Argument(help="A file (.gz, .zst too), a BEIR folder, or irds:ID of ir_datasets."),
    ],
    target: Annotated[Path, typer.Argument(help="The file to write; .gz and .zst compress it.")],
    from_: Annotated[
        str,
        typer.Option(
            "--from", "--format", help="beir, msmarco, trec, car or irds; auto looks into the file."
        ),
    ] = "auto",
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="beir, msmarco or trec; auto goes by the target's name: corpus .jsonl beir, .tsv "
            "msmarco; queries .jsonl beir, .tsv msmarco, .xml trec; qrels .tsv beir, .txt .qrels "
            ".trec trec; run .trec .run .txt trec, .tsv msmarco.",
        ),
    ] = "auto",
) -> None:
    """Convert a corpus, queries, judgments or a run from one format to another.

    What the target's format has no place for is refused, never dropped.
    The target appears when it is complete, or not at all.

    [bold]Examples[/bold]

      secondlook convert run run.dev.tsv run.dev.trec.gz
      secondlook convert corpus irds:beir/scifact corpus.jsonl.zst
    """
    from secondlook import data
    from secondlook.cli.progress import track

    if kind is Kind.corpus:
        data.write_corpus(
            target, track(data.read_corpus(source, from_), "converting", "documents"), to
        )
    elif kind is Kind.queries:
        data.write_queries(
            target, track(data.read_queries(source, from_), "converting", "queries"), to
        )
    elif kind is Kind.qrels:
        data.write_qrels(target, data.read_qrels(source, from_), to)
    else:
        data.write_run(target, track(data.read_run(source, from_), "converting", "rankings"), to)
