"""The classifier that gives a query its type: linear, over word and character n-grams."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from secondlook.data.durable import replacing_file
from secondlook.encode.tokens import well_formed
from secondlook.errors import MalformedInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

BUCKETS = 2**16
"""Features are hashed into so many weights per label: no vocabulary to keep, 1.3 MB for five."""

_VERSION = "1"
"""Of the features below: a classifier trained on others is not read."""

_REGULARISATION = 3e-6
"""Of the mean loss; chosen on held-out fifths of the training questions, as the features were."""

_WORD = re.compile(r"[^\W_]+")
_QUESTION_WORDS = frozenset(
    (
        *("who", "whos", "whom", "whose", "what", "whats", "which"),
        *("where", "wheres", "when", "why", "how"),
    )
)
_AUXILIARIES = frozenset(
    (
        *("is", "are", "was", "were", "be", "am", "s", "do", "does", "did", "has", "have", "had"),
        *("can", "could", "will", "would", "should", "may", "might"),
    )
)
_DETERMINERS = frozenset(
    (
        *("the", "a", "an", "some", "any", "this", "that", "these", "those"),
        *("your", "my", "his", "her", "their", "its"),
    )
)
_PREPOSITIONS = frozenset(
    (
        *("of", "in", "for", "on", "at", "to", "from", "by", "with", "and", "or", "that", "which"),
        *("who", "between", "as", "about", "into"),
    )
)


class TypeClassifier:
    """Multinomial logistic regression; numpy is all it needs to predict."""

    def __init__(self, labels: Sequence[str], weights: NDArray[np.float32]) -> None:
        self.labels = tuple(labels)
        self._weights = weights  # [BUCKETS, labels]

    @classmethod
    def train(cls, labelled: Sequence[tuple[str, str]]) -> TypeClassifier:
        """Fitted to (query, label) pairs; the same pairs give the same classifier.

        On another CPU, or with another number of threads, sums are rounded otherwise: a query
        between two labels may get the other one.
        """
        labels = sorted({label for _, label in labelled})
        gold = np.array([labels.index(label) for _, label in labelled])
        return cls(labels, _fit([query for query, _ in labelled], gold, len(labels)))

    def predict(self, queries: Sequence[str]) -> list[str]:
        """The likeliest label of each query."""
        chosen = []
        for query in queries:
            buckets, values = _features(query)
            chosen.append(self.labels[int((values @ self._weights[buckets]).argmax())])
        return chosen

    def save(self, path: Path) -> None:
        """One file, there at once or not at all."""
        from safetensors.numpy import save

        about = {"features": _VERSION, "labels": "\t".join(self.labels)}
        with replacing_file(path) as half:
            half.write_bytes(save({"weights": self._weights}, metadata=about))

    @classmethod
    def load(cls, path: Path) -> TypeClassifier:
        """The classifier that `save` wrote."""
        from safetensors import SafetensorError, safe_open

        if not path.is_file():
            raise MalformedInput(
                path, None, "there is no such file; make one with: secondlook types train"
            )
        try:
            with safe_open(path, framework="numpy") as file:
                about, weights = file.metadata() or {}, file.get_tensor("weights")
        except SafetensorError as error:
            raise MalformedInput(path, None, f"no query-type classifier ({error})") from error
        labels = about.get("labels", "").split("\t")
        if about.get("features") != _VERSION or weights.shape != (BUCKETS, len(labels)):
            raise MalformedInput(
                path, None, "made for other features; train it anew with: secondlook types train"
            )
        return cls(labels, weights)


def _features(query: str) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Buckets and values; each kind of feature has length 1, however long the query."""
    buckets: list[int] = []
    values: list[float] = []
    for kind in _kinds(_WORD.findall(well_formed(query))):
        found = {crc32(feature.encode()) % BUCKETS for feature in kind}
        buckets += found
        values += [len(found) ** -0.5 for _ in found]
    return np.array(buckets, np.intp), np.array(values, np.float32)


