"""Train, measure and use the classifier of query types."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class TypeEvaluation:
    """How well a classifier does on one file of labelled queries."""

    file: Path
    accuracy: float
    recall: Mapping[str, float]
    """Type → the share of its queries that are classified so."""
    counts: Mapping[str, int]
    """Type → how many queries have it."""

    @property
    def queries(self) -> int:
        """How many queries the file has."""
        return sum(self.counts.values())

    def summary(self) -> str:
        """The accuracy, and a line for each type."""
        lines = [f"{self.file}: accuracy {self.accuracy:.3f} of {self.queries:,} queries"]
        lines += [
            f"  {label:12} {share:.3f} of {self.counts[label]:,}"
            for label, share in self.recall.items()
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All figures, unrounded."""
        return {
            "file": str(self.file),
            "queries": self.queries,
            "accuracy": self.accuracy,
            "recall": self.recall,
        }


def train_types(files: Sequence[str | Path], output: str | Path, *, six: bool = False) -> int:
    """Train a classifier on labelled queries and write it; gives how many queries there were.

    The files are tab-separated, with a header that names the columns `type` and `query`. With
    `six`, all files have TREC's six classes and keep them, abbreviations apart: for tables of
    results by type. A re-ranker reads the five types of MS MARCO.
    """
    from secondlook.encode.type_classifier import TypeClassifier

    labelled = [query for file in files for query in (_six if six else _labelled)(file)]
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    TypeClassifier.train(labelled).save(Path(output))
    return len(labelled)


def evaluate_types(classifier: str | Path, files: Sequence[str | Path]) -> Iterator[TypeEvaluation]:
    """The accuracy of a classifier on each file, and its recall for each type."""
    from secondlook.encode.query_types import TYPES
    from secondlook.encode.type_classifier import TypeClassifier

    model = TypeClassifier.load(Path(classifier))
    six = not set(TYPES).intersection(model.labels)
    for file in files:
        labelled = (_six if six else _labelled)(file)
        predicted = model.predict([text for text, _ in labelled])
        right = dict.fromkeys(sorted({label for _, label in labelled}), 0)
        counts = dict(right)
        for (_, label), guess in zip(labelled, predicted, strict=True):
            right[label] += guess == label
            counts[label] += 1
        recall = {label: right[label] / count for label, count in counts.items()}
        yield TypeEvaluation(Path(file), sum(right.values()) / len(labelled), recall, counts)


def predict_types(classifier: str | Path, texts: Sequence[str]) -> list[str]:
    """The type of each query."""
    from secondlook.encode.type_classifier import TypeClassifier

    return list(TypeClassifier.load(Path(classifier)).predict(list(texts)))


def _six(file: str | Path) -> list[tuple[str, str]]:
    from secondlook.encode.query_types import read_labelled, read_trec_class

    return [(text, read_trec_class(label)) for text, label in read_labelled(Path(file))]


def _labelled(file: str | Path) -> list[tuple[str, str]]:
    from secondlook.encode.query_types import read_labelled, read_type

    return [(text, read_type(label)) for text, label in read_labelled(Path(file))]
