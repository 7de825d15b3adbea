"""Conversion between file formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from secondlook.progress import Progress, ProgressCallback

Kind = Literal["corpus", "queries", "qrels", "run"]


def convert(
    kind: Kind,
    source: str | Path,
    target: str | Path,
    *,
    source_format: str = "auto",
    target_format: str = "auto",
    progress: Progress | ProgressCallback | None = None,
) -> Path:
    """Convert a corpus, queries, judgments or a run to another format; gives the file written.

    The target format goes by the name of the target unless it is given. Fields that it cannot hold
    are an error. The file appears when it is complete, or not at all.
    """
    from secondlook import data

    track = as_progress(progress).track
    if kind == "corpus":
        documents = track(data.read_corpus(source, source_format), "converting", "documents")
        data.write_corpus(target, documents, target_format)
    elif kind == "queries":
        queries = track(data.read_queries(source, source_format), "converting", "queries")
        data.write_queries(target, queries, target_format)
    elif kind == "qrels":
        data.write_qrels(target, data.read_qrels(source, source_format), target_format)
    else:
        rankings = track(data.read_run(source, source_format), "converting", "rankings")
        data.write_run(target, rankings, target_format)
    return Path(target)
