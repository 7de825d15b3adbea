"""Which pooling and which fusion suit a ranker, by judgments of both stages' hits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, get_args

import numpy as np

from secondlook.encode.windows import pool
from secondlook.errors import SecondlookError, UnknownName
from secondlook.evaluate.cross_validation import best_of, cross_validate, judged_among
from secondlook.evaluate.measures import depth_of, evaluate, refuse_strangers
from secondlook.evaluate.significance import t_test
from secondlook.model.settings import FusionSettings
from secondlook.rank.fusion import BothScores, Fusion, Scale, second_look
from secondlook.score.raw import windows_of
from secondlook.types import Ranking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from secondlook.encode.settings import WindowSettings
    from secondlook.evaluate.cross_validation import Tuned
    from secondlook.model.settings import RankerSettings
    from secondlook.types import Qrels

SCALES: tuple[Scale, ...] = ("min-max", "z")
"""Those that are tried unless others are named: `ranks` lost wherever it was measured, and `raw`
would tie a ranker to one engine's scores."""
WEIGHTS = tuple(step / 20 for step in range(1, 21))
_RESAMPLES = 200
"""Bootstrap samples of the queries."""
_SIMPLE = ("max", "first", "mean")
_TOP = (2, 3, 5)
"""How many of a document's best windows count, with equal weights or with 1, 1/2, 1/3, …"""
_LATER = (0.75, 0.5, 0.25)
"""What the second and third best windows may weigh beside the best one's 1, never rising."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to make a document's final score: `pooling` of its windows, and `fusion`."""

    pooling: WindowSettings | None
    fusion: Fusion | None

    @property
    def weight(self) -> float:
        """Of the first stage's score; 0 where the ranker's is used alone."""
        return self.fusion.weight if self.fusion is not None else 0.0

    @property
    def simple(self) -> bool:
        """Whether one of the looks decides alone."""
        return self.weight in (0, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """Both looks' scores of the same hits."""

    first: tuple[Ranking, ...]
    """Of the first stage only those hits that the re-ranking has scored."""
    second: NDArray[np.float32]  # [windows], raw: hit after hit
    counts: NDArray[np.intp]  # [hits], how many windows each has


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """Every way, with what each query reached by it."""

    ways: tuple[Way, ...]
    values: NDArray[np.float64]  # [ways, queries]
    folds: int
    seed: int
    left_out: int
    """Judged queries that the run of raw scores does not have."""

    def among(self, wanted: Callable[[Way], bool]) -> tuple[Way, Tuned]:
        """The best of the wanted ways, and what choosing among them is worth on new queries.

        Queries are dealt into the same folds at every call.
        """
        places = [place for place, way in enumerate(self.ways) if wanted(way)]
        own, rng = [self.ways[place] for place in places], np.random.default_rng(self.seed)
        choice = partial(choose, own, seed=self.seed)
        tuned = cross_validate(self.values[places], choice, self.folds, rng)
        return own[tuned.best], tuned

    def best(self) -> TunedFusion:
        """The way to take, beside the first stage and the ranker alone."""
        _, first = self.among(lambda way: way.weight == 1)
        _, alone = self.among(lambda way: way.fusion is None)
        way, fused = self.among(lambda _: True)
        better = max(first.held_out, alone.held_out, key=lambda values: values.mean())
        poolings = list(dict.fromkeys(way.pooling for way in self.ways))
        return TunedFusion(
            way,
            len(better),
            float(first.held_out.mean()),
            float(alone.held_out.mean()),
            float(fused.held_out.mean()),
            t_test(fused.held_out - better),
            {pooling_name(pooling): self._with_pooling(pooling) for pooling in poolings}
            if len(poolings) > 1
            else {},
            self.left_out,
        )

    def _with_pooling(self, pooling: WindowSettings | None) -> dict[str, float]:
        _, alone = self.among(lambda way: way.pooling == pooling and way.fusion is None)
        _, fused = self.among(lambda way: way.pooling == pooling)
        return {"ranker": float(alone.held_out.mean()), "fused": float(fused.held_out.mean())}

    def curves(self, pooling: WindowSettings | None) -> dict[Scale, list[tuple[float, float]]]:
        """For each scale the weights from 0 to 1, each with the mean over all queries."""
        means = zip(self.ways, self.values.mean(axis=1).tolist(), strict=True)
        by_fusion = {way.fusion: mean for way, mean in means if way.pooling == pooling}
        alone = by_fusion.pop(None)
        curves: dict[Scale, list[tuple[float, float]]] = {}
        for fusion, mean in by_fusion.items():
            assert fusion is not None
            curves.setdefault(fusion.scale, [(0.0, alone)]).append((fusion.weight, mean))
        return curves


@dataclass(frozen=True, slots=True)
class TunedFusion:
    """The way that suits a ranker, with cross-validated means of a measure."""

    way: Way
    queries: int
    first: float
    """Of the first stage alone."""
    ranker: float
    """Of the ranker alone."""
    fused: float
    """Of the best of all ways, chosen anew in each fold."""
    p: float
    """Of the difference between `fused` and the better of the two."""
    poolings: Mapping[str, Mapping[str, float]]
    """For a ranker that reads windows, `ranker` and `fused` by each pooling; else empty."""
    left_out: int
    """Judged queries that the run of raw scores does not have: never searched, or without hits."""


def pooling_name(pooling: WindowSettings | None) -> str:
    """How a table names it; `whole` where documents are not read in windows."""
    if pooling is None or pooling.pooling != "top":
        return "whole" if pooling is None else pooling.pooling
    return f"top {', '.join(f'{weight:.2g}' for weight in pooling.weights)}"


def settings_with(settings: RankerSettings, way: Way) -> RankerSettings:
    """The settings with this pooling and fusion; another pooling makes a calibration void."""
    fusion = way.fusion and FusionSettings(weight=way.fusion.weight, scale=way.fusion.scale)
    encode = settings.encode.model_copy(update={"windows": way.pooling})
    kept = settings.calibration if encode == settings.encode else None
    changes = {"fusion": fusion, "encode": encode, "calibration": kept}
    return settings.model_copy(update=changes)


def read_looks(first: Iterable[Ranking], raw: Iterable[Ranking], *, windows: bool) -> Looks:
    """Both looks of the queries that the raw run has; `windows` where its hits are windows."""
    found = {ranking.query_id: ranking for ranking in first}
    kept, scores, counts = [], [], []
    for ranking in raw:
        own = (
            windows_of(ranking)
            if windows
            else {hit.doc_id: np.array([hit.score], np.float32) for hit in ranking.hits}
        )
        before = found.get(ranking.query_id, Ranking(ranking.query_id, ()))
        hits = tuple(hit for hit in before.hits if hit.doc_id in own)
        if len(hits) < len(own):
            raise SecondlookError(
                f"query {ranking.query_id!r}: the re-ranking scored documents that the first "
                "look's run does not have; give the run that was re-ranked"
            )
        kept.append(Ranking(ranking.query_id, hits))
        scores += [own[hit.doc_id] for hit in hits]
        counts += [len(own[hit.doc_id]) for hit in hits]
    if not counts:
        raise SecondlookError("the run of raw scores is empty; there is nothing to tune")
    return Looks(tuple(kept), np.concatenate(scores), np.array(counts, np.intp))


def read_scales(names: Sequence[str] | None) -> tuple[Scale, ...]:
    """The scales of these names, or those that are tried by default; raises UnknownName."""
    known: tuple[Scale, ...] = get_args(Scale)
    for name in names or ():
        if name not in known:
            raise UnknownName("scale", name, known)
    return tuple(scale for scale in known if scale in names) if names else SCALES


def ways(windows: WindowSettings | None, scales: Sequence[Scale] = SCALES) -> list[Way]:
    """Every way that is tried, the simplest first: the ranker alone, then with the first stage."""
    fusions = [None, *(Fusion(weight, scale) for scale in scales for weight in WEIGHTS)]
    return [Way(pooling, fusion) for pooling in _poolings(windows) for fusion in fusions]


def choose(own: Sequence[Way], values: NDArray[np.float64], *, seed: int) -> int:
    """Which of these ways to take, by what each query reaches: [ways, queries].

    For each pooling and scale, the weight is the mean of the best weights over bootstrap samples of
    the queries (bagging): it varies less with the queries than the best weight does. The best of
    these is taken, unless the first stage is better alone.
    """
    queries = values.shape[1]
    rng = np.random.default_rng(seed)
    times = rng.multinomial(queries, np.full(queries, 1 / queries), _RESAMPLES)
    drawn = (values @ times.T).round(9)  # [ways, resamples]
    places = []
    for curve in _curves(own):
        weights = np.array([own[place].weight for place in curve])
        mean = weights[drawn[curve].argmax(axis=0)].mean()
        places.append(curve[int(abs(weights - mean).argmin())])
    # The ranker alone is where a curve begins: that it is best for these queries may be luck too.
    first_alone = [place for place, way in enumerate(own) if way.weight == 1]
    places = [*places, *first_alone] if places else list(range(len(own)))
    places.sort(key=lambda place: not own[place].simple)  # of equals, one look alone
    return places[best_of(values[places])]


def _curves(own: Sequence[Way]) -> list[list[int]]:
    """The places of ways that differ in nothing but the weight, which rises from 0."""
    curves: dict[tuple[WindowSettings | None, Scale], list[int]] = {}
    for place, way in enumerate(own):
        if way.fusion is not None:
            curves.setdefault((way.pooling, way.fusion.scale), []).append(place)
    alone = {way.pooling: place for place, way in enumerate(own) if way.fusion is None}
    return [
        [alone[pooling], *places] for (pooling, _), places in curves.items() if pooling in alone
    ]


def tune(
    looks: Looks, qrels: Qrels, tried: Sequence[Way], measure: str, *, folds: int, seed: int
) -> Tuning:
    """What each judged query of the run reaches by each way."""
    refuse_strangers(qrels, looks.first)
    own = judged_among(qrels, {ranking.query_id for ranking in looks.first})
    values: dict[Way, NDArray[np.float64]] = {}
    for pooling in dict.fromkeys(way.pooling for way in tried):
        pooled = _pooled(looks, pooling)
        fusions = [way.fusion for way in tried if way.pooling == pooling]
        if None in fusions:
            alone = _final(looks.first, pooled, None)
            values[Way(pooling, None)] = values_of(alone, own, measure)
        both = [fusion for fusion in fusions if fusion is not None]
        rows = values_by_fusion(partial(_joined, looks.first, pooled), both, own, measure)
        values |= {Way(pooling, fusion): row for fusion, row in zip(both, rows, strict=True)}
    by_way = np.array([values[way] for way in tried])
    return Tuning(tuple(tried), by_way, folds, seed, len(qrels) - len(own))


def values_by_fusion(
    joined: Callable[[Scale], Iterable[BothScores]],
    fusions: Sequence[Fusion],
    qrels: Qrels,
    measure: str,
    k: int | None = None,
) -> list[NDArray[np.float64]]:
    """The measure of each query by each fusion; `joined` gives all queries' scores on a scale.

    Hits that the measure does not look at are not made: there are many fusions to try.
    """
    seen = [depth for depth in (k, depth_of(measure)) if depth is not None]
    depth = min(seen, default=None)
    rows: dict[Fusion, NDArray[np.float64]] = {}
    for scale in dict.fromkeys(fusion.scale for fusion in fusions):
        own = [fusion for fusion in fusions if fusion.scale == scale]
        weights = [fusion.weight for fusion in own]
        rankings = [both.fused(weights, depth) for both in joined(scale)]
        for fusion, column in zip(own, zip(*rankings, strict=True), strict=True):
            rows[fusion] = values_of(column, qrels, measure)
    return [rows[fusion] for fusion in fusions]


def values_of(
    rankings: Iterable[Ranking], qrels: Qrels, measure: str
) -> NDArray[np.float64]:  # [queries]
    """The measure of each judged query."""
    (per_query,) = evaluate(qrels, rankings, [measure]).per_query.values()
    return np.array(list(per_query.values()))


def ranked(looks: Looks, way: Way) -> Iterator[Ranking]:
    """The final rankings by one way: what the ranker would give, without scoring anything again."""
    return _final(looks.first, _pooled(looks, way.pooling), way.fusion)


def _pooled(looks: Looks, pooling: WindowSettings | None) -> NDArray[np.float32]:
    if pooling is None:
        return looks.second
    return pool(looks.second, looks.counts.tolist(), pooling)


def _final(
    first: Sequence[Ranking], scores: NDArray[np.float32], fusion: Fusion | None
) -> Iterator[Ranking]:
    for ranking, own in _by_query(first, scores):
        yield second_look(ranking, own, fusion)


def _joined(
    first: Sequence[Ranking], scores: NDArray[np.float32], scale: Scale
) -> Iterator[BothScores]:
    for ranking, own in _by_query(first, scores):
        yield BothScores.of_same_hits(ranking, own, scale)


def _by_query(
    first: Sequence[Ranking], scores: NDArray[np.float32]
) -> Iterator[tuple[Ranking, NDArray[np.float32]]]:
    """Each ranking with the scores of its hits."""
    start = 0
    for ranking in first:
        end = start + len(ranking.hits)
        yield ranking, scores[start:end]
        start = end


def _poolings(windows: WindowSettings | None) -> list[WindowSettings | None]:
    if windows is None:
        return [None]
    level = [(1 / n,) * n for n in _TOP]
    falling = [tuple(1 / rank for rank in range(1, n + 1)) for n in _TOP]
    grid = [(1.0, second, third) for second in _LATER for third in _LATER if third <= second]
    weights = [*level, *falling, *grid]
    return [
        *(windows.model_copy(update={"pooling": name, "weights": ()}) for name in _SIMPLE),
        *(windows.model_copy(update={"pooling": "top", "weights": w}) for w in weights),
    ]
