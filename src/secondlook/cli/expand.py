"""`secondlook expand`: document expansion by predicted queries (doc2query)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli import arguments as shared  # noqa: TC001 - typer reads them
from secondlook.terminal.default_verb import ITSELF, DefaultVerb
from secondlook.terminal.help_layout import VerbApp

app = VerbApp(
    name="expand",
    cls=DefaultVerb,
    help="Expand documents with predicted queries (doc2query): "
    "[b]expand CORPUS --expander E -o EXPANDED[/b]; [b]expand train[/b] trains E.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command(ITSELF)
def expand(
    corpus: shared.CorpusSource,
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
        float | None, typer.Option(help="With --ranker: share kept; default: 0.3.", min=0, max=1)
    ] = None,
    corpus_format: shared.CorpusFormat = "auto",
    seed: Annotated[int, typer.Option(help="Random seed of the sampling.")] = 1,
    device: shared.Device = None,
    ray: shared.Ray = None,
    replace: shared.Replace = False,
) -> None:
    """Expand each document with sampled queries that it may answer.

    The new corpus has `queries` beside each text: the search engine indexes both, while users and
    re-rankers see the text alone. Earlier queries stay; a corpus with term weights is refused
    (expand first, then `weigh`). The file appears when it is complete. If interrupted, the same
    command resumes. With --ray, the work is divided as in `weigh`.

    [bold]Examples[/bold]

      secondlook expand corpus.jsonl.gz --expander my.expander -n 10 -o expanded.jsonl.gz
      secondlook expand corpus.jsonl.gz --expander my.expander --ranker my.ranker --keep 0.3
          -o expanded.jsonl.gz
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.expand import expand as workflow

    result = workflow(
        corpus,
        expander,
        output,
        count=count,
        top_k=top_k,
        ranker=ranker,
        keep=keep,
        corpus_format=corpus_format,
        seed=seed,
        device=device,
        ray=ray,
        replace=replace,
        progress=Bars(),
    )
    typer.echo(result.summary())


@app.command()
def train(
    corpus: shared.CorpusSource,
    queries: shared.QueriesSource,
    qrels: shared.TrainingJudgments,
    base: Annotated[
        str,
        typer.Option(
            help="Base: a seq2seq model (T5, BART) or an encoder; a folder or a Hugging Face id."
        ),
    ],
    output: shared.ModelFolder,
    corpus_format: shared.CorpusFormat = "auto",
    epochs: shared.Epochs = 3.0,
    max_steps: shared.MaxSteps = None,
    batch: Annotated[int, typer.Option(help="Batch size: queries per step.", min=1)] = 16,
    learning_rate: shared.LearningRate = 1e-4,
    max_length: Annotated[int, typer.Option(help="Maximum tokens of a passage.", min=16)] = 256,
    max_query_length: Annotated[int, typer.Option(help="Maximum tokens of a query.", min=4)] = 32,
    seed: Annotated[int, typer.Option(help="Random seed of data order and dropout.")] = 1,
    device: shared.Device = None,
    report_to: shared.ReportTo = None,
) -> None:
    """Train a model that predicts the queries a passage answers.

    Any seq2seq model of transformers is fine-tuned as it is; an encoder is used as both encoder and
    decoder of a new one.

    If interrupted, the same command resumes from the last saved step.

    [bold]Example[/bold]

      secondlook expand train corpus.jsonl.gz queries.jsonl.gz qrels/train.tsv
          --base google-t5/t5-base -o my.expander
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.expand import train_expander

    result = train_expander(
        corpus,
        queries,
        qrels,
        base,
        output,
        corpus_format=corpus_format,
        epochs=epochs,
        max_steps=max_steps,
        batch=batch,
        learning_rate=learning_rate,
        max_length=max_length,
        max_query_length=max_query_length,
        seed=seed,
        device=device,
        report_to=report_to or (),
        progress=Bars(),
    )
    typer.echo(result.summary())
