"""The pictures of an ablation: the measure over the negatives or the pairs that were swept."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.train.ablation import Variant
    from secondlook.workflows.ablate import AblationResult

_PICTURES = {"negatives of each query": "negatives.svg", "training pairs": "pairs.svg"}


def sweeps(
    variants: Mapping[str, Variant], negatives: Sequence[int], pairs: Sequence[int]
) -> dict[str, dict[str, int]]:
    """What is drawn: a picture's label → recipe → its place on the axis."""
    from secondlook.train.ablation import WHOLE, negatives_of, sized, swept

    found = {}
    if negatives:
        names = {WHOLE, *map(swept, negatives)} & variants.keys()
        places = {name: negatives_of(variants[name].recipe) for name in names}
        found["negatives of each query"] = places
    if pairs:
        names = {WHOLE, *map(sized, pairs)} & variants.keys()
        found["training pairs"] = {name: variants[name].pairs for name in names}
    return found


def draw(result: AblationResult, sweeps: Mapping[str, Mapping[str, int]]) -> str:
    """The measure over what was swept; gives why it was not drawn."""
    from secondlook.errors import MissingExtra
    from secondlook.evaluate.curve import plotted

    for label, places in sweeps.items():
        rows = sorted(
            ((places[row.name], row) for row in result.rows if row.name in places),
            key=lambda pair: pair[0],
        )
        try:
            with plotted(result.output / _PICTURES[label], label, result.measure) as axes:
                counts, means, deviations = zip(
                    *((place, row.mean, row.deviation or 0) for place, row in rows), strict=True
                )
                of = "one seed" if rows[0][1].seeds == 1 else "mean ± deviation over seeds"
                axes.errorbar(counts, means, deviations, marker="o", capsize=3, label=of)
                if label == "training pairs":
                    axes.set_xscale("log")
                axes.set_xticks(counts, [f"{count:,}" for count in counts])
                axes.minorticks_off()  # a log axis labels its own between those of the counts
        except MissingExtra as missing:
            return str(missing)
    return ""
