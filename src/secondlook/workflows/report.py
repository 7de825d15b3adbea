"""An HTML report of a comparison, from a file that names its runs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    import numpy as np

    from secondlook.evaluate.breakdown import Facet
    from secondlook.evaluate.calibration import Reliability
    from secondlook.evaluate.comparison import Comparisons
    from secondlook.model.settings import RankerSettings
    from secondlook.types import Document, Qrels, Query, Ranking
    from secondlook.workflows.experiment import Experiment


@dataclass(frozen=True, slots=True)
class ReportResult:
    """A report that was written, and what it says."""

    path: Path
    megabytes: float
    comparison: Comparisons
    """Of the new run with the baseline."""

    @property
    def verdict(self) -> str:
        """Whether the new run helps, hurts, or neither can be told."""
        return self.comparison.runs[0].verdict

    def summary(self) -> str:
        """One line: file, size and verdict."""
        return f"{self.path}: {self.megabytes:.2f} MB; {self.verdict}"

    def to_dict(self) -> dict[str, Any]:
        """The file and all figures of the comparison."""
        return {"path": str(self.path), "comparison": self.comparison.to_dict()}


def report(experiment: str | Path, output: str | Path, *, seed: int = 0) -> ReportResult:
    """Write an HTML report that compares a run with a baseline.

    `experiment` is a TOML file that names judgments, queries and runs, and the corpus and the
    re-ranker if the report is to show texts and training. The page is one file and needs no
    network.

    >>> import secondlook as sl
    >>> sl.report("experiment.toml", "report.html").path.name
    'report.html'
    """
    import numpy as np

    from secondlook.data.durable import write_at_once
    from secondlook.evaluate.breakdown import break_down
    from secondlook.evaluate.depth import depth_curve, same_hits
    from secondlook.evaluate.report_page import Report, report_page, shown_documents, stories
    from secondlook.workflows.experiment import (
        judged_queries,
        judgments,
        rankings,
        read_experiment,
        texts,
    )

    experiment, output = Path(experiment), Path(output)
    about = read_experiment(experiment)
    rng = np.random.default_rng(seed)
    qrels = judgments(about.qrels)
    queries = judged_queries(about.queries, qrels)
    base, new = rankings(about.base, qrels), rankings(about.new, qrels)
    names = [" + ".join(Path(path).name for path in paths) for paths in (about.base, about.new)]
    found, gain = _compared(about, qrels, queries, (names[0], base), (names[1], new), rng)
    first = found.runs[0].differences[0]
    known = (
        texts(about.corpus, shown_documents(qrels, base, new, about.relevant_from))
        if about.corpus
        else {}
    )
    facets = _facets(about, qrels, queries, base, known)
    reranked = same_hits(base, new) == 1.0
    calibrated, reason = _calibrated(about, qrels, new)
    page = report_page(
        Report(
            about.title,
            found,
            tuple(break_down(first, facet, rng) for facet in facets),
            tuple(depth_curve(qrels, base, new, first.measure)) if reranked else (),
            stories(first, qrels, queries, base, new, known),
            calibrated,
            no_calibration=reason,
            **_of_ranker(about),
            gain=gain,
            commands=(
                *about.commands,
                f"secondlook report {experiment.name} -o {output.name} --seed {seed}",
            ),
        )
    )
    write_at_once(output, page)
    return ReportResult(output, len(page.encode()) / 1e6, found)


def _compared(
    about: Experiment,
    qrels: Qrels,
    queries: Sequence[Query],
    base: tuple[str, Sequence[Ranking]],
    new: tuple[str, Sequence[Ranking]],
    rng: np.random.Generator,
) -> tuple[Comparisons, str]:
    """The new run alone, as a comparison of all runs finds it, and what tuning itself brought."""
    from secondlook.evaluate.compare import compare
    from secondlook.evaluate.tuned import compare_tuned
    from secondlook.model.checkpoint import open_checkpoint
    from secondlook.workflows.experiment import rankings

    texts = {query.id: query.text for query in queries}
    others = [(path, rankings([path], qrels)) for path in about.others]
    if about.untuned:
        untuned = "untuned", rankings(about.untuned, qrels)
        settings = open_checkpoint(about.ranker).settings if about.ranker else None
        tests = compare_tuned(
            qrels,
            base,
            untuned,
            new,
            about.measures,
            rng=rng,
            texts=texts,
            first_stage_alone=settings is not None and settings.first_stage_alone,
            others=others,
        )
        return replace(tests.first_stage, runs=(tests.tuned,)), tests.gain_sentence()
    found = compare(qrels, base, [*others, new], about.measures, rng=rng, texts=texts)
    return replace(found, runs=found.runs[-1:]), ""


def _facets(
    about: Experiment,
    qrels: Qrels,
    queries: Sequence[Query],
    base: Sequence[Ranking],
    known: Mapping[str, Document],
) -> list[Facet]:
    from secondlook.analyze import DEFAULT, analyzer
    from secondlook.evaluate.breakdown import document_facets, first_stage_facet, query_facets
    from secondlook.retrieve.folder import CARD, read_card

    folder = Path(about.corpus or "")
    indexed = about.corpus is not None and (folder / CARD).is_file()
    terms = analyzer(read_card(folder).analyzer if indexed else DEFAULT).terms
    facets = query_facets(_typed(about, queries), _split_words(about))
    facets.append(first_stage_facet(qrels, base, about.relevant_from))
    if known:
        facets += document_facets(queries, qrels, known, terms, about.relevant_from)
    return [facet for facet in facets if facet.values]


def _typed(about: Experiment, queries: Sequence[Query]) -> list[Query]:
    """The queries with their types, predicted where the ranker can and they have none."""
    from secondlook.encode.type_classifier import TypeClassifier
    from secondlook.model.checkpoint import TYPES, locate

    if about.ranker is None or not (locate(about.ranker) / TYPES).is_file():
        return list(queries)
    predicted = TypeClassifier.load(locate(about.ranker) / TYPES).predict([q.text for q in queries])
    return [replace(q, type=q.type or t) for q, t in zip(queries, predicted, strict=True)]


def _split_words(about: Experiment) -> Callable[[str], int] | None:
    """Counts the words that the ranker's tokenizer has to split."""
    if about.ranker is None:
        return None
    from secondlook.encode.tokens import count_split_words
    from secondlook.model.checkpoint import locate, read_tokenizer

    return partial(count_split_words, read_tokenizer(locate(about.ranker)))


