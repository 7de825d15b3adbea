"""Arguments and options that several verbs share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

RANKER_HELP = (
    "Re-ranker: a folder, a Hugging Face model id, or the URL of a rerank API, as in "
    "https://api.cohere.com/v2/rerank#model=rerank-v3.5"
)
CorpusSource = Annotated[
    str, typer.Argument(help="Corpus: a file or folder of documents, or irds:NAME.")
]
CorpusFormat = Annotated[str, typer.Option("--format", help="Corpus format; auto detects it.")]
ScaleCorpus = Annotated[
    str | None,
    typer.Option(
        "--corpus",
        help="Index folder or corpus whose texts the score scale is fitted to, instead of the "
        "built-in reference pairs.",
    ),
]
Teacher = Annotated[
    str,
    typer.Option(
        help="Teacher: a re-ranker or any cross-encoder; a folder, a Hugging Face model id or the "
        "URL of a rerank API."
    ),
]
QueriesSource = Annotated[str, typer.Argument(help="Queries: a file, or irds:NAME.")]
Judgments = Annotated[
    str,
    typer.Argument(
        metavar="QRELS",
        help="Relevance judgments: TREC, BEIR or MS MARCO, also .gz or .zst; or irds:DATASET.",
    ),
]
JudgmentsFormat = Annotated[
    str, typer.Option(help="Format of the judgments: trec, beir, msmarco, car, irds or auto.")
]
RunFormat = Annotated[
    str, typer.Option("--format", help="Format of the runs: trec, msmarco, car, irds or auto.")
]
Ray = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS|local", help="Run on this Ray cluster; local starts one here."),
]
Device = Annotated[
    str | None, typer.Option(help="Device: cpu, cuda or mps; by default the fastest available.")
]
TrainingJudgments = Annotated[str, typer.Argument(help="Relevance judgments.")]
ModelFolder = Annotated[Path, typer.Option("--output", "-o", help="Output folder of the model.")]
Epochs = Annotated[float, typer.Option(help="Training epochs.")]
MaxSteps = Annotated[int | None, typer.Option(help="Training steps, instead of epochs.", min=1)]
LearningRate = Annotated[float, typer.Option(help="Peak learning rate.")]
ReportTo = Annotated[
    list[str] | None, typer.Option(help="Experiment tracker: tensorboard, mlflow or wandb.")
]

ClusterUrls = Annotated[
    list[str] | None,
    typer.Option(
        help="Node or load balancer of the cluster; repeat for more. Default: OPENSEARCH_URL, "
        "or localhost:9200."
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="JSON",
        help="""Condition on the hits of an attached index, as '{"term": {"brand": "acme"}}'; repeat
        for more.""",
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="Value for a placeholder of an attached index's query template; repeat for more.",
    ),
]
Routing = Annotated[
    str | None, typer.Option(help="Routing value of the search, on an attached index.")
]

Replace = Annotated[bool, typer.Option("--replace", help="Overwrite OUTPUT if it exists.")]


class FirstStage(StrEnum):
    """What a first-stage search goes by."""

    bm25 = "bm25"
    vectors = "vectors"
    hybrid = "hybrid"


By = Annotated[
    FirstStage | None,
    typer.Option(
        help="Search by bm25, by vectors, or by both (hybrid); default: as the index was tuned, "
        "else hybrid where it has vectors.",
        show_default=False,
    ),
]


class VectorPrecision(StrEnum):
    """Numeric precision of stored vectors."""

    fp32 = "fp32"
    fp16 = "fp16"
    int8 = "int8"


class Backend(StrEnum):
    """Inference back ends."""

    auto = "auto"
    torch = "torch"
    onnx = "onnx"
    openvino = "openvino"


class Precision(StrEnum):
    """Numeric precision."""

    auto = "auto"
    fp32 = "fp32"
    bf16 = "bf16"
    int8 = "int8"


BackendOption = Annotated[
    Backend, typer.Option(help="Inference back end; auto: the fastest export, else torch.")
]
