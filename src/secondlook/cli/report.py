"""`secondlook report`: an HTML report of a comparison."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    import numpy as np

    from secondlook.cli.experiment import Experiment
    from secondlook.evaluate.breakdown import Facet
    from secondlook.evaluate.calibration import Reliability
    from secondlook.evaluate.compare import Comparisons, Difference
    from secondlook.evaluate.report import ShownHit, Story
    from secondlook.model.settings import RankerSettings
    from secondlook.types import Document, Qrels, Query, Ranking


def report(
    experiment: Annotated[
        Path,
        typer.Argument(
            metavar="EXPERIMENT", help="TOML file that names the runs; see the example."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    seed: Annotated[int, typer.Option(help="Random seed of the resampling.", min=0)] = 0,
) -> None:
    """Write an HTML report that compares a run with a baseline.

    The page is one file and needs no network: the verdict, the figures, all queries, breakdowns,
    the depth curve, calibration, the queries with the largest gains and losses, lineage and
    commands.

    [bold]Example[/bold]

      secondlook report experiment.toml -o report.html

    [bold]experiment.toml[/bold] (the last four lines are optional)

      qrels = ["qrels/test.tsv"]
      queries = ["queries.jsonl"]
      base = ["bm25.trec"]
      new = ["reranked.trec"]
      corpus = "my.index"
      ranker = "my.ranker"
      measures = ["nDCG@10", "RR@10"]
      commands = ["secondlook rerank bm25.trec …"]
    """
    import numpy as np

    from secondlook.cli.experiment import asked, judgments, rankings, read_experiment, texts
    from secondlook.data.durable import write_at_once
    from secondlook.evaluate.breakdown import break_down
    from secondlook.evaluate.depth import depth_curve, same_hits
    from secondlook.evaluate.report import Report, report_page

    about = read_experiment(experiment)
    rng = np.random.default_rng(seed)
    qrels = judgments(about.qrels)
    queries = asked(about.queries, qrels)
    base, new = rankings(about.base, qrels), rankings(about.new, qrels)
    names = [" + ".join(Path(path).name for path in paths) for paths in (about.base, about.new)]
    found, gain = _compared(about, qrels, queries, (names[0], base), (names[1], new), rng)
    first = found.runs[0].differences[0]
    known = texts(about.corpus, _wanted(about, qrels, base, new)) if about.corpus else {}
    facets = _facets(about, qrels, queries, base, known)
    reranked = same_hits(base, new) == 1.0
    calibrated, reason = _calibrated(about, qrels, new)
    page = report_page(
        Report(
            about.title,
            found,
            tuple(break_down(first, facet, rng) for facet in facets),
            tuple(depth_curve(qrels, base, new, first.measure)) if reranked else (),
            _stories(first, qrels, queries, base, new, known),
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
    typer.echo(f"{output}: {len(page.encode()) / 1e6:.2f} MB; {found.runs[0].verdict}")


def _compared(
    about: Experiment,
    qrels: Qrels,
    queries: Sequence[Query],
    base: tuple[str, Sequence[Ranking]],
    new: tuple[str, Sequence[Ranking]],
    rng: np.random.Generator,
) -> tuple[Comparisons, str]:
    """The new run alone, as a comparison of all runs finds it, and what tuning itself brought."""
    from dataclasses import replace

    from secondlook.cli.experiment import rankings
    from secondlook.evaluate.compare import compare
    from secondlook.evaluate.tuned import compare_tuned

    texts = {query.id: query.text for query in queries}
    if about.untuned:
        untuned = "untuned", rankings(about.untuned, qrels)
        tests = compare_tuned(qrels, base, untuned, new, about.measures, rng=rng, texts=texts)
        return replace(tests.first_stage, runs=(tests.tuned,)), tests.gain_sentence()
    others = [(path, rankings([path], qrels)) for path in about.others]
    found = compare(qrels, base, [*others, new], about.measures, rng=rng, texts=texts)
    return replace(found, runs=found.runs[-1:]), ""


def _wanted(
    about: Experiment, qrels: Qrels, base: Sequence[Ranking], new: Sequence[Ranking]
) -> set[str]:
    """The documents whose texts the page has a use for."""
    from secondlook.evaluate.report import SHOWN_HITS

    relevant = {
        doc_id
        for grades in qrels.values()
        for doc_id, grade in grades.items()
        if grade >= about.relevant_from
    }
    shown = {hit.doc_id for run in (base, new) for r in run for hit in r.hits[:SHOWN_HITS]}
    return relevant | shown


def _facets(
    about: Experiment,
    qrels: Qrels,
    queries: Sequence[Query],
    base: Sequence[Ranking],
    known: Mapping[str, Document],
) -> list[Facet]:
    from secondlook.evaluate.breakdown import document_facets, first_stage_facet, query_facets
    from secondlook.retrieve.analyze import EnglishAnalyzer

    terms = EnglishAnalyzer().terms
    facets = query_facets(_typed(about, queries), _split_words(about))
    facets.append(first_stage_facet(qrels, base, about.relevant_from))
    if known:
        facets += document_facets(queries, qrels, known, terms, about.relevant_from)
    return [facet for facet in facets if facet.values]


def _typed(about: Experiment, queries: Sequence[Query]) -> list[Query]:
    """The queries with their types, predicted where the ranker can and they have none."""
    from dataclasses import replace

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
    from secondlook.encode.tokens import word_beginnings
    from secondlook.model.checkpoint import locate, read_tokenizer

    tokenizer = read_tokenizer(locate(about.ranker))

    def count(text: str) -> int:
        words = tokenizer.encode(text, add_special_tokens=False).word_ids
        begins = word_beginnings(words)
        return int((begins[:-1] & ~begins[1:]).sum())  # a word whose first piece has a second

    return count


def _stories(
    first: Difference,
    qrels: Qrels,
    queries: Sequence[Query],
    base: Sequence[Ranking],
    new: Sequence[Ranking],
    known: Mapping[str, Document],
) -> tuple[Story, ...]:
    from secondlook.evaluate.report import SHOWN_HITS, ShownHit, Story

    said = {query.id: query.text for query in queries}
    looks = [{ranking.query_id: ranking.hits for ranking in run} for run in (base, new)]

    def hits(look: int, query: str) -> tuple[ShownHit, ...]:
        return tuple(
            ShownHit(
                hit.doc_id,
                qrels[query].get(hit.doc_id),
                known[hit.doc_id].text if hit.doc_id in known else "",
            )
            for hit in looks[look].get(query, ())[:SHOWN_HITS]
        )

    ordered = sorted(first.deltas, key=lambda query: -first.deltas[query])
    return tuple(
        Story(said.get(query, query), *first.values[query], hits(0, query), hits(1, query))
        for query in ordered
    )


def _calibrated(
    about: Experiment, qrels: Qrels, new: Sequence[Ranking]
) -> tuple[Reliability | None, str]:
    """How far probabilities are off, or why that is not known."""
    from secondlook.cli.experiment import rankings
    from secondlook.data import run_tag
    from secondlook.errors import SecondlookError
    from secondlook.model.checkpoint import open_checkpoint
    from secondlook.score.calibration import raw_scores_of, reliability

    settings = open_checkpoint(about.ranker).settings if about.ranker else None
    run = rankings(about.raw, qrels) if about.raw else new
    try:
        if settings is not None:
            run = raw_scores_of(settings, run, run_tag((about.raw or about.new)[0]))
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
