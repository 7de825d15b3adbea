"""A re-ranker by its name, whether it runs here or elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from secondlook.errors import WrongArgument
from secondlook.model.checkpoint import base_name, open_checkpoint
from secondlook.remote.address import RemoteAddress, is_remote
from secondlook.score.ranker import Ranker
from secondlook.score.remote_ranker import RemoteRanker

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    from secondlook.score.export_folder import Engine, Precision

    AnyRanker = Ranker | RemoteRanker


def open_ranker(
    source: str | Path,
    *,
    backend: Literal["auto", "torch"] | Engine = "auto",
    precision: Literal["auto"] | Precision = "auto",
    device: str | None = None,
    same_on_any_machine: bool = False,
) -> AnyRanker:
    """A re-ranker from a folder, a hub id or the address of a rerank API.

    An address is `https://…` (or `http://localhost…`) in Cohere's, Jina's,
    text-embeddings-inference's or vLLM's API, which its path or a prefix names; the model and other
    options stand behind a `#`. Both kinds have `score`, `predict`, `rank`, `rerank` and
    `relevance`. Back end, precision and device are for rankers that run here.

    >>> import secondlook as sl
    >>> sl.open_ranker("https://api.cohere.com/v2/rerank#model=rerank-v3.5").name
    'api.cohere.com rerank-v3.5'
    """
    if not is_remote(source):
        return Ranker.load(
            source,
            backend=backend,
            precision=precision,
            device=device,
            same_on_any_machine=same_on_any_machine,
        )
    if (backend, precision, device) != ("auto", "auto", None):
        raise WrongArgument(
            f"{name_of(source)} runs elsewhere: back end, precision and device cannot be chosen"
        )
    return RemoteRanker.load(str(source))


def name_of(source: str | Path) -> str:
    """What people call a re-ranker: the folder's name, the hub id, or host and model."""
    return RemoteAddress.parse(str(source)).name if is_remote(source) else base_name(source)


def unused_scores_advice(source: str | Path, ranker: AnyRanker) -> str | None:
    """What to tell people of a re-ranker whose scores change no order, else None."""
    if ranker.fusion is None or ranker.fusion.weight < 1:
        return None
    return (
        f"{name_of(source)} leaves the order to the first stage: its fusion gives its own scores "
        f"no weight; search without it, or by its scores alone: secondlook fuse clear {source}"
    )


def made_of(source: str | Path, ranker: AnyRanker) -> dict[str, Any]:
    """What the ranker's scores depend on: a job of other scores does not resume this one's."""
    from secondlook.score.export_folder import fingerprint

    if isinstance(ranker, RemoteRanker):
        return ranker.made_of
    settings = ranker.settings
    return {
        "weights": fingerprint(open_checkpoint(source)),
        "encode": settings.encode.model_dump(mode="json"),
        "fusion": settings.fusion and settings.fusion.model_dump(mode="json"),
        "backend": f"{ranker.backend.engine} {ranker.backend.precision}",
    }
