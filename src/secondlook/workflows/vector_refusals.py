"""What vectors and states are not made of, said before hours of encoding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secondlook.progress import Progress
    from secondlook.retrieve.engines import Engine
    from secondlook.retrieve.vector_files import VectorPrecision
    from secondlook.types import Document


def refuse_other_corpus(
    engine: Engine, documents: Iterator[Document], folder: Path, progress: Progress
) -> None:
    """Raise IndexProblem for other documents than those that were indexed."""
    from secondlook.data import Fingerprint
    from secondlook.errors import IndexProblem

    read = progress.track(documents, "comparing the corpus", "documents")
    if Fingerprint.of(read).digest() != engine.card.fingerprint:
        raise IndexProblem(
            f"{folder} is an index of other documents than these; give the corpus that it was made "
            "from, or `replace=True` to index this one"
        )


def refuse_other_settings(folder: Path, **given: str | float | None) -> None:
    """Raise WrongArgument for a setting that an index, which only gets vectors now, does not have.

    What is None was not given.
    """
    from secondlook.analyze import DEFAULT
    from secondlook.errors import WrongArgument
    from secondlook.retrieve.folder import read_card

    card = read_card(folder)
    own = card.settings | {
        "engine": card.engine,
        "language": card.settings.get("analyzer", DEFAULT),
    }
    for name, value in given.items():
        if value is not None and value != own.get(name):
            indexed = f"was indexed with {name} {own[name]}" if name in own else f"has no {name}"
            raise WrongArgument(
                f"{folder} {indexed}, and making vectors does not change it: leave out `{name}`, "
                "or give `replace=True` to index anew"
            )


def refuse_windows(ranker: str | Path) -> None:
    """Raise EngineProblem for a ranker with windows, of which a cluster keeps no vectors."""
    from secondlook.errors import EngineProblem
    from secondlook.model.checkpoint import CARD, locate, open_checkpoint

    folder = locate(ranker)
    if (folder / CARD).is_file() and open_checkpoint(folder).settings.encode.windows is not None:
        raise EngineProblem(
            f"{ranker} reads long documents in windows, and a cluster keeps one vector for each "
            "document: take a ranker without windows, or index with bm25s"
        )


def refuse_precision(engine: type[object], precision: VectorPrecision) -> None:
    """Raise WrongArgument where the engine itself keeps vectors, which it does in fp32 alone."""
    from secondlook.errors import WrongArgument

    if precision != "fp32" and getattr(engine, "stores_vectors", False):
        raise WrongArgument(
            f"a cluster keeps vectors in fp32, not {precision}: leave out the precision, or index "
            "with bm25s"
        )


def refuse_corpus_of_attached(folder: Path, corpus: str | Path) -> None:
    """Raise WrongArgument for a corpus beside an attached index, which gives its own documents."""
    from secondlook.errors import WrongArgument

    if Path(corpus).resolve() != folder.resolve():
        raise WrongArgument(
            f"{folder} is an attached index, which gives its own documents: name it as the corpus, "
            f"too (secondlook index {folder} {folder} --vectors RANKER)"
        )


def refuse_ray_for_attached(folder: Path, ray: str | None) -> None:
    """Raise WrongArgument for workers that would encode an attached index."""
    from secondlook.errors import WrongArgument

    if ray is not None:
        raise WrongArgument(
            f"{folder} is an attached index, whose documents may change before all parts of a Ray "
            "job are done: leave out ray"
        )


def refuse_states(
    ranker: str | Path | None, *, engine: type[object] | str, ray: str | None = None
) -> None:
    """Raise where states cannot be stored, before the corpus is read.

    `engine` is the class of the index's engine, or "attached".
    """
    from secondlook.errors import WrongArgument
    from secondlook.score.states import check_states

    if ranker is None:
        raise WrongArgument("states are stored beside vectors: give vectors too")
    if ray is not None:
        raise WrongArgument("workers of a Ray cluster make no states: leave out ray, or states")
    if engine == "attached":
        raise WrongArgument(
            "the documents of an attached index may change at any time, so that their states are "
            "not stored: leave out states"
        )
    if getattr(engine, "stores_vectors", False):
        raise WrongArgument("a cluster stores no states: leave out states, or index with bm25s")
    check_states(ranker)
