"""What tuning keeps: the better ranker, the tested queries, the report, the verdict."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from secondlook.evaluate.tuned import TunedComparison
    from secondlook.model.settings import Lineage
    from secondlook.workflows.tune_stages import Tuning

_MEASURES = ("nDCG@10",)


def keep(tuning: Tuning, better: str, figures: Mapping[str, float]) -> None:
    """The better ranker as `tuned`; what became of training stands in its lineage."""
    from secondlook.data.durable import write_at_once
    from secondlook.model.checkpoint import open_checkpoint, replacing, write_settings

    kept = {"weights": better, "nDCG@10": dict(figures)}
    write_at_once(tuning.results / "chosen.json", json.dumps(kept))
    for made_of_it in (tuning.fusion_done, tuning.run("tuned", "tested")):
        made_of_it.unlink(missing_ok=True)
    with replacing(tuning.ranker("tuned")) as half:
        _copy_into(tuning.ranker(better), half)
        if better == "untuned":
            settings = open_checkpoint(half).settings
            lineage = _without_training(settings.lineage, tuning.ranker("trained"))
            write_settings(half, settings.model_copy(update={"lineage": lineage}))


def _without_training(lineage: Lineage, trained: Path) -> Lineage:
    """The base's lineage, with the training that was not kept, or was not done."""
    from secondlook.model.checkpoint import open_checkpoint
    from secondlook.model.settings import Phase

    if not trained.exists():
        return lineage.then(Phase(name="not trained: too little time"))
    for phase in open_checkpoint(trained).settings.lineage.phases[len(lineage.phases) :]:
        if phase.metrics:
            lineage = lineage.then(
                Phase(name=f"{phase.name}, not kept", metrics=phase.metrics, labels=phase.labels)
            )
    return lineage


def make_once(target: Path, ranker: Path, noted: Path, make: Callable[[], None]) -> None:
    """Make what lies outside the stages, unless `noted` says that it was made of this ranker.

    Where stages were removed, the ranker is another one now; where they were not, what somebody set
    in a shipped ranker stays.
    """
    from secondlook.data.durable import write_at_once
    from secondlook.model.checkpoint import files_fingerprint

    if not _is_made_of(ranker, target, noted):
        make()
        write_at_once(noted, files_fingerprint(ranker))


def _is_made_of(ranker: Path, target: Path, noted: Path) -> bool:
    from secondlook.model.checkpoint import files_fingerprint

    there = target.exists() and noted.is_file()
    return there and noted.read_text("utf-8") == files_fingerprint(ranker)


def ship(tuning: Tuning) -> None:
    """Put the tuned ranker in place."""
    from functools import partial

    tuned = tuning.ranker("tuned")
    make_once(tuning.shipped, tuned, tuning.ship_noted, partial(copy, tuned, tuning.shipped))


def warn_of_earlier(tuning: Tuning) -> None:
    """Where none is shipped, a ranker of an earlier tuning would pass for the one tested now."""
    shipped, tuned = tuning.shipped, tuning.ranker("tuned")
    if shipped.exists() and not _is_made_of(tuned, shipped, tuning.ship_noted):
        tuning.progress.warn(f"{shipped} is of an earlier tuning, not the re-ranker tested here")


def copy(ranker: Path, target: Path) -> None:
    """Whole or not at all."""
    from secondlook.model.checkpoint import replacing

    with replacing(target) as half:
        _copy_into(ranker, half)


def _copy_into(ranker: Path, folder: Path) -> None:
    from shutil import copytree

    copytree(ranker, folder, dirs_exist_ok=True)


def write_tested(tuning: Tuning, affordable: int) -> None:
    """The candidates of the test queries that there is time for, and their judgments."""
    from secondlook.data import read_qrels, read_run, write_qrels, write_run
    from secondlook.data.splits import some
    from secondlook.train.budget import FEWEST_TESTED
    from secondlook.workflows.retrieve import retrieve

    qrels = read_qrels(tuning.used("test"))
    tested = some(qrels, max(FEWEST_TESTED, affordable))
    if len(tested) < len(qrels):
        tuning.progress.warn(
            f"only {len(tested):,} of {len(qrels):,} test queries are re-ranked: the time is short"
        )
    write_qrels(tuning.used("tested"), tested)
    if tuning.by in ("vectors", "hybrid"):  # the verdict is about what the user has: BM25
        run, depth = tuning.run("bm25", "tested"), tuning.planned("depth")
        judged = tuning.used("tested")
        retrieve(tuning.index, tuning.queries, run, k=depth, by="bm25", judged=judged)
    candidates = read_run(tuning.candidates("test"))
    own = (ranking for ranking in candidates if ranking.query_id in tested)
    write_run(tuning.candidates("tested"), own, tag=tuning.by)


def whole_documents(tuning: Tuning, name: str, part: str) -> Path:
    """The run of a ranker alone, a line for each document; its raw run may have one per window."""
    from secondlook.data import read_run, write_run
    from secondlook.model.checkpoint import open_checkpoint
    from secondlook.score.raw import pooled

    raw, windows = (
        tuning.run(name, part),
        open_checkpoint(tuning.ranker(name)).settings.encode.windows,
    )
    if windows is None:
        return raw
    made = tuning.run(f"{name}.pooled", part)
    write_run(made, (pooled(ranking, windows) for ranking in read_run(raw)), tag="secondlook")
    return made


