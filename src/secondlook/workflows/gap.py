"""How far a corpus's vocabulary is from general English, or from another corpus."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from secondlook.evaluate.gap import Gap
    from secondlook.progress import Progress, ProgressCallback


def gap(
    corpus: str | Path,
    *,
    against: str | Path | None = None,
    ranker: str | Path | None = None,
    documents: int = 100_000,
    corpus_format: str = "auto",
    progress: Progress | ProgressCallback | None = None,
) -> Gap:
    """Compare the most frequent words of a corpus with those of general English, or of `against`.

    `corpus` and `against` may be index folders. Reads so many `documents` of each at most; 0 reads
    all. With `ranker`, a re-ranker or base model, also tells how many words its tokenizer splits.
    """
    from secondlook.evaluate.gap import domain_gap
    from secondlook.workflows.documents import documents_of

    def texts(source: str | Path, format_: str) -> Iterator[str]:
        some = islice(documents_of(source, None, format_), documents or None)
        for document in as_progress(progress).track(some, "reading", "documents"):
            yield f"{document.title} {document.text}"

    return domain_gap(
        texts(corpus, corpus_format),
        _piece_counter(ranker) if ranker else None,
        against=None if against is None else (Path(against).name, texts(against, "auto")),
    )


def _piece_counter(source: str | Path) -> Callable[[Sequence[str]], list[int]]:
    """Tells into how many pieces a model's tokenizer splits each of some words."""
    from secondlook.model.checkpoint import locate, read_tokenizer

    tokenizer = read_tokenizer(locate(source))

    def count(words: Sequence[str]) -> list[int]:
        encodings = tokenizer.encode_batch([f" {word}" for word in words], add_special_tokens=False)
        return [len(encoding) for encoding in encodings]

    return count
