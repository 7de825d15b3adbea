"""How a weigher learns: which words of a passage its queries hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from secondlook.analyze import DEFAULT
from secondlook.analyze import analyzer as analyzer_of
from secondlook.data.fingerprint import Fingerprint
from secondlook.encode.features import collate
from secondlook.model.deepct import new_weigher
from secondlook.model.settings import Phase
from secondlook.retrieve.weigh import PartReader
from secondlook.score.torch_backend import device_of
from secondlook.score.word_weights import WordWeights
from secondlook.train.course import Course, Shown, TrainingExamples, held_out, teach
from secondlook.train.ranking import in_training, verbosity_kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor

    from secondlook.encode.features import Features
    from secondlook.model.deepct import DeepCT, WeigherModel
    from secondlook.train.phase import Place
    from secondlook.train.settings import WeigherTraining
    from secondlook.types import Document, Qrels, Query


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A part of a passage and the query term recall of its words."""

    features: Features
    targets: NDArray[np.float32]  # [words]


def recalls(
    queries: Iterable[Query], qrels: Qrels, analyzer: str = DEFAULT
) -> dict[str, dict[str, float]]:
    """Query term recall: document id → term → share of its relevant queries that hold the term.

    Terms are the engine's. A term that is absent has recall 0.
    """
    terms_of = analyzer_of(analyzer).terms
    queries_of: defaultdict[str, int] = defaultdict(int)
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for query in queries:
        terms = set(terms_of(query.text))
        for doc_id, grade in qrels.get(query.id, {}).items():
            if grade > 0:
                queries_of[doc_id] += 1
                held[doc_id].update(terms)
    return {
        doc_id: {term: count / queries_of[doc_id] for term, count in counts.items()}
        for doc_id, counts in held.items()
    }


def train_weigher(
    settings: WeigherTraining,
    base: str | Path,
    passages: Sequence[Document],
    targets: Mapping[str, Mapping[str, float]],
    place: Place,
) -> WeigherModel:
    """A weigher that learned the targets of these passages; see `recalls`.

    Called again with the same arguments after a kill, it goes on from what it left in
    `place.folder` and gives the same weigher.
    """
    device = device_of(place.device)
    torch.manual_seed(place.seed)
    start = new_weigher(base, settings.max_length, settings.analyzer)
    reader = PartReader(start.tokenizer, start.settings.max_length, settings.analyzer)
    examples = [own for passage in passages if (own := _examples(passage, targets, reader))]
    aside, rest = held_out(
        len(examples),
        settings.held_out,
        place.seed,
        f"{len(examples)} passages have a relevant query; to learn which words matter takes "
        "thousands, and ten at the least: are queries and judgments of this corpus?",
    )
    unseen = [example for one in aside for example in examples[one]]
    learned = [example for one in rest for example in examples[one]]
    course = Course.of(settings, len(learned))
    network = start.network
    shown = Shown(lambda one, _: learned[one], range(len(learned)), course.shown, place.seed)
    with in_training(network, network.encoder, settings.dropout, device), verbosity_kept():
        teach(
            network,
            TrainingExamples(
                course, shown, lambda some: gather(some, network), "weigh", "learning", counts
            ),
            place,
            device,
        )
    weights = WordWeights(network, device=str(device))([one.features for one in unseen])
    metrics = _measured(weights, unseen, learned)
    place.watch.say(
        f"error on {len(aside):,} held-out passages: {metrics['error']:.5f}; "
        f"{metrics['error of the mean']:.5f} if all words weighed the same"
    )
    metrics |= {"steps": float(course.steps), "passages": float(len(rest))}
    data = {"passages": Fingerprint.of(passages).digest()}
    lineage = start.settings.lineage.then(Phase(name="weigh", data=data, metrics=metrics))
    return replace(start, settings=start.settings.model_copy(update={"lineage": lineage}))


def gather(examples: Sequence[Example], network: DeepCT) -> dict[str, Tensor]:
    """Examples as the network reads them."""
    some = [example.features for example in examples]
    arrays = collate(some, network.pad_id, network.positions)
    longest = max(len(example.targets) for example in examples)
    targets = np.full((len(examples), longest), np.nan, np.float32)
    for row, example in enumerate(examples):
        targets[row, : len(example.targets)] = example.targets
    names = ("input_ids", "attention_mask", "token_type_ids", "words")
    read = {name: torch.from_numpy(arrays[name]) for name in names}
    return read | {"targets": torch.from_numpy(targets)}


def counts(gathered: Mapping[str, Tensor]) -> dict[str, float]:
    """How many words the loss is the mean of."""
    return {"loss": float((~gathered["targets"].isnan()).sum())}


def _examples(
    passage: Document, targets: Mapping[str, Mapping[str, float]], reader: PartReader
) -> list[Example]:
    """The parts of a passage; none of one without a word to index."""
    wanted = targets[passage.id]
    (parts,) = reader.read([passage])
    return [
        Example(part.features, np.array([wanted.get(term, 0.0) for term in part.terms], np.float32))
        for part in parts
    ]


def _measured(
    weights: Sequence[NDArray[np.float32]], unseen: Sequence[Example], learned: Sequence[Example]
) -> dict[str, float]:
    """Mean squared errors over the held-out words: the network's, and that of knowing nothing."""
    found = np.concatenate(weights)
    wanted = np.concatenate([example.targets for example in unseen])
    mean = float(np.concatenate([example.targets for example in learned]).mean())
    return {
        "error": float(np.square(found - wanted).mean()),
        "error of the mean": float(np.square(mean - wanted).mean()),
    }