def _calibrated(
    about: Experiment, qrels: Qrels, new: Sequence[Ranking]
) -> tuple[Reliability | None, str]:
    """How far probabilities are off, or why that is not known."""
    from secondlook.errors import SecondlookError
    from secondlook.model.checkpoint import open_checkpoint
    from secondlook.score.calibration import raw_scores_of, reliability
    from secondlook.score.raw import tag_of_scores
    from secondlook.workflows.experiment import rankings

    settings = open_checkpoint(about.ranker).settings if about.ranker else None
    run = rankings(about.raw, qrels) if about.raw else new
    try:
        if settings is not None:
            run = raw_scores_of(settings, run, tag_of_scores((about.raw or about.new)[0]))
        return reliability(settings, run, qrels, about.relevant_from), ""
    except SecondlookError as reason:
        return None, str(reason)


def _fitted(settings: RankerSettings) -> Iterator[tuple[str, dict[str, float]]]:
    """What was fitted to the ranker's scores after training."""
    if settings.calibration is not None:
        numbers = settings.calibration.model_dump().items()
        figures = {name: value for name, value in numbers if isinstance(value, float)}
        yield f"calibration ({settings.calibration.kind})", figures
    if settings.fusion is not None:
        weight = {"weight of the first stage": settings.fusion.weight}
        yield f"score fusion ({settings.fusion.scale})", weight


def _of_ranker(about: Experiment) -> dict[str, Any]:
    """What the ranker's folder tells of its making."""
    if about.ranker is None:
        return {}
    from secondlook.model.checkpoint import locate, open_checkpoint

    folder = locate(about.ranker)
    settings = open_checkpoint(folder).settings
    lineage = settings.lineage
    told: dict[str, Any] = {
        "lineage": (
            (lineage.base, {}),
            *((p.name, p.metrics) for p in lineage.phases),
            *_fitted(settings),
        )
    }
    if (folder / "curve.png").is_file():
        told["curve"] = (folder / "curve.png").read_bytes()
    if (folder / "denoise.json").is_file():
        told["dropped_figures"] = json.loads((folder / "denoise.json").read_text("utf-8"))
        with (folder / "dropped.jsonl").open(encoding="utf-8") as lines:
            rows = sorted(map(json.loads, lines), key=lambda row: -row["score"])
        told["dropped"] = tuple(islice(rows, 10))
    return told
