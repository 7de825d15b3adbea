"""Fill an engine with a corpus."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import CorpusFormat  # noqa: TC001 - typer reads it

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secondlook.types import Document


class Engine(StrEnum):
    """Where the first look happens."""

    bm25s = "bm25s"
    opensearch = "opensearch"


def index(
    corpus: Annotated[
        str, typer.Argument(help="A file or folder of documents, or irds:NAME of ir_datasets.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="The index folder to make.")],
    engine: Annotated[
        Engine, typer.Option(help="bm25s runs in this process; opensearch on a cluster.")
    ] = Engine.bm25s,
    corpus_format: CorpusFormat = "auto",
    k1: Annotated[float, typer.Option(help="BM25's saturation of term frequency.", min=0)] = 0.9,
    b: Annotated[float, typer.Option(help="BM25's weight of document length.", min=0, max=1)] = 0.4,
    url: Annotated[
        list[str] | None,
        typer.Option(
            help="A node of the cluster, or its load balancer. Default: OPENSEARCH_URL, or "
            "http://localhost:9200."
        ),
    ] = None,
    discover: Annotated[
        bool,
        typer.Option(help="Ask the cluster for its other nodes, for when the named ones fail."),
    ] = True,
    name: Annotated[
        str | None, typer.Option(help="The index's name on the cluster; default: the folder's.")
    ] = None,
    shards: Annotated[int, typer.Option(help="Primary shards on the cluster.", min=1)] = 1,
    replicas: Annotated[int, typer.Option(help="Copies of each shard.", min=0)] = 0,
    replace: Annotated[
        bool, typer.Option("--replace", help="Build anew what INDEX already holds.")
    ] = False,
) -> None:
    """Index a corpus for the first look.

    BEIR, MS MARCO, Pyserini's JSON, TREC CAR and ir_datasets corpora are read as they are, gz and
    zst included.
    INDEX is a folder; `search`, `retrieve` and `rerank` need nothing else.

    An interrupted run leaves no half index; run it again (on a cluster it goes on where it was).

    [bold]Examples[/bold]

      secondlook index scifact/corpus.jsonl.gz scifact.index
      secondlook index collection.tsv marco.index --engine opensearch --shards 3 --replicas 1
    """
    from secondlook.cli.progress import track
    from secondlook.data import read_corpus
    from secondlook.data.formats import corpus_file
    from secondlook.errors import DuplicateId, IndexProblem
    from secondlook.retrieve.folder import CARD, Index

    if (folder / CARD).exists() and not replace:
        raise IndexProblem(f"{folder} is an index already; build it anew with --replace")

    class Documents:  # an engine may have to read them a second time
        def __iter__(self) -> Iterator[Document]:
            return track(read_corpus(corpus, corpus_format), "indexing", "documents")

    built: Index
    match engine:
        case Engine.bm25s:
            from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings

            try:
                built = Bm25Index.build(folder, Documents(), Bm25Settings(k1=k1, b=b))
            except DuplicateId as twice:
                path = corpus_file(corpus, corpus_format)
                raise (twice.in_file(path) if path else twice) from twice
        case Engine.opensearch:
            from secondlook.retrieve.access import Access
            from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings

            named = url or Access.from_environment(os.environ).urls
            settings = OpenSearchSettings(
                urls=tuple(named or ["http://localhost:9200"]),
                discover=discover,
                name=name or folder.name,
                shards=shards,
                replicas=replicas,
                k1=k1,
                b=b,
            )
            built = OpenSearchIndex.build(folder, Documents(), settings)
    typer.echo(f"{folder}: {built.card.documents:,} documents, {built.card.engine}")
