"""How far a corpus's vocabulary is from general English."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from secondlook.evaluate.gap import Gap
    from secondlook.progress import Progress, ProgressCallback


def gap(
    corpus: str | Path,
    *,
    ranker: str | Path | None = None,
    documents: int = 100_000,
    corpus_format: str = "auto",
    progress: Progress | ProgressCallback | None = None,
) -> Gap:
    """Compare the most frequent words of a corpus with those of general English.

    `corpus` may be an index folder. Reads so many `documents` at most; 0 reads all. With `ranker`,
    a re-ranker or base model, also tells how many words its tokenizer splits.
    """
    from secondlook.evaluate.gap import domain_gap
    from secondlook.workflows.documents import documents_of

    first = islice(documents_of(corpus, None, corpus_format), documents or None)
    read = as_progress(progress).track(first, "reading", "documents")
    texts = (f"{document.title} {document.text}" for document in read)
    return domain_gap(texts, _piece_counter(ranker) if ranker else None)


def _piece_counter(source: str | Path) -> Callable[[Sequence[str]], list[int]]:
    """Tells into how many pieces a model's tokenizer splits each of some words."""
    from secondlook.model.checkpoint import locate, read_tokenizer

    tokenizer = read_tokenizer(locate(source))

    def count(words: Sequence[str]) -> list[int]:
        encodings = tokenizer.encode_batch([f" {word}" for word in words], add_special_tokens=False)
        return [len(encoding) for encoding in encodings]

    return count
