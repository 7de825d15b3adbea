"""The model card: what the checkpoint says of itself to people and to the hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secondlook.model.settings import Phase, RankerSettings

_JOINT = """
It is a cross-encoder with one logit, so sentence-transformers and, unless its head is a chain of
modules (`modules.json`), text-embeddings-inference and others load it too{except_for}.
"""
_CHAT = """
Pairs are read through its chat template, as sentence-transformers reads them.
"""
_WARM = """
It is of secondlook's *warm* form: a bi-encoder (`model.safetensors`, which loads as such elsewhere)
with attention between query and document (`secondlook.safetensors`, which only secondlook reads).
**Do not load it as a cross-encoder elsewhere**: it has no classification head, and a library that
makes one up scores at random.
"""
_FROZEN = """
It is of secondlook's *frozen* form: an encoder that was not trained further (`model.safetensors`)
with a small network over its features (`secondlook.safetensors`, which only secondlook reads).
**Do not load it as a cross-encoder elsewhere**: it has no classification head, and a library that
makes one up scores at random.
"""


def card(settings: RankerSettings) -> str:
    """README.md for the checkpoint's folder."""
    base = settings.lineage.base
    head = ["---", "pipeline_tag: text-ranking", "tags: [secondlook, cross-encoder]"]
    head += [f"base_model: {base}"] if "/" in base else []
    lines = [*head, "---", "", f"# A re-ranker made from {base}", ""]
    lines += ["It scores how well a document answers a query; higher is better.", ""]
    lines += ["```python", "from secondlook import Ranker", ""]
    lines += ['Ranker.load("this folder").rank("a query", ["a document", "another"])', "```"]
    if not settings.trained:
        lines += ["", "**Its head was never trained: its scores mean nothing yet.**"]
    if settings.warm is not None:
        lines += [_WARM.rstrip()]
    elif settings.frozen is not None:
        lines += [_FROZEN.rstrip()]
    else:
        lines += [_JOINT.rstrip().format(except_for=_only_here(settings))]
        lines += [_CHAT.rstrip()] if settings.encode.chat else []
    if settings.lineage.phases:
        lines += ["", "## How it was trained", ""]
        lines += [_phase_line(p) for p in settings.lineage.phases]
    return "\n".join(lines) + "\n"


def _only_here(settings: RankerSettings) -> str:
    """What other libraries would leave out of the scores."""
    encode = settings.encode
    parts = {
        "STRM": encode.strm,
        "markers": encode.markers is not None,
        "query types": encode.query_types,
        "windows": encode.windows is not None,
    }
    missing = [name for name, on in parts.items() if on]
    return f",\nbut score without its {', '.join(missing)}" if missing else ""


def _phase_line(phase: Phase) -> str:
    learned = f" on {', '.join(phase.data)}" if phase.data else ""
    labels = f", whose labels no person gave ({phase.labels})" if phase.labels else ""
    metrics = dict(phase.metrics)
    gates = [metrics.pop(name) for name in phase.metrics if name.startswith("gate ")]
    figures = [f"{name} {_figure(value)}" for name, value in metrics.items()]
    if gates:
        figures.append(f"gates by layer {' '.join(f'{gate:.4f}' for gate in gates)}")
    gain, error = metrics.get("gain"), metrics.get("standard error of the gain")
    if gain is not None and error is not None and abs(gain) < 2 * error:
        figures.append("a gain within the noise of so few queries")
    return f"1. {phase.name}{learned}{labels}{': ' + ', '.join(figures) if figures else ''}"


def _figure(value: float) -> str:
    """Counts as counts, measures with four places."""
    return f"{value:.0f}" if value.is_integer() and value > 1 else f"{value:.4f}"
