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

    The target format goes by the name of the target unless it is given. A title, query type or
    other part of a Document or Query that it cannot hold is an error; metadata that these do not
    have is not converted, and MS MARCO's runs hold no scores. A TREC run keeps its tag. The file
    appears when it is complete, or not at all.
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
        # A pipe can be read only once, and the tag is read before the rankings.
        tag = data.run_tag(source, source_format) if Path(source).is_file() else None
        data.write_run(target, rankings, target_format, tag or "secondlook")
    return Path(target)
