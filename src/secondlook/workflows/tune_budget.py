"""How tuning keeps to its time: measured speeds, a plan, training to a deadline."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from secondlook.train.budget import Sizes
    from secondlook.train.run import Job
    from secondlook.types import Qrels
    from secondlook.workflows.tune_stages import Tuning

VALIDATED = 30
"""Hits per query that training is validated on: enough to tell one set of weights from another."""
_PROBED_QUERIES, _PROBED_HITS = 8, 8
_EXPORT_SECONDS = 20.0  # until one was made and timed
REPORT_SECONDS = 30.0
_CHOICE_SECONDS = 15.0  # calibration and fusion
_RESERVE = 0.05  # of the whole: a machine that others use is not as fast as it was a minute ago


def plan(tuning: Tuning) -> None:
    """How much is re-ranked, so that the whole ends in time; kept for later calls."""
    from secondlook.data import read_qrels, write_qrels
    from secondlook.data.durable import write_at_once
    from secondlook.data.origin import read_origin, write_origin
    from secondlook.data.splits import some
    from secondlook.train import budget

    kept = tuning.results / "plan.json"
    parts = {name: read_qrels(tuning.qrels(name)) for name in ("train", "dev", "test")}
    if not kept.exists():
        speed = _scoring_speed(tuning, parts["dev"])
        wanted = budget.Sizes(tuning.depth, len(parts["dev"]), len(parts["test"]))
        left = tuning.clock.left - _small_things(tuning)
        sizes = budget.share_out(wanted, len(parts["train"]), left, speed)
        most = budget.most_queries(tuning.clock.seconds, speed)
        train = min(len(parts["train"]), max(most, 10 * budget.FEWEST_TESTED))
        _tell(tuning, wanted, sizes, speed)
        if train < len(parts["train"]):
            tuning.progress.say(
                f"{train:,} training queries, more than can be seen once in the time"
            )
        figures = asdict(sizes) | {"train": train, "pairs_per_second": speed}
        write_at_once(kept, json.dumps(figures))
    (tuning.results / "used").mkdir(exist_ok=True)
    for name, qrels in parts.items():
        if not tuning.used(name).exists():
            if origin := read_origin(tuning.qrels(name)):
                write_origin(tuning.used(name), origin)
            write_qrels(tuning.used(name), some(qrels, tuning.planned(name)))


def _scoring_speed(tuning: Tuning, qrels: Qrels) -> float:
    """Pairs a second, as the base model is run here."""
    from itertools import islice
    from time import monotonic

    from secondlook.data import read_queries
    from secondlook.errors import SecondlookError
    from secondlook.rank import rerank
    from secondlook.retrieve import open_index
    from secondlook.score.ranker import Ranker

    index, ranker = open_index(tuning.index), Ranker.load(tuning.ranker("untuned"))
    judged = (query for query in read_queries(tuning.queries) if query.id in qrels)
    queries = list(islice(judged, _PROBED_QUERIES))
    found = index.retrieve(queries, _PROBED_HITS)
    if not any(ranking.hits for ranking in found):
        raise SecondlookError(
            f"{tuning.index} finds nothing for validation queries such as "
            f"{[query.text for query in queries[:2]]}: look whether queries and judgments are of "
            "this corpus, and whether the index has its language (secondlook index --language)"
        )
    rerank(queries[:1], found[:1], index, ranker)  # the first call makes things ready
    began = monotonic()
    rerank(queries, found, index, ranker)
    return sum(len(ranking.hits) for ranking in found) / (monotonic() - began)


def _tell(tuning: Tuning, wanted: Sizes, sizes: Sizes, speed: float) -> None:
    """The plan, before the long stages begin."""
    from secondlook.train import budget

    measuring = sizes.pairs / speed
    left = tuning.clock.left - _small_things(tuning)
    training = left - measuring
    spans = {
        "so far": tuning.clock.spent,
        ("retrieval, mining and training" if sizes.rankers > 1 else "spare"): max(0.0, training),
        "re-ranking validation queries": measuring * sizes.dev / (sizes.dev + sizes.test),
        "re-ranking test queries": measuring * sizes.test / (sizes.dev + sizes.test),
        "export, calibration, fusion, report": _small_things(tuning),
    }
    shares = ", ".join(f"{name} {budget.duration(span)}" for name, span in spans.items())
    tuning.progress.say(f"{shares}; in all about {budget.duration(sum(spans.values()))}")
    tuning.progress.say(
        f"scoring speed {speed:,.0f} pairs per second: {sizes.dev:,} validation and "
        f"{sizes.test:,} test queries, {sizes.depth} candidates each"
    )
    if (sizes.depth, sizes.test) != (wanted.depth, wanted.test):
        tuning.progress.warn(
            f"To keep to {tuning.clock.seconds / 60:g} minutes, not {wanted.test:,} test queries "
            f"with {wanted.depth} candidates each. More minutes would do all"
        )
    if training < 0:
        tuning.progress.warn("It will take longer than the time limit: this is the minimum")


def _small_things(tuning: Tuning) -> float:
    """Seconds of all that is neither training nor re-ranking, and a reserve."""
    export = tuning.known.get("export", _EXPORT_SECONDS)
    return export + _CHOICE_SECONDS + REPORT_SECONDS + _RESERVE * tuning.clock.seconds


def train(tuning: Tuning) -> None:
    """Train for as long as what comes after leaves time for, or say that it is too little."""
    from dataclasses import replace
    from time import monotonic

    from secondlook.train.budget import shortest_training
    from secondlook.train.choice import TooLittleTime
    from secondlook.train.recipe import read_recipe
    from secondlook.train.run import train

    after = _pairs(tuning) / tuning.planned("pairs_per_second") + _small_things(tuning)
    ends = monotonic() + tuning.clock.left - after
    recipe = tuning.results / "recipe.toml"
    with tuning.progress.training() as watch:
        try:
            if not recipe.exists():
                if tuning.planned("rankers") == 1 or ends <= monotonic():
                    wanted = (tuning.planned(n) for n in ("train", "dev", "pairs_per_second"))
                    raise TooLittleTime(shortest_training(*wanted))
                _choose(tuning, recipe, ends - monotonic())
        except TooLittleTime as short:
            minutes = ceil((tuning.clock.spent + short.seconds + after) * 1.2 / 60)
            tuning.progress.warn(
                f"too little time to train here: {minutes} minutes would do, with "
                "another output folder. The base model is used without training"
            )
            return
        work = replace(_job(tuning, read_recipe(recipe)), watch=watch, deadline=ends)
        train(work, resume=True)


def _job(tuning: Tuning, recipe: Any) -> Job:  # noqa: ANN401 - a Recipe
    from secondlook.train.run import job

    return job(
        recipe,
        tuning.results / "groups",
        tuning.ranker("trained"),
        base=tuning.base,
        device=tuning.device,
        report_to=tuning.report_to,
    )


def _choose(tuning: Tuning, recipe: Path, seconds: float) -> None:
    """Say what will be done before it is."""
    from secondlook.data.durable import write_at_once
    from secondlook.model.checkpoint import open_checkpoint
    from secondlook.train.choice import fitted, whole_recipe
    from secondlook.train.recipe import DataSettings, resolved

    tuning.progress.say("timing a few training steps on this machine")
    data = DataSettings(train=("train.parquet",), validation="dev.parquet")
    whole = whole_recipe(tuning.base, data, tuning.seed)
    chosen, plan = fitted(_job(tuning, whole), seconds)
    write_at_once(recipe, resolved(chosen))
    longest = open_checkpoint(tuning.ranker("untuned")).settings.encode.max_length
    queries = getattr(chosen.phases[-1], "validate_queries", None) or tuning.planned("dev")
    tuning.progress.say(
        f"{plan}\nwhile it trains it is validated on {queries:,} queries, at most {VALIDATED} "
        f"candidates each, cut to {chosen.encode.get('max_length', longest)} tokens"
    )


def _pairs(tuning: Tuning) -> int:
    """Left to be scored after training, at most."""
    from secondlook.train.budget import Sizes
    from secondlook.workflows.tune_form import has_cross_attention

    sizes = Sizes(*(tuning.planned(name) for name in ("depth", "dev", "test", "rankers")))
    once_more = has_cross_attention(tuning.ranker("untuned"))  # and without cross-attention
    return sizes.pairs + sizes.depth * sizes.dev * once_more
