"""Relevance scores: their scale without judgments, and what a calibration is fitted on."""

import numpy as np
import pytest

from secondlook.encode.settings import EncodeSettings, WindowSettings
from secondlook.errors import SecondlookError
from secondlook.evaluate.calibration import NothingToCalibrate
from secondlook.model.settings import (
    FittedOn,
    FusionSettings,
    Lineage,
    PlattCalibration,
    RankerSettings,
)
from secondlook.score.calibration import (
    calibrate,
    fit_to_judgments,
    query_hash,
    raw_scores_of,
    reliability,
    score_meaning,
)
from secondlook.score.default_scale import (
    SAMPLED,
    corpus_pairs,
    fit_scale,
    reference_pairs,
    training_pairs,
)
from secondlook.score.raw import FUSED_TAG, RAW_TAG, run_tag
from secondlook.types import Document, Hit, Query, Ranking

PLAIN = RankerSettings(encode=EncodeSettings(), lineage=Lineage(base="base"))


class SharedWords:
    """Scores a pair by the words it shares, on a scale far from that of a sigmoid."""

    def score(self, pairs):
        return np.array(
            [
                30 + 5 * len(_words(query.text) & _words(f"{document.title} {document.text}"))
                for query, document in pairs
            ],
            np.float32,
        )


def _words(text):
    return {word for word in text.lower().strip("?.").split() if len(word) > 3}


def documents(count):
    return [
        Document(
            f"d{n}", f"Of subject{n} much can be said in a long text.", title=f"subject{n} told"
        )
        for n in range(count)
    ]


def run(queries=20, hits=30, better=lambda place: place < 5):
    """Rankings in which hits are relevant by their place, and the judgments."""
    names = [f"q{n}" for n in range(queries)]
    rankings = [
        Ranking.of(name, [Hit(f"{name}d{at}", 40.0 - at) for at in range(hits)]) for name in names
    ]
    positives = {name: {f"{name}d{at}": 1 for at in range(hits) if better(at)} for name in names}
    return rankings, positives


def test_reference_pairs_are_64_questions_with_their_own_and_with_other_passages():
    pairs = reference_pairs()
    assert len(pairs.related) == 64
    assert len(pairs.unrelated) == 128
    assert all(query.id == passage.id for query, passage in pairs.related)
    assert all(query.id != passage.id for query, passage in pairs.unrelated)
    assert len({query.text for query, _ in pairs.related}) == 64


def test_a_scale_from_reference_pairs_puts_their_two_kinds_on_two_sides():
    scale = fit_scale(SharedWords(), reference_pairs())
    settings = PLAIN.model_copy(update={"calibration": scale})
    pairs = reference_pairs()
    related = calibrate(SharedWords().score(pairs.related), scale)
    unrelated = calibrate(SharedWords().score(pairs.unrelated), scale)
    assert (related > 0.5).mean() > 0.8
    assert (unrelated > 0.5).mean() < 0.1
    assert related.max() < 1
    assert scale.fitted_on.source == "reference pairs"
    assert (scale.fitted_on.pairs, scale.fitted_on.relevant) == (192, 64)
    assert "one pair in four" in scale.fitted_on.assumed
    assert "not calibrated on judgments" in score_meaning(scale)
    assert not settings.calibrated


def test_a_corpus_makes_pairs_of_titles_and_the_rest_of_their_documents():
    pairs = corpus_pairs(documents(300))
    assert len(pairs.related) == SAMPLED
    assert all(document.title == "" for _, document in pairs.related)
    assert all(query.id == document.id for query, document in pairs.related)
    assert all(query.id != document.id for query, document in pairs.unrelated)
    assert "a title or first sentence is related" in pairs.assumed
    assert fit_scale(SharedWords(), pairs).fitted_on.source == "corpus"
    assert corpus_pairs(documents(300)) == pairs


def test_a_document_without_title_is_asked_for_by_its_first_sentence():
    untitled = [Document(f"d{n}", f"Of subject {n}. Much can be said of it.") for n in range(40)]
    query, document = corpus_pairs(untitled).related[0]
    assert query.text.startswith("Of subject")
    assert document.text == "Much can be said of it."


def test_a_corpus_with_queries_and_judgments_relates_them_by_these():
    queries = [Query(f"q{n}", f"what of subject{n}") for n in range(20)]
    qrels = {f"q{n}": {f"d{n}": 1, f"d{n + 100}": 0} for n in range(20)}
    pairs = corpus_pairs(documents(300), queries, qrels)
    assert sorted((q.id, d.id) for q, d in pairs.related) == sorted(
        (f"q{n}", f"d{n}") for n in range(20)
    )
    assert all(d.id not in qrels[q.id] for q, d in pairs.unrelated)
    assert "judged relevant" in pairs.assumed


def test_what_is_relevant_to_another_query_only_is_not_taken_as_related():
    queries = [Query(f"q{n}", f"what of subject{n}") for n in range(20)]
    next_ones = {n: {f"d{(n + step) % 20}": 0 for step in range(1, 8)} for n in range(20)}
    qrels = {f"q{n}": next_ones[n] | {f"d{n}": 1, f"d{n + 100}": 1} for n in range(20)}
    pairs = corpus_pairs(documents(300), queries, qrels)
    assert [(q.id, d.id) for q, d in pairs.related] == [(f"q{n}", f"d{n}") for n in range(20)]


def test_a_tiny_corpus_is_refused():
    with pytest.raises(SecondlookError, match="larger corpus"):
        corpus_pairs(documents(4))


