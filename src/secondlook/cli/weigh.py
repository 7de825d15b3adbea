"""`secondlook weigh`: term weighting for first-stage retrieval (DeepCT)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli import arguments as shared  # noqa: TC001 - typer reads them
from secondlook.terminal.default_verb import ITSELF, DefaultVerb
from secondlook.terminal.help_layout import VerbApp

app = VerbApp(
    name="weigh",
    cls=DefaultVerb,
    help="Weight terms for first-stage retrieval (DeepCT): "
    "[b]weigh CORPUS --weigher W -o WEIGHED[/b]; [b]weigh train[/b] trains W.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


class Shape(StrEnum):
    """From a predicted weight to a term frequency."""

    root = "root"
    linear = "linear"


@app.command(ITSELF)
def weigh(
    corpus: shared.CorpusSource,
    weigher: Annotated[
        str, typer.Option(help="Model from `weigh train`: a folder or a Hugging Face model id.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Weighted corpus to write: .jsonl, .jsonl.gz or .zst."),
    ],
    corpus_format: shared.CorpusFormat = "auto",
    scale: Annotated[float, typer.Option(help="Term frequency of a term of weight 1.")] = 100.0,
    shape: Annotated[
        Shape,
        typer.Option(help="Term frequency: scale · √weight (root) or scale · weight (linear)."),
    ] = Shape.root,
    device: shared.Device = None,
    ray: shared.Ray = None,
    replace: shared.Replace = False,
) -> None:
    """Predict term weights for a corpus, to be indexed as term frequencies.

    The new corpus has `weights` beside each text: the search engine indexes the weights, while
    users and re-rankers see the text. The file appears when it is complete. If interrupted, the
    same command resumes. BM25's k1 depends on --scale: tune it on held-out queries.

    With --ray, single-core workers that see the same folders process parts of the corpus; finished
    parts survive the loss of workers and of this program.

    [bold]Examples[/bold]

      secondlook weigh corpus.jsonl.gz --weigher my.weigher -o weighed.jsonl.gz
      secondlook index weighed.jsonl.gz weighed.index --k1 30 --b 0.4
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.weigh import weigh as workflow

    result = workflow(
        corpus,
        weigher,
        output,
        corpus_format=corpus_format,
        scale=scale,
        shape=shape.value,
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
    base: Annotated[str, typer.Option(help="Base encoder: a folder or a Hugging Face model id.")],
    output: shared.ModelFolder,
    corpus_format: shared.CorpusFormat = "auto",
    epochs: shared.Epochs = 3.0,
    max_steps: shared.MaxSteps = None,
    batch: Annotated[int, typer.Option(help="Batch size: passages per step.", min=1)] = 16,
    learning_rate: shared.LearningRate = 2e-5,
    max_length: Annotated[
        int, typer.Option(help="Maximum tokens of a passage read at once.", min=16)
    ] = 256,
    language: Annotated[
        str, typer.Option(help="Language of the index to be made.", metavar="NAME")
    ] = "english",
    seed: Annotated[
        int, typer.Option(help="Random seed of data order, dropout and the new layer.")
    ] = 1,
    device: shared.Device = None,
    report_to: shared.ReportTo = None,
) -> None:
    """Train a term-weighting model (DeepCT).

    The target weight of a term is its query term recall: the share of the passage's relevant
    queries that contain it, compared by stem as in the index. Passages without a relevant query
    are skipped.

    If interrupted, the same command resumes from the last saved step.

    [bold]Example[/bold]

      secondlook weigh train corpus.jsonl.gz queries.jsonl.gz qrels/train.tsv
          --base sentence-transformers/all-MiniLM-L6-v2 -o my.weigher
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.weigh import train_weigher

    result = train_weigher(
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
        language=language,
        seed=seed,
        device=device,
        report_to=report_to or (),
        progress=Bars(),
    )
    typer.echo(result.summary())