def _kinds(words: list[str]) -> Iterator[list[str]]:
    """Word n-grams, character n-grams, the question's own shape, and the words' shapes."""
    lower = [word.lower() for word in words]
    yield [f"1 {word}" for word in lower] + [f"2 {a} {b}" for a, b in pairwise(("<", *lower, ">"))]
    yield [
        f"c {padded[i : i + size]}"
        for padded in (f"<{word}>" for word in lower)
        for size in (3, 4, 5)
        for i in range(len(padded) - size + 1)
    ]
    yield _question(lower)
    shapes = [_shape(place, word) for place, word in enumerate(words)]
    yield [f"a {shape}" for shape in shapes] + [
        f"s {word} {shape}" for word, shape in zip(lower, shapes[1:], strict=False)
    ]


def _question(words: list[str]) -> list[str]:
    """The question word, and the noun it asks for: county in "What county is Modesto in?"."""
    asked = next((i for i, word in enumerate(words) if word in _QUESTION_WORDS), None)
    question, rest = ("-", words) if asked is None else (words[asked], words[asked + 1 :])
    start = next(
        (i for i, word in enumerate(rest) if word not in _AUXILIARIES | _DETERMINERS), len(rest)
    )
    stop = next(
        (i for i in range(start, len(rest)) if rest[i] in _PREPOSITIONS | _AUXILIARIES), len(rest)
    )
    phrase = rest[start:stop] or ["-"]
    head, after = phrase[-1], rest[stop] if stop < len(rest) else ">"
    return [
        *(f"h {' '.join(words[:size])}" for size in (1, 2, 3)),
        *(f"e {f'<{head}>'[-size:]}" for size in (3, 4, 5)),
        f"q {question}",
        f"q next {question} {rest[0] if rest else '-'}",
        f"q head {question} {head}",
        f"q first {question} {phrase[0]}",
        f"q after {question} {after}",
        f"q size {question} {min(stop - start, 4)}",
        f"head {head}",
        f"head after {head} {after}",
        f"size {min(len(words), 12)}",
    ]


def _shape(place: int, word: str) -> str:
    if word.isdigit():
        return "9"
    if word.isupper() and len(word) > 1:
        return "XX"
    return "x" if place == 0 or word.islower() else "Xx"


def _fit(queries: Sequence[str], gold: NDArray[np.intp], labels: int) -> NDArray[np.float32]:
    """The weights that minimise cross-entropy plus an L2 penalty."""
    from scipy.optimize import minimize
    from scipy.sparse import csr_array

    rows = [_features(query) for query in queries]
    ends = np.cumsum([0, *(len(buckets) for buckets, _ in rows)])
    buckets = np.concatenate([buckets for buckets, _ in rows])
    values = np.concatenate([values for _, values in rows])
    used, columns = np.unique(buckets, return_inverse=True)
    inputs = csr_array((values, columns, ends), shape=(len(rows), len(used)))
    transposed = inputs.T.tocsr()
    truth = np.eye(labels, dtype=np.float32)[gold]

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.astype(np.float32).reshape(len(used), labels)
        logits = inputs @ weights
        logits -= logits.max(axis=1, keepdims=True)
        log_sum = np.log(np.exp(logits).sum(axis=1, keepdims=True))
        errors = (np.exp(logits - log_sum) - truth) / len(rows)
        cross_entropy = float(np.mean(log_sum[:, 0] - (logits * truth).sum(axis=1)))
        penalty = _REGULARISATION / 2 * float(np.square(weights).sum())
        gradient = transposed @ errors + _REGULARISATION * weights
        return cross_entropy + penalty, gradient.astype(np.float64).ravel()

    start = np.zeros(len(used) * labels)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-5, "maxcor": 4})
    weights = np.zeros((BUCKETS, labels), np.float32)
    weights[used] = found.x.reshape(len(used), labels)
    return weights
