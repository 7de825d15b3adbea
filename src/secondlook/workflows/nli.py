"""Natural-language inference for ranking: data as training groups, classifiers as rankers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def mine_nli(source: str | Path, output: str | Path) -> int:
    """Write training groups from MNLI or SNLI (.jsonl, or .tsv of GLUE); gives how many.

    A premise is the query, its hypotheses are the documents, and those that follow are relevant.
    """
    from secondlook.train.nli import write_nli_groups

    return write_nli_groups(Path(source), Path(output))


def ranker_from_nli(
    source: str | Path,
    output: str | Path,
    *,
    weights: Mapping[str, float] | None = None,
    classes: Sequence[str] | None = None,
) -> Path:
    """Write a re-ranker made of a classifier that was fine-tuned on natural-language inference.

    Its score is a sum of the three logits with these `weights`; by default entailment minus the
    mean of neutral and contradiction. `classes` names them in the order of the logits, where the
    folder's config.json does not.
    """
    from secondlook.model.checkpoint import refuse_to_replace
    from secondlook.model.entailment import ranker_of_nli
    from secondlook.model.network import save_model

    refuse_to_replace(Path(output))
    save_model(ranker_of_nli(source, weights=weights, classes=classes), Path(output))
    return Path(output)