def test_training_pairs_relate_no_query_to_its_own_document_under_another_query():
    same = Document("shared", "text")
    positives = [
        (Query(f"q{n}", f"words {n}"), document, {document.id})
        for n, document in enumerate([same, same, *(Document(f"d{n}", "t") for n in range(7))])
    ]
    pairs = training_pairs(positives)
    assert len(pairs.related) == 9
    own = {query.id: document.id for query, document, _ in positives}
    assert all(own[query.id] != document.id for query, document in pairs.unrelated)


def test_nothing_that_was_judged_relevant_to_a_query_is_taken_for_unrelated():
    """Not a second relevant document, nor one of the same query under another id."""
    positives = [
        (Query(f"q{n}", f"words {n // 2}"), Document(f"d{n}", "t"), {f"d{n}", f"d{(n + 2) % 12}"})
        for n in range(12)
    ]
    relevant = {}
    for query, _, ids in positives:
        relevant.setdefault(query.text, set()).update(ids)
    pairs = training_pairs(positives)
    assert len(pairs.unrelated) == 24
    assert not any(d.id in relevant[q.text] for q, d in pairs.unrelated)


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_positives_alone_calibrate_and_the_calibration_says_so(kind):
    rankings, qrels = run()
    fitted = fit_to_judgments(PLAIN, rankings, qrels, kind=kind)
    on = fitted.fitted_on
    assert (on.source, on.pairs, on.relevant) == ("positives only", 600, 100)
    assert on.assumed == "hits without a judgment are not relevant"
    assert on.queries.split() == sorted(query_hash(f"q{n}") for n in range(20))
    assert fitted.error_after < 0.05 < fitted.error_before
    settings = PLAIN.model_copy(update={"calibration": fitted.calibration})
    assert settings.calibrated
    assert "counted as not relevant" in score_meaning(fitted.calibration)
    shown = calibrate(np.array([40, 11], np.float32), fitted.calibration)
    assert shown[0] > 0.9
    assert shown[1] < 0.1


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_a_falling_fit_is_refused_with_the_likely_reason(kind):
    rankings, qrels = run(better=lambda place: place > 24)
    with pytest.raises(SecondlookError, match="another ranker"):
        fit_to_judgments(PLAIN, rankings, qrels, kind=kind)


def test_window_scores_are_pooled_as_the_ranker_pools_them():
    windows = WindowSettings(length=8, stride=4, pooling="max")
    encode = PLAIN.encode.model_copy(update={"windows": windows})
    settings = PLAIN.model_copy(update={"encode": encode, "fusion": FusionSettings(weight=0.5)})
    raw = Ranking.of("q", [Hit("a#0", 1.0), Hit("a#1", 3.0), Hit("b#0", 2.0)])
    assert raw_scores_of(settings, [raw], RAW_TAG) == [
        Ranking.of("q", [Hit("a", 3.0), Hit("b", 2.0)])
    ]
    whole = Ranking.of("q", [Hit("a", 3.0), Hit("b", 2.0)])
    alone = settings.model_copy(update={"fusion": None})
    assert raw_scores_of(alone, [whole], "secondlook") == [whole]


def test_fused_runs_are_refused():
    fuses = PLAIN.model_copy(update={"fusion": FusionSettings(weight=0.5)})
    whole = Ranking.of("q", [Hit("a", 3.0)])
    for settings, tag in (
        (fuses, FUSED_TAG),
        (fuses, None),
        (fuses, "secondlook"),
        (PLAIN, FUSED_TAG),
    ):
        with pytest.raises(SecondlookError, match="--raw"):
            raw_scores_of(settings, [whole], tag)
    assert run_tag(raw=True, fused=True) == RAW_TAG
    assert run_tag(raw=False, fused=True, tail=True) == FUSED_TAG


def test_a_run_with_hits_that_the_ranker_has_not_scored_is_refused():
    tag = run_tag(raw=False, fused=False, tail=True)
    with pytest.raises(SecondlookError, match="has not scored"):
        raw_scores_of(PLAIN, [Ranking.of("q", [Hit("a", 3.0)])], tag)
    assert run_tag(raw=False, fused=False) == "secondlook"


def test_a_calibration_is_never_measured_on_the_queries_it_was_fitted_on():
    rankings, qrels = run()
    fitted = fit_to_judgments(PLAIN, rankings[:10], qrels)
    settings = PLAIN.model_copy(update={"calibration": fitted.calibration})
    found = reliability(settings, rankings, qrels)
    assert len(found.probabilities) == 300
    assert "without 10 queries that it was fitted on" in found.how
    with pytest.raises(NothingToCalibrate, match="these very queries"):
        reliability(settings, rankings[:10], qrels)


def test_a_scale_that_no_judgment_made_is_not_measured_as_a_calibration():
    rankings, qrels = run()
    on = FittedOn(source="reference pairs", pairs=192, relevant=64)
    scale = PlattCalibration(slope=1.0, intercept=0.0, fitted_on=on)
    found = reliability(PLAIN.model_copy(update={"calibration": scale}), rankings, qrels)
    assert "cross-validated" in found.how
    assert found.error < 0.05


def test_an_older_calibration_without_a_record_still_reads():
    old = {"kind": "platt", "slope": 2.0, "intercept": -1.0}
    settings = RankerSettings.model_validate(PLAIN.model_dump() | {"calibration": old})
    assert settings.calibration.source == "judgments"
    assert settings.calibrated
    assert calibrate(np.array([0.5], np.float32), settings.calibration)[0] == pytest.approx(0.5)
