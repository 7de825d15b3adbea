import json
import re
from urllib.parse import urlparse

import pytest

import tiny
from command_line import in_process
from secondlook.errors import MalformedInput
from secondlook.workflows.report import report

QUERIES = [f"q{number}" for number in range(30)]
TOML = """
title = "Does <it> help?"
qrels = ["one.txt", "two.txt"]
queries = ["queries.jsonl"]
base = ["base.trec"]
new = ["new.trec"]
corpus = "corpus.jsonl"
measures = ["RR@10", "nDCG@10"]
commands = ["secondlook rerank base.trec"]
"""


def run_lines(order):
    return "".join(
        f"{query} Q0 {doc} {rank} {9 - rank} t\n"
        for number, query in enumerate(QUERIES)
        for rank, doc in enumerate(order(number))
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The page of the plain experiment."""
    return written(files(tmp_path_factory.mktemp("plain")))


@pytest.fixture
def folder(tmp_path):
    return files(tmp_path)


def files(tmp_path):
    """The new run puts the good document first for all queries but two, which it hurts."""
    lines = [f"{q} 0 good{at} 1\n{q} 0 bad 0\n" for at, q in enumerate(QUERIES)]
    (tmp_path / "one.txt").write_text("".join(lines[:15]))
    (tmp_path / "two.txt").write_text("".join(lines[15:]))
    queries = [
        {"_id": q, "text": f"where is {q} bogue" + " sea" * (at % 4)}
        for at, q in enumerate(QUERIES)
    ]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in queries))
    documents = [{"_id": f"good{at}", "text": f"the sea of {at}"} for at in range(30)]
    documents.append({"_id": "bad", "text": "a <b>bogus</b> text"})
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    hurt = (3, 4)
    (tmp_path / "base.trec").write_text(
        run_lines(lambda n: [f"good{n}", "bad"] if n in hurt else ["bad", f"good{n}"])
    )
    (tmp_path / "new.trec").write_text(
        run_lines(lambda n: ["bad", f"good{n}"] if n in hurt else [f"good{n}", "bad"])
    )
    (tmp_path / "experiment.toml").write_text(TOML)
    return tmp_path


def written(folder, *more):
    page = folder / "report.html"
    in_process("report", folder / "experiment.toml", "-o", page, *more)
    return page.read_text("utf-8")


def test_its_p_values_are_those_of_a_comparison_of_all_runs(folder):
    (folder / "other.trec").write_text(run_lines(lambda n: ["bad", "x", f"good{n}"]))
    (folder / "experiment.toml").write_text(f'others = ["other.trec"]\n{TOML}')
    (folder / "all.txt").write_text(
        (folder / "one.txt").read_text() + (folder / "two.txt").read_text()
    )
    runs = [folder / name for name in ("base.trec", "other.trec", "new.trec")]
    measures = ("-m", "RR@10", "-m", "nDCG@10")
    said = json.loads(in_process("compare", folder / "all.txt", *runs, *measures, "--json"))
    first, second = (one["adjusted"] for one in said["runs"][1]["differences"])
    assert first < 0.01
    page = written(folder)
    assert f"by Holm</td><td class=n>{first:.4f}</td><td class=n>{second:.4f}</td>" in page


def test_its_p_values_are_corrected_for_the_untuned_ranker_and_other_runs_together(folder):
    for name in ("other", "untuned"):
        (folder / f"{name}.trec").write_text(run_lines(lambda n: ["bad", f"good{n}", "x"]))
    tests = {"": 2, "others": 4, "untuned": 6, "others untuned": 8}  # with two measures
    for given, count in tests.items():
        lines = {"others": 'others = ["other.trec"]\n', "untuned": 'untuned = ["untuned.trec"]\n'}
        more = "".join(lines[key] for key in given.split())
        (folder / "experiment.toml").write_text(more + TOML)
        found = report(folder / "experiment.toml", folder / "report.html").comparison.runs
        raw, adjusted = found[-1].differences[0].randomisation, found[-1].differences[0].adjusted
        assert adjusted == pytest.approx(count * raw), given


def test_objections_stand_below_the_verdict(folder):
    (folder / "experiment.toml").write_text(TOML.replace(', "two.txt"', ""))
    page = written(folder)
    assert "15 judged queries are few" in page
    assert page.index("15 judged queries are few") < page.index("The figures")


def test_answers_alone_are_not_held_against_a_run(folder):
    for name in ("one.txt", "two.txt"):
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(line for line in lines if line.endswith("1\n")))
    page = written(folder)
    assert "the judgments name only relevant documents, 1.0 for a query" in page
    assert "only 50%" not in page
    assert "Judged are" not in page


def test_the_verdict_stands_first_and_the_rest_in_its_order(plain):
    parts = ["<b>Helps</b>", "The figures", "Query by query", "<h2>Where", "Most helped"]
    parts += ["Most hurt", "To make it again"]
    places = [plain.index(part) for part in parts]
    assert places == sorted(places)
    assert "Does &lt;it&gt; help?" in plain
    assert "By RR@10, 28 queries gain, 2 lose and 7% lose more than .1" in plain


def test_the_page_asks_for_nothing_and_tells_what_its_figures_show(plain):
    assert "<script" not in plain
    linked = re.findall(r'(?:src|href)="([^"]*)"', plain)
    assert all(urlparse(link).scheme in ("", "data") for link in linked)
    assert all(link.startswith(("#", "data:")) for link in linked)
    figures = re.findall(r"<svg [^>]*", plain)
    assert len(figures) >= 5
    assert all('role="img"' in figure and "aria-label=" in figure for figure in figures)
    assert len(plain.encode()) < 3_000_000


def test_most_hurt_queries_show_both_rankings_with_grades_and_texts(plain):
    hurt = plain[plain.index("Most hurt") :]
    assert hurt.count("<summary>") == 2
    assert "where is q3 bogue sea sea sea" in hurt
    first = hurt[: hurt.index("</details>")]
    assert first.index("grade 1") < first.index("grade 0")
    assert "a &lt;b&gt;bogus&lt;/b&gt; text" in hurt


def test_a_reranking_has_a_depth_curve_and_another_run_has_none(plain, folder):
    assert "could reach 1.000 at best" in plain
    (folder / "new.trec").write_text(run_lines(lambda n: [f"good{n}", "else"]))
    assert "at best" not in written(folder)


def test_a_ranker_brings_lineage_vocabulary_and_what_it_dropped(folder):
    ranker = tiny.save(tiny.classifier(), folder / "ranker")
    (ranker / "denoise.json").write_text('{"threshold": 2.5, "taken": 1.0}')
    row = {"query": "where", "text": "an unmarked answer", "score": 3.25}
    (ranker / "dropped.jsonl").write_text(json.dumps(row) + "\n")
    (ranker / "curve.png").write_bytes(b"\x89PNG")
    (folder / "experiment.toml").write_text(TOML + 'ranker = "ranker"\n')
    page = written(folder)
    assert "By query words outside the vocabulary" in page
    assert "an unmarked answer" in page
    assert "threshold 2.5, taken 1" in page
    assert "data:image/png;base64,iVBORw==" in page
    assert "Lineage" in page


def test_an_experiment_without_texts_or_ranker_is_enough(folder):
    lines = [line for line in TOML.splitlines() if not line.startswith(("corpus", "commands"))]
    (folder / "experiment.toml").write_text("\n".join(lines))
    page = written(folder)
    assert "Most helped" in page
    assert "Lineage" not in page


def test_the_same_files_and_seed_make_the_same_page(plain, folder):
    assert written(folder, "--seed", "0") == plain


def test_a_misspelt_key_is_refused_with_the_nearest(folder):
    (folder / "experiment.toml").write_text(TOML + 'rankr = "x"\n')
    with pytest.raises(MalformedInput, match=r"experiment\.toml: .*did you mean 'ranker'"):
        written(folder)


@pytest.mark.parametrize(
    ("measures", "said"),
    [('["nDGC@10"]', r"did you mean 'nDCG@10'"), ('["nDCG@ten"]', "cannot be read"), ("[]", "1")],
)
def test_measures_that_there_are_not_are_a_fault_of_the_file(folder, measures, said):
    text = TOML.replace('["RR@10", "nDCG@10"]', measures)
    (folder / "experiment.toml").write_text(text)
    with pytest.raises(MalformedInput, match=rf"experiment\.toml: .*{said}"):
        written(folder)


def test_a_missing_key_is_named(folder):
    (folder / "experiment.toml").write_text('qrels = ["one.txt"]\n')
    with pytest.raises(MalformedInput, match="queries: Field required"):
        written(folder)
