"""How an expander learns: from passages and the queries they answer."""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING

import torch

from secondlook.model.doc2query import new_expander, padded
from secondlook.model.loading import quiet
from secondlook.model.settings import Phase
from secondlook.score.torch_backend import device_of
from secondlook.train.course import Course, Shown, TrainingExamples, held_out, teach
from secondlook.train.ranking import in_training, verbosity_kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from secondlook.model.doc2query import ExpanderModel
    from secondlook.train.phase import Place
    from secondlook.train.settings import ExpanderTraining
    from secondlook.types import Qrels, Query

_IGNORED = -100  # transformers' mark for a label that is padding


def answered(queries: Iterable[Query], qrels: Qrels) -> list[tuple[str, str]]:
    """Document ids with a query each that they are relevant to."""
    return [
        (doc_id, query.text)
        for query in queries
        for doc_id, grade in qrels.get(query.id, {}).items()
        if grade > 0
    ]


def train_expander(
    settings: ExpanderTraining,
    base: str | Path,
    pairs: Sequence[tuple[str, str]],
    texts: Mapping[str, str],
    place: Place,
) -> ExpanderModel:
    """An expander that learned to ask each passage's queries; `pairs` are ids and queries.

    Passages are held out whole: no query of theirs is learned from. Called again with the same
    arguments after a kill, it goes on from what it left in `place.folder` to the same expander.
    """
    device = device_of(place.device)
    torch.manual_seed(place.seed)
    start = new_expander(base, settings.max_length, settings.max_query_length)
    names = sorted(texts)
    kept_out, _ = held_out(
        len(names),
        settings.held_out,
        place.seed,
        f"{len(names)} passages have a relevant query; to learn what passages answer takes "
        "thousands, and ten at the least: are queries and judgments of this corpus?",
    )
    aside = {names[one] for one in kept_out}
    unseen = [pair for pair in pairs if pair[0] in aside]
    learned = [pair for pair in pairs if pair[0] not in aside]
    course = Course.of(settings, len(learned))

    def gathered(some: Sequence[tuple[str, str]]) -> dict[str, Tensor]:
        return gather(start, [(texts[doc_id], query) for doc_id, query in some])

    network = start.network
    shown = Shown(lambda one, _: learned[one], range(len(learned)), course.shown, place.seed)
    training = in_training(network, network, settings.dropout, device)
    with training, verbosity_kept(), quiet():
        # EncoderDecoderModel tells at every step of a change that is years old
        warnings.filterwarnings("ignore", "Version v4.12.0", FutureWarning)
        teach(
            network,
            TrainingExamples(course, shown, gathered, "expand", "learning", counts),
            place,
            device,
        )
        some = [gathered(unseen[n : n + 16]) for n in range(0, min(len(unseen), 512), 16)]
        perplexity = _perplexity(network, some, device)
    place.watch.say(f"perplexity of queries of {len(aside):,} held-out passages: {perplexity:.1f}")
    metrics = {"perplexity": perplexity, "steps": float(course.steps), "pairs": float(len(learned))}
    lineage = start.settings.lineage.then(Phase(name="expand", metrics=metrics))
    return replace(start, settings=start.settings.model_copy(update={"lineage": lineage}))


def gather(model: ExpanderModel, pairs: Sequence[tuple[str, str]]) -> dict[str, Tensor]:
    """Passages and queries as a seq2seq model of transformers reads them."""
    input_ids, mask = padded(model.passages([text for text, _ in pairs]), model.pad_id)
    labels, _ = padded(model.queries([query for _, query in pairs]), _IGNORED)
    return {"input_ids": input_ids, "attention_mask": mask, "labels": labels}


def counts(gathered: Mapping[str, Tensor]) -> dict[str, float]:
    """How many tokens of queries the loss is the mean of."""
    return {"loss": float((gathered["labels"] != _IGNORED).sum())}


def _perplexity(
    network: torch.nn.Module, batches: Sequence[Mapping[str, Tensor]], device: torch.device
) -> float:
    network.eval()
    lost, tokens = 0.0, 0.0
    for batch in batches:
        with torch.inference_mode():
            loss = network(**{name: rows.to(device) for name, rows in batch.items()}).loss
        count = counts(batch)["loss"]
        lost, tokens = lost + float(loss) * count, tokens + count
    return exp(lost / tokens)
