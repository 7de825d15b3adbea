"""The documents of a corpus, wherever a user has them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.score.default_scale import ScalePairs
    from secondlook.types import Document


def documents_of(
    source: str | Path,
    progress: Progress | ProgressCallback | None = None,
    corpus_format: str = "auto",
) -> Iterable[Document]:
    """Every document of an index folder, a file or a folder of documents, or irds:NAME."""
    from secondlook.data import read_corpus
    from secondlook.errors import IndexProblem
    from secondlook.retrieve import open_index
    from secondlook.retrieve.folder import CARD

    documents: Iterable[Document]
    if (Path(source) / CARD).is_file():
        index = open_index(Path(source))
        if hasattr(index, "documents"):
            documents = index.documents()
        elif hasattr(index, "store"):
            documents = index.store
        else:
            raise IndexProblem(
                f"{source} keeps its texts in {index.card.engine}, which cannot list them here; "
                "give the corpus file that it was built from"
            )
    else:
        documents = read_corpus(str(source), corpus_format)
    return as_progress(progress).track(documents, "reading", "documents")


def scale_pairs(
    corpus: str | Path | None,
    queries: str | Path | None = None,
    qrels: str | Path | None = None,
    relevant_from: int = 1,
    *,
    progress: Progress | ProgressCallback | None = None,
) -> ScalePairs:
    """What a scale without judgments is fitted to: texts of the corpus, or the reference pairs."""
    from secondlook.data import read_qrels, read_queries
    from secondlook.score.default_scale import corpus_pairs, reference_pairs

    if corpus is None:
        return reference_pairs()
    judged = read_qrels(str(qrels)) if qrels else {}
    relevant = {  # as 0 or 1: what is judged is not drawn as unrelated, whatever its grade
        query_id: {doc_id: int(grade >= relevant_from) for doc_id, grade in grades.items()}
        for query_id, grades in judged.items()
    }
    asked = read_queries(str(queries)) if queries else ()
    return corpus_pairs(documents_of(corpus, progress), asked, relevant)
