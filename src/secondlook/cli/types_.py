"""`secondlook types`: train, measure and use the classifier of query types."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from secondlook.terminal.help_layout import VerbApp

app = VerbApp(
    name="types",
    help="Classify queries by the type of answer they ask for.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Labelled = Annotated[
    list[Path],
    typer.Argument(
        metavar="TSV",
        help="Labelled queries: tab-separated, with a header that names the columns [b]type[/b] "
        "and [b]query[/b]. The five types of MS MARCO and the six of TREC are supported.",
        exists=True,
        dir_okay=False,
    ),
]
Classifier = Annotated[
    Path,
    typer.Argument(
        metavar="CLASSIFIER",
        help="Classifier file from [b]types train[/b].",
        exists=True,
        dir_okay=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def train(
    files: Labelled,
    out: Annotated[Path, typer.Option("--out", "-o", help="Classifier file to write.")],
    six: Annotated[
        bool, typer.Option("--six", help="Keep TREC's six classes, for `eval --by type`.")
    ] = False,
) -> None:
    """Train a query-type classifier, in seconds.

    [bold]Example[/bold]

      secondlook types train msmarco-qa.train.tsv trec-qc.train.tsv -o types.safetensors
    """
    from secondlook.workflows.query_types import train_types

    count = train_types(files, out, six=six)
    typer.echo(f"{out}: trained on {count:,} queries")


@app.command("eval")
def eval_(classifier: Classifier, files: Labelled, as_json: AsJson = False) -> None:
    """Measure a classifier's accuracy, and its recall for each type.

    [bold]Example[/bold]

      secondlook types eval types.safetensors msmarco-qa.test.tsv trec-qc.test.tsv
    """
    from secondlook.workflows.query_types import evaluate_types

    for evaluation in evaluate_types(classifier, files):
        figures = evaluation.to_dict()
        typer.echo(json.dumps(figures) if as_json else evaluation.summary())


@app.command()
def predict(
    classifier: Classifier,
    queries: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY", help="Queries; default: lines of standard input."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the type of queries, one per line.

    [bold]Example[/bold]

      secondlook types predict types.safetensors "who wrote hamlet"
    """
    from secondlook.workflows.query_types import predict_types

    texts = queries or [line.rstrip("\n") for line in sys.stdin]
    for text, label in zip(texts, predict_types(classifier, texts), strict=True):
        typer.echo(json.dumps({"query": text, "type": label}) if as_json else f"{label}\t{text}")
