"""The phase that changes data: DR-BERT's noise reduction (section 3.1), with an account of it.

Most relevant passages were never judged. Taught as negatives they contradict the positives they
resemble, so the ranker scores every unlabelled candidate, and what lies above a threshold is taken
out. `dropped.jsonl` shows each of them with its text, for a person to judge.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.data.durable import write_at_once
from secondlook.data.lines import write_lines
from secondlook.errors import SecondlookError
from secondlook.score.torch_backend import device_of
from secondlook.train.groups import UNJUDGED, Group, Groups, write_groups
from secondlook.train.phase import Outcome
from secondlook.train.ranker import precision_of, ranker_of, types_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from secondlook.model.network import Model
    from secondlook.score.ranker import Ranker
    from secondlook.train.phase import Place, TrainData
    from secondlook.train.settings import DenoisePhase

DENOISED = "denoised.parquet"
"""What later phases learn from, instead of all group files that were given."""
_GROUPS_AT_ONCE = 64
_POSITIVE = 1  # the grade of an unlabelled candidate that is kept as a positive


def run(settings: DenoisePhase, start: Model, data: TrainData, place: Place) -> Outcome:
    """The same ranker, and training groups without what it takes for unmarked positives."""
    if not data.train:
        raise SecondlookError(
            "the phase 'denoise' has no training data; name group files in the recipe: "
            '[data] train = ["train.parquet"]'
        )
    place.folder.mkdir(parents=True, exist_ok=True)
    device = device_of(place.device)
    ranker = ranker_of(
        start,
        types_of(start, place.folder),
        device,
        precision_of(settings.precision, device),
    )
    groups = Groups(data.train)
    scores = _scored(groups, ranker, place)
    cut = Cut(settings, groups, scores)
    clean = place.folder / DENOISED
    about = {"denoised": groups.fingerprint, "settings": settings.model_dump_json()}
    if groups.labels:
        about["labels"] = groups.labels
    write_groups(clean, cut.groups(), about=about)
    dropped, summary = place.folder / "dropped.jsonl", place.folder / "denoise.json"
    write_lines(dropped, cut.taken())
    metrics = cut.metrics()
    write_at_once(summary, json.dumps(metrics, indent=2) + "\n")
    place.watch.say(
        f"{metrics['taken']:,.0f} of {metrics['unlabelled']:,.0f} unlabelled candidates scored "
        f"above {metrics['threshold']:.3f}, as {metrics['positives above']:.1%} of the known "
        f"positives do; they are listed in {dropped.name}"
    )
    return Outcome(
        start,
        replace(data, train=(clean,)),
        {path.name: Groups([path]).fingerprint for path in data.train},
        metrics,
        keep=(dropped, summary),
    )


class Cut:
    """Groups, their scores, and where between them the line is drawn."""

    def __init__(
        self, settings: DenoisePhase, groups: Sequence[Group], scores: NDArray[np.float32]
    ) -> None:
        self._settings, self._groups, self._scores = settings, groups, scores
        self._labels = np.array(
            [label for group in groups for label in group.labels], np.int8
        )  # [documents of all groups]
        positives = scores[self._labels > 0]
        if settings.threshold is not None:
            self.threshold = settings.threshold
        elif not len(positives):
            raise SecondlookError(
                "no training group has a positive to put the threshold by; give `threshold`"
            )
        else:
            assert settings.positives_above is not None
            self.threshold = float(np.quantile(positives, 1 - settings.positives_above))
        self._above = (self._labels == UNJUDGED) & (scores > self.threshold)
        self._positives_above = (
            float(np.mean(positives > self.threshold)) if len(positives) else 0.0
        )

    def groups(self) -> Iterator[Group]:
        """The groups without what is above, or with it as positives."""
        for group, above, _ in self._by_group():
            if not any(above):
                yield group
            elif self._settings.found == "positive":
                labels = zip(group.labels, above, strict=True)
                marked = tuple(_POSITIVE if found else label for label, found in labels)
                yield replace(group, labels=marked, grades=None)
            else:
                yield _without(group, above)

    def taken(self) -> Iterator[str]:
        """What is above, as lines of JSON, with all that a person needs to judge it."""
        for group, above, scores in self._by_group():
            known = [
                d.text for d, label in zip(group.documents, group.labels, strict=True) if label > 0
            ]
            for at in np.flatnonzero(above).tolist():
                document = group.documents[at]
                row: dict[str, Any] = {
                    "query_id": group.query.id,
                    "query": group.query.text,
                    "doc_id": document.id,
                    "title": document.title,
                    "text": document.text,
                    "score": float(scores[at]),
                    "rank": group.ranks[at],
                    "known_positives": known,
                }
                yield json.dumps(row, ensure_ascii=False)

    def metrics(self) -> dict[str, float]:
        """What was done, in figures."""
        return {
            "threshold": self.threshold,
            "positives above": self._positives_above,
            "unlabelled": float((self._labels == UNJUDGED).sum()),
            "taken": float(self._above.sum()),
            "queries changed": float(sum(any(above) for _, above, _ in self._by_group())),
        }

    def _by_group(self) -> Iterator[tuple[Group, NDArray[np.bool_], NDArray[np.float32]]]:
        start = 0
        for group in self._groups:
            end = start + len(group.documents)
            yield group, self._above[start:end], self._scores[start:end]
            start = end


def _without(group: Group, above: NDArray[np.bool_]) -> Group:
    kept = np.flatnonzero(~above).tolist()
    return replace(
        group,
        documents=tuple(group.documents[at] for at in kept),
        labels=tuple(group.labels[at] for at in kept),
        ranks=tuple(group.ranks[at] for at in kept),
        teacher=None if group.teacher is None else tuple(group.teacher[at] for at in kept),
        grades=None if group.grades is None else tuple(group.grades[at] for at in kept),
    )


def _scored(groups: Groups, ranker: Ranker, place: Place) -> NDArray[np.float32]:
    """One score for every document of every group; those of a killed run are not made again."""
    path = place.folder / "scores.f32"
    done = _whole_groups(path, groups)
    place.watch.begin("scoring", len(groups), done=done)
    with path.open("ab") as file:
        for start in range(done, len(groups), _GROUPS_AT_ONCE):
            some = groups[start : start + _GROUPS_AT_ONCE]
            pairs = [(group.query, document) for group in some for document in group.documents]
            file.write(ranker.score(pairs).astype(np.float32).tobytes())
            file.flush()
            for group in some:
                place.watch.step(len(group.documents), {})
    return np.fromfile(path, np.float32)


def _whole_groups(path: Path, groups: Groups) -> int:
    """How many groups' scores are on the disk, in whole batches; what is beyond is cut off.

    Whole, so that each pair stands beside the same others as in a run that was never killed.
    """
    if not path.is_file():
        return 0
    held, documents, ends = path.stat().st_size // 4, 0, [0]
    for group in groups:
        documents += len(group.documents)
        if documents > held:
            break
        ends.append(documents)
    done = len(ends) - 1
    if done < len(groups):
        done -= done % _GROUPS_AT_ONCE
    with path.open("r+b") as file:
        file.truncate(4 * ends[done])
    return done
