"""`secondlook weigh`: term weighting for first-stage retrieval (DeepCT)."""

# ruff: noqa: TC001 - typer reads the annotations
from __future__ import annotations

import json
from enum import StrEnum
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
    name="weigh",
    cls=DefaultVerb,
    help="Weight terms for first-stage retrieval (DeepCT): "
    "[b]weigh CORPUS --weigher W -o WEIGHED[/b]; [b]weigh train[/b] trains W.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_AT_ONCE = 128  # enough that documents of like length meet, little to lose by a kill


class Shape(StrEnum):
    """From a predicted weight to a term frequency."""

    root = "root"
    linear = "linear"


@app.command(ITSELF)
def weigh(
    corpus: CorpusSource,
    weigher: Annotated[
        str, typer.Option(help="Model from `weigh train`: a folder or a Hugging Face model id.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Weighted corpus to write: .jsonl, .jsonl.gz or .zst."),
    ],
    corpus_format: CorpusFormat = "auto",
    scale: Annotated[float, typer.Option(help="Term frequency of a term of weight 1.")] = 100.0,
    shape: Annotated[
        Shape,
        typer.Option(help="Term frequency: scale · √weight (root) or scale · weight (linear)."),
    ] = Shape.root,
    device: Device = None,
    ray: Ray = None,
    replace: Replace = False,
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
    from secondlook.cli.progress import progress, track
    from secondlook.data import Fingerprint, read_corpus
    from secondlook.data.durable import refuse_to_overwrite
    from secondlook.model.checkpoint import files_fingerprint, open_trained
    from secondlook.model.deepct import CARD, WeigherSettings
    from secondlook.retrieve.weigh import FrequencySettings
    from secondlook.scale.documents import made, weighing
    from secondlook.score.word_weights import precision_on

    refuse_to_overwrite(output, replace=replace)
    folder, _ = open_trained(weigher, "weigh", CARD, WeigherSettings)
    settings = FrequencySettings(scale=scale, shape=shape.value)
    documents = track(read_corpus(corpus, corpus_format), "reading", "documents")
    fingerprint = Fingerprint.of(documents)
    job = {
        "corpus": fingerprint.digest(),
        "weigher": files_fingerprint(folder),
        "frequency": settings.model_dump(),
        "precision": precision_on(device),
    }
    tools = partial(weighing, str(folder.absolute()), settings, device)
    documents = read_corpus(corpus, corpus_format)
    with progress("weighing", "documents", fingerprint.documents) as advance:
        rows = made(output, job, tools, documents, _AT_ONCE, advance=advance, ray=ray)
    rows.finish(rows.rows())
    typer.echo(f"{output}: {fingerprint.documents:,} documents weighted")


@app.command()
def train(
    corpus: CorpusSource,
    queries: QueriesSource,
    qrels: Annotated[str, typer.Argument(help="Relevance judgments.")],
    base: Annotated[str, typer.Option(help="Base encoder: a folder or a Hugging Face model id.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder of the model.")],
    corpus_format: CorpusFormat = "auto",
    epochs: Annotated[float, typer.Option(help="Training epochs.")] = 3.0,
    max_steps: Annotated[
        int | None, typer.Option(help="Training steps, instead of epochs.", min=1)
    ] = None,
    batch: Annotated[int, typer.Option(help="Batch size: passages per step.", min=1)] = 16,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 2e-5,
    max_length: Annotated[
        int, typer.Option(help="Maximum tokens of a passage read at once.", min=16)
    ] = 256,
    seed: Annotated[
        int, typer.Option(help="Random seed of data order, dropout and the new layer.")
    ] = 1,
    device: Device = None,
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
    from hashlib import sha256

    from secondlook.cli.progress import track
    from secondlook.cli.training_bar import watched
    from secondlook.data import Fingerprint, read_corpus, read_qrels, read_queries
    from secondlook.model.checkpoint import files_fingerprint, locate, refuse_to_replace
    from secondlook.model.deepct import save_weigher
    from secondlook.train.course import claimed
    from secondlook.train.deepct import recalls, train_weigher
    from secondlook.train.phase import Place
    from secondlook.train.settings import WeigherTraining

    refuse_to_replace(output)
    settings = WeigherTraining(
        epochs=epochs,
        max_steps=max_steps,
        batch=batch,
        learning_rate=learning_rate,
        max_length=max_length,
    )
    targets = recalls(read_queries(queries), read_qrels(qrels))
    documents = track(read_corpus(corpus, corpus_format), "reading", "documents")
    passages = [document for document in documents if document.id in targets]
    job = {
        "settings": settings.model_dump(),
        "seed": seed,
        "base": files_fingerprint(locate(base)),
        "passages": Fingerprint.of(passages).digest(),
        "targets": sha256(json.dumps(targets, sort_keys=True).encode()).hexdigest(),
    }
    with watched() as watch, claimed(output, job) as folder:
        place = Place(folder, seed, device, watch)
        model = train_weigher(settings, base, passages, targets, place)
        save_weigher(model, output)
    typer.echo(f"{output}: {model.settings.lineage.phases[-1].figures}")
