"""`secondlook index`: index a corpus for first-stage retrieval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import ClusterUrls, CorpusFormat, CorpusSource, Ray, VectorPrecision


def index(
    corpus: CorpusSource,
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder to create.")],
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Search engine: bm25s (default; in this process), opensearch or one of a package.",
        ),
    ] = None,
    corpus_format: CorpusFormat = "auto",
    k1: Annotated[
        float | None, typer.Option(help="BM25 k1, term-frequency saturation; default: 0.9.", min=0)
    ] = None,
    b: Annotated[
        float | None, typer.Option(help="BM25 b, length normalisation; default: 0.4.", min=0, max=1)
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Language of the texts, for stemming and stop words: english (default), german, "
            "…; cjk for Chinese, Japanese and Korean; none for neither.",
        ),
    ] = None,
    url: ClusterUrls = None,
    discover: Annotated[
        bool, typer.Option(help="Discover the other nodes of the cluster, for failover.")
    ] = True,
    name: Annotated[
        str | None, typer.Option(help="Name of the index on the cluster; default: the folder's.")
    ] = None,
    shards: Annotated[int, typer.Option(help="Primary shards on the cluster.", min=1)] = 1,
    replicas: Annotated[int, typer.Option(help="Replicas of each shard.", min=0)] = 0,
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="RANKER",
            help="Encode every document with this bi-encoder, or with a re-ranker made from one, "
            "for vector and hybrid search; an existing INDEX of the same corpus gets them too.",
        ),
    ] = None,
    vector_precision: Annotated[
        VectorPrecision,
        typer.Option(
            "--precision", metavar="NAME", help="Precision of stored vectors: fp32, fp16 or int8."
        ),
    ] = VectorPrecision.fp32,
    states: Annotated[
        bool,
        typer.Option(
            "--states",
            help="With --vectors and a re-ranker that has some separate layers: store what these "
            "make of every token (2 bytes per dimension), so that re-ranking starts above them.",
        ),
    ] = False,
    ray: Ray = None,
    replace: Annotated[bool, typer.Option("--replace", help="Rebuild INDEX if it exists.")] = False,
) -> None:
    """Index a corpus for first-stage retrieval: BM25 and, with --vectors, hybrid search.

    Reads BEIR, MS MARCO, Pyserini JSON, TREC CAR and ir_datasets corpora, also compressed (gz,
    zst). INDEX is a folder; `search`, `retrieve` and `rerank` need nothing else.

    An interrupted command leaves no partial index; run it again (on a cluster, and while vectors
    are made, it resumes).

    With --ray, single-core workers that see the same folders encode parts of the corpus for
    --vectors; finished parts survive the loss of workers and of this program.

    [bold]Examples[/bold]

      secondlook index scifact/corpus.jsonl.gz scifact.index
      secondlook index scifact/corpus.jsonl.gz scifact.index --vectors intfloat/e5-small
      secondlook index scifact/corpus.jsonl.gz scifact.index --vectors my.ranker --states
      secondlook index collection.tsv marco.index --engine opensearch --shards 3 --replicas 1
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.index import build_index

    if engine in (None, "bm25s") and (url or name or shards > 1 or replicas):
        raise typer.BadParameter("--url, --name, --shards and --replicas need --engine opensearch")
    if vectors is None and vector_precision is not VectorPrecision.fp32:
        raise typer.BadParameter("--precision is that of vectors: it needs --vectors")
    built = build_index(
        corpus,
        folder,
        engine=engine,
        corpus_format=corpus_format,
        k1=k1,
        b=b,
        language=language,
        url=url,
        discover=discover,
        name=name,
        shards=shards,
        replicas=replicas,
        vectors=vectors,
        vector_precision=vector_precision.value,
        states=states,
        ray=ray,
        replace=replace,
        progress=Bars(),
    )
    typer.echo(f"{folder}: {built.summary()}")
