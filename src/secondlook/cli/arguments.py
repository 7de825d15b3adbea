"""What several verbs ask for, in the same words."""

from glob import escape
from pathlib import Path
from typing import Annotated

import typer

from secondlook.errors import Unwritable

CorpusSource = Annotated[str, typer.Argument(help="A file or folder of documents, or irds:NAME.")]
CorpusFormat = Annotated[
    str, typer.Option("--format", help="The corpus's format; auto looks at the file.")
]
ScaleCorpus = Annotated[
    str | None,
    typer.Option(
        "--corpus",
        help="An index folder or a corpus: fit the scale of scores to its texts, in place of the "
        "built-in reference pairs.",
    ),
]
QueriesSource = Annotated[str, typer.Argument(help="A file of queries, or irds:NAME.")]
Judgments = Annotated[
    str,
    typer.Argument(
        metavar="QRELS",
        help="Judgments: TREC, BEIR or MS MARCO, also .gz or .zst; or irds:DATASET.",
    ),
]
JudgmentsFormat = Annotated[
    str, typer.Option(help="Of the judgments: trec, beir, msmarco, car, irds; or auto.")
]
RunFormat = Annotated[
    str, typer.Option("--format", help="Of the runs: trec, msmarco, car, irds; or auto.")
]
Ray = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS|local", help="Work on this Ray cluster; local starts one here."),
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda or mps; by default the best there is.")]

Replace = Annotated[
    bool, typer.Option("--replace", help="Make OUTPUT anew where it is there already.")
]


def refuse_to_overwrite(output: Path, *, replace: bool) -> None:
    """Raise Unwritable where hours of work may be there already, unless they are to be replaced.

    Not where a job was interrupted that is to become this output: it goes on.
    """
    unfinished = any(output.parent.glob(f".{escape(output.name)}.part*"))
    if output.exists() and not (replace or unfinished):
        raise Unwritable(f"{output} is there already; make it anew with --replace")


def reachable(source: str) -> str:
    """A folder by its whole path, for workers that start elsewhere; a hub id as it is."""
    return str(Path(source).absolute()) if Path(source).is_dir() else source