def write_fused(tuning: Tuning) -> None:
    """The tuned ranker's run, from its raw scores: nothing is scored again."""
    from secondlook.data import read_run, write_run
    from secondlook.model.checkpoint import open_checkpoint
    from secondlook.rank.fusion import Fusion
    from secondlook.score.fusion_choice import Way, ranked, read_looks

    settings = open_checkpoint(tuning.ranker("tuned")).settings
    windows, stored = settings.encode.windows, settings.fusion
    looks = read_looks(
        read_run(tuning.candidates("tested")),
        read_run(tuning.run(tuning.better, "tested")),
        windows=windows is not None,
    )
    fusion = Fusion(stored.weight, stored.scale) if stored else None
    rankings = ranked(looks, Way(windows, fusion))
    write_run(tuning.run("tuned", "tested"), rankings, tag="secondlook")


def write_report(tuning: Tuning) -> None:
    """The page, and the experiment that it is made of."""
    import tomlkit

    from secondlook.data.durable import write_at_once
    from secondlook.workflows.report import report

    experiment = tuning.results / "experiment.toml"
    named = {
        "title": "Does the tuned ranker help?",
        "qrels": [str(tuning.used("tested").resolve())],
        "queries": [str(tuning.queries.resolve())],
        "base": [str(tuning.run("bm25", "tested").resolve())],
        "new": [str(tuning.run("tuned", "tested").resolve())],
        "raw": [str(tuning.run(tuning.better, "tested").resolve())],
        "corpus": str(tuning.index.resolve()),
        "ranker": str(tuning.ranker("tuned").resolve()),
        "measures": list(_MEASURES),
        "commands": [command(tuning)],
    }
    if not _is_untuned(tuning):
        named["untuned"] = [str(whole_documents(tuning, "untuned", "tested").resolve())]
    write_at_once(experiment, tomlkit.dumps(named))

    def make() -> None:
        tuning.progress.say(report(experiment, tuning.report).summary())

    make_once(tuning.report, tuning.ranker("tuned"), tuning.results / "report.made-of", make)


def command(tuning: Tuning) -> str:
    """What makes it all again, with every option."""
    given = {
        "--minutes": f"{tuning.clock.seconds / 60:g}",
        "--depth": tuning.depth,
        "--overlap": tuning.overlap,
        "--clicks": tuning.clicks,
        "--expander": tuning.expander,
        "--index": tuning.given_index,
        "--device": tuning.device,
        "--seed": tuning.seed,
    }
    words = ["secondlook", "tune", str(tuning.data), "-o", str(tuning.output)]
    for base in tuning.bases:
        words += ["--base", base]
    for name, value in given.items():
        words += [name, str(value)] if value is not None else []
    return shlex.join(words)


def write_verdict(tuning: Tuning) -> TunedComparison:
    """BM25, the untuned and the tuned ranker against each other; kept beside the report."""
    import numpy as np

    from secondlook.data import read_qrels, read_queries, read_run
    from secondlook.data.durable import write_at_once
    from secondlook.evaluate.tuned import compare_tuned
    from secondlook.model.checkpoint import open_checkpoint

    shown = {"bm25": "first stage" if tuning.given_index else "bm25"}
    files = {name: tuning.run(name, "tested") for name in ("bm25", "tuned")}
    files["untuned"] = whole_documents(tuning, "untuned", "tested")
    runs = {name: (shown.get(name, name), list(read_run(path))) for name, path in files.items()}
    tests = compare_tuned(
        read_qrels(tuning.used("tested")),
        runs["bm25"],
        None if _is_untuned(tuning) else runs["untuned"],
        runs["tuned"],
        _MEASURES,
        rng=np.random.default_rng(0),
        texts={query.id: query.text for query in read_queries(tuning.queries)},
        first_stage_alone=open_checkpoint(tuning.ranker("tuned")).settings.first_stage_alone,
    )
    figures: dict[str, Any] = tests.first_stage.to_dict()
    figures["against_untuned"] = tests.gain.to_dict() if tests.gain else None
    figures["gain"] = tests.gain_sentence()
    figures["first_stage_alone"] = tests.first_stage_alone
    figures |= {"base": tuning.base, "bases": tuning.tried_bases, "labels": tuning.judged_by()}
    write_at_once(tuning.output / "verdict.json", json.dumps(figures, indent=2))
    return tests


def _is_untuned(tuning: Tuning) -> bool:
    """Whether the tuned ranker ranks as the untuned one: weights, pooling, and no fusion."""
    from secondlook.model.checkpoint import open_checkpoint

    tuned, untuned = (open_checkpoint(tuning.ranker(n)).settings for n in ("tuned", "untuned"))
    same = tuning.better == "untuned" and tuned.encode.windows == untuned.encode.windows
    return same and tuned.fusion is None
