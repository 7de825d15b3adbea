"""A re-ranker from a bi-encoder, without training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from secondlook.model.settings import RankerSettings
    from secondlook.progress import Progress, ProgressCallback


@dataclass(frozen=True, slots=True)
class WarmResult:
    """A re-ranker that was written, and its settings."""

    ranker: Path
    settings: RankerSettings

    def summary(self) -> str:
        """What it starts from, how it reads, and what its scores mean."""
        from secondlook.score.default_scale import scale_summary

        warm, encode, calibration = (
            self.settings.warm,
            self.settings.encode,
            self.settings.calibration,
        )
        assert warm is not None
        assert calibration is not None
        assert calibration.fitted_on is not None
        return (
            f"{self.ranker}: begins as {self.settings.lineage.base}, {warm.pooling} pooling, "
            f"{encode.max_length} tokens, prompts {encode.query_prompt!r} and "
            f"{encode.document_prompt!r}\n{scale_summary(calibration.fitted_on)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For machines: the folder, and the settings as the folder has them."""
        return {"ranker": str(self.ranker)} | self.settings.model_dump(mode="json")


def warm(
    base: str | Path,
    output: str | Path,
    *,
    separate_layers: int | Literal["all"] = 0,
    window: int | None = None,
    stride: int | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    corpus: str | Path | None = None,
    replace: bool = False,
    progress: Progress | ProgressCallback | None = None,
) -> WarmResult:
    """Write a re-ranker that ranks as the bi-encoder `base` does, ready to be fine-tuned.

    In so many lowest layers (`separate_layers`, or "all") query and document do not see each other;
    with all, documents can be scored by vectors that an index stores. `window` and `stride` are in
    words; by default long documents are truncated, and windows overlap by half. Prompts are by
    default those of the base. The scale of scores is fitted to texts of `corpus`, or to the
    built-in reference pairs. Raises CheckpointProblem if the folder exists and is not empty, unless
    `replace` is set.
    """
    from secondlook.errors import WrongArgument
    from secondlook.model.checkpoint import refuse_to_replace
    from secondlook.score.warm import make_warm
    from secondlook.workflows.documents import scale_pairs

    if stride is not None and window is None:
        raise WrongArgument("`stride` is from window to window: it needs `window`")
    folder = Path(output)
    if not replace:
        refuse_to_replace(folder, "to overwrite it, give `replace=True`")
    prompts = {"query_prompt": query_prompt, "document_prompt": document_prompt}
    encode: dict[str, Any] = {name: text for name, text in prompts.items() if text is not None}
    if window is not None:
        encode["windows"] = {"length": window, "stride": stride or max(1, window // 2)}
    pairs = scale_pairs(corpus, progress=progress)
    with as_progress(progress).busy("loading the base model"):
        settings = make_warm(
            base, folder, separate_layers=separate_layers, encode=encode, pairs=pairs
        )
    return WarmResult(folder, settings)
