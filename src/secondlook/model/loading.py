"""Models of transformers, loaded from a folder: in float32, no pickles, no code of their own."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from secondlook.errors import CheckpointProblem, MissingExtra

try:
    import torch
    from transformers import AutoModel
    from transformers.utils import logging
except ImportError as error:
    raise MissingExtra("torch", "loading a ranker's network") from error

from secondlook.model.checkpoint import brings_code, weight_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from transformers import PreTrainedModel

_OF_A_LAYER = re.compile(r"\blayers?\.\d")


def load(kind: Any, folder: Path, **config: Any) -> tuple[PreTrainedModel, list[str]]:  # noqa: ANN401 - transformers' auto classes share no type
    """A model of transformers in float32, and what it lacks; no pickles, no code of its own."""
    weight_files(folder)
    with quiet():
        try:
            model, report = kind.from_pretrained(
                folder,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
                **config,
            )
        except Exception as error:  # an odd config.json can raise anything in there
            raise CheckpointProblem(f"{folder} cannot be loaded: {error}") from error
    unknown = [name for name in sorted(report["unexpected_keys"]) if _OF_A_LAYER.search(name)]
    if unknown and brings_code(folder):
        raise CheckpointProblem(
            f"{folder} says it is a plain {model.config.model_type}, but its weights are not "
            f"({unknown[0]}): it needs the code that comes with it (`auto_map` in config.json), "
            "and such code is never run here"
        )
    return model, sorted(report["missing_keys"])


def load_encoder(folder: Path) -> PreTrainedModel:
    """The bare encoder of a folder, in float32."""
    model, missing = load(AutoModel, folder)
    lost = [name for name in missing if not name.startswith("pooler")]
    if lost:
        raise CheckpointProblem(f"{folder} is incomplete: it lacks {lost[0]}; fetch it anew")
    if missing:
        setattr(model, "pooler", None)  # noqa: B010 - many have none; mypy thinks it a module
    elif isinstance(pooler := getattr(model, "pooler", None), torch.nn.Module):
        pooler.requires_grad_(requires_grad=False)  # kept for others; it gets no gradient here
    return model


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' bars and load reports: what matters in them is raised as an error."""
    untyped: Any = logging
    verbosity, bars = untyped.get_verbosity(), untyped.is_progress_bar_enabled()
    untyped.set_verbosity_error()
    untyped.disable_progress_bar()
    try:
        yield
    finally:
        untyped.set_verbosity(verbosity)
        if bars:
            untyped.enable_progress_bar()
