"""`secondlook expand`: document expansion by predicted queries (doc2query)."""

# ruff: noqa: TC001 - typer reads the annotations
from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import (
    CorpusFormat,
    CorpusSource,
    Device,
    QueriesSource,
    Ray,
    Replace,
)
from secondlook.cli.default_verb import ITSELF, DefaultVerb
from secondlook.cli.help_layout import VerbApp

app = VerbApp(
    name="expand",
    cls=DefaultVerb,
    help="Expand documents with predicted queries (doc2query): "
    "[b]expand CORPUS --expander E -o EXPANDED[/b]; [b]expand train[/b] trains E.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_AT_ONCE = 8  # documents: some dozens of rows of the decoder


@app.command(ITSELF)
def expand(
    corpus: CorpusSource,
    expander: Annotated[
        str, typer.Option(help="Model from `expand train`: a folder or a Hugging Face model id.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Expanded corpus to write: .jsonl, .jsonl.gz or .zst."),
    ],
    count: Annotated[int, typer.Option("-n", help="Queries per document.", min=1)] = 10,
    top_k: Annotated[
        int,
        typer.Option(help="Top-k sampling: each token is drawn from the k most probable.", min=1),
    ] = 10,
    ranker: Annotated[
        str | None, typer.Option(help="Filter the queries with this re-ranker (Doc2Query--).")
    ] = None,
    keep: Annotated[
        float,
        typer.Option(help="With --ranker: share of all queries to keep, best first.", min=0, max=1),
    ] = 0.3,
    corpus_format: CorpusFormat = "auto",
    seed: Annotated[int, typer.Option(help="Random seed of the sampling.")] = 1,
    device: Device = None,
    ray: Ray = None,
    replace: Replace = False,
) -> None:
    """Expand each document with sampled queries that it may answer.

    The new corpus has `queries` beside each text: the search engine indexes both, while users and
    re-rankers see the text alone. The file appears when it is complete. If interrupted, the same
    command resumes. With --ray, the work is divided as in `weigh`.

    [bold]Examples[/bold]

      secondlook expand corpus.jsonl.gz --expander my.expander -n 10 -o expanded.jsonl.gz
      secondlook expand corpus.jsonl.gz --expander my.expander --ranker my.ranker --keep 0.3
          -o expanded.jsonl.gz
    """
    from secondlook.cli.progress import progress, track
    from secondlook.data import Fingerprint, read_corpus
    from secondlook.data.durable import refuse_to_overwrite
    from secondlook.model.checkpoint import files_fingerprint, open_checkpoint
    from secondlook.model.doc2query import locate_expander
    from secondlook.retrieve.expand import best
    from secondlook.scale.documents import expanding, made

    refuse_to_overwrite(output, replace=replace)
    asker = locate_expander(expander)
    judge = None if ranker is None else open_checkpoint(ranker).folder
    documents = track(read_corpus(corpus, corpus_format), "reading", "documents")
    fingerprint = Fingerprint.of(documents)
    job = {
        "corpus": fingerprint.digest(),
        "expander": files_fingerprint(asker),
        "ranker": None if judge is None else files_fingerprint(judge),
        "draw": [count, top_k, seed],
    }
    scorer = None if judge is None else str(judge.absolute())
    tools = partial(expanding, str(asker.absolute()), scorer, count, top_k, seed, device)
    documents = read_corpus(corpus, corpus_format)
    with progress("expanding", "documents", fingerprint.documents) as advance:
        rows = made(output, job, tools, documents, _AT_ONCE, advance=advance, ray=ray)
    rows.finish(best(rows.rows, keep))
    typer.echo(f"{output}: {fingerprint.documents:,} documents, {count} queries sampled for each")


@app.command()
def train(
    corpus: CorpusSource,
    queries: QueriesSource,
    qrels: Annotated[str, typer.Argument(help="Relevance judgments.")],
    base: Annotated[
        str,
        typer.Option(
            help="Base: a seq2seq model (T5, BART) or an encoder; a folder or a Hugging Face id."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder of the model.")],
    corpus_format: CorpusFormat = "auto",
    epochs: Annotated[float, typer.Option(help="Training epochs.")] = 3.0,
    max_steps: Annotated[
        int | None, typer.Option(help="Training steps, instead of epochs.", min=1)
    ] = None,
    batch: Annotated[int, typer.Option(help="Batch size: queries per step.", min=1)] = 16,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 1e-4,
    max_length: Annotated[int, typer.Option(help="Maximum tokens of a passage.", min=16)] = 256,
    max_query_length: Annotated[int, typer.Option(help="Maximum tokens of a query.", min=4)] = 32,
    seed: Annotated[int, typer.Option(help="Random seed of data order and dropout.")] = 1,
    device: Device = None,
) -> None:
    """Train a model that predicts the queries a passage answers.

    Any seq2seq model of transformers is fine-tuned as it is; an encoder is used as both encoder and
    decoder of a new one.

    If interrupted, the same command resumes from the last saved step.

    [bold]Example[/bold]

      secondlook expand train corpus.jsonl.gz queries.jsonl.gz qrels/train.tsv
          --base google-t5/t5-base -o my.expander
    """
    from hashlib import sha256

    from secondlook.cli.progress import track
    from secondlook.cli.training_bar import watched
    from secondlook.data import read_corpus, read_qrels, read_queries
    from secondlook.model.checkpoint import files_fingerprint, locate, refuse_to_replace
    from secondlook.model.doc2query import save_expander
    from secondlook.retrieve.expand import text_of
    from secondlook.train.course import claimed
    from secondlook.train.doc2query import answered, train_expander
    from secondlook.train.phase import Place
    from secondlook.train.settings import ExpanderTraining

    refuse_to_replace(output)
    settings = ExpanderTraining(
        epochs=epochs,
        max_steps=max_steps,
        batch=batch,
        learning_rate=learning_rate,
        max_length=max_length,
        max_query_length=max_query_length,
    )
    judged = answered(read_queries(queries), read_qrels(qrels))
    wanted = {doc_id for doc_id, _ in judged}
    documents = track(read_corpus(corpus, corpus_format), "reading", "documents")
    texts = {document.id: text_of(document) for document in documents if document.id in wanted}
    pairs = [pair for pair in judged if pair[0] in texts]
    job = {
        "settings": settings.model_dump(),
        "seed": seed,
        "base": files_fingerprint(locate(base)),
        "data": sha256(json.dumps([texts, pairs], sort_keys=True).encode()).hexdigest(),
    }
    with watched() as watch, claimed(output, job) as folder:
        model = train_expander(settings, base, pairs, texts, Place(folder, seed, device, watch))
        save_expander(model, output)
    typer.echo(f"{output}: {model.settings.lineage.phases[-1].figures}")
