"""What `import secondlook as sl` promises, on two-layer networks and invented texts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import secondlook as sl
import tiny
from invented import DEEP_SEA, write_deep_sea

ROOT = Path(__file__).parent.parent
TEXTS = ["what is cape", "what is tide"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("deep-sea")
    write_deep_sea(made)
    return made


@pytest.fixture(scope="module")
def index(folder):
    built = sl.build_index(str(folder / "corpus.jsonl"), folder / "index")
    with sl.open_index(str(folder / "index")) as opened:
        assert built.retrieve(TEXTS) == opened.retrieve(TEXTS)
        yield opened


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    base = tiny.save(tiny.encoder(), tmp_path_factory.mktemp("base") / "tiny-e5")
    return sl.Ranker.from_biencoder(str(base), device="cpu")


def test_importing_it_loads_nothing_heavy_and_completion_shows_all():
    program = (
        "import sys, secondlook as sl\n"
        "assert set(sl.__all__) <= set(dir(sl)), set(sl.__all__) - set(dir(sl))\n"
        "print(sorted({'torch', 'numpy', 'pandas', 'rich'} & sys.modules.keys()))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (said.stdout.strip(), said.stderr) == ("[]", "")


@pytest.mark.parametrize("name", sorted(sl.__all__))
def test_every_name_is_there_and_explains_itself(name):
    value = getattr(sl, name)
    if callable(value) and name not in ("Pair", "Qrels"):
        assert (value.__doc__ or "").strip()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'compar'"):
        sl.compar  # noqa: B018


def test_no_public_function_has_the_name_of_a_package():
    """Else the package would take its place as soon as something in it is imported."""
    below = {path.stem for path in (ROOT / "src/secondlook").iterdir()}
    assert not below & set(sl.__all__)


def test_the_page_of_public_names_lists_exactly_these():
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    listed = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert listed == set(sl.__all__) - {"__version__"}


def test_from_texts_to_a_verdict(index, ranker, folder):
    queries = sl.load_queries(folder / "queries.jsonl")
    bm25 = index.retrieve(queries, k=10)
    seen = []
    second = ranker.rerank(
        queries, bm25, index, progress=lambda doing, done, total: seen.append((done, total))
    )
    assert [r.query_id for r in second] == [r.query_id for r in bm25] == [q.id for q in queries]
    assert seen[-1][0] == seen[-1][1] == sum(len(ranking.hits) for ranking in bm25)
    comparison = sl.compare(folder / "qrels.tsv", bm25, second, measures=["nDCG@10"])
    assert comparison.verdict in ("helps", "hurts", "cannot tell")
    title = "tiny-e5 re-ranked against bm25s, 25 judged queries"
    assert title in " ".join(comparison.summary().split())
    assert "<table>" in comparison._repr_html_()
    assert "q7" not in repr(comparison) + repr(comparison.runs[0].differences)
    frame = comparison.to_dataframe()
    assert list(frame["measure"]) == ["nDCG@10"]
    means = sl.evaluate_run(folder / "qrels.tsv", second, measures=["nDCG@10"]).means
    assert means["nDCG@10"] == pytest.approx(comparison.runs[0].differences[0].new, abs=0.02)


def test_queries_are_texts_objects_dicts_tables_or_a_file(index, folder):
    pd = pytest.importorskip("pandas")
    of_texts = index.retrieve(TEXTS, k=3)
    assert [ranking.query_id for ranking in of_texts] == ["1", "2"]
    assert index.retrieve([sl.Query("1", TEXTS[0]), sl.Query("2", TEXTS[1])], k=3) == of_texts
    assert index.retrieve({1: TEXTS[0], 2: TEXTS[1]}, k=3) == of_texts
    assert index.retrieve(pd.DataFrame({"qid": [1, 2], "query": TEXTS}), k=3) == of_texts
    (folder / "two.tsv").write_text(f"1\t{TEXTS[0]}\n2\t{TEXTS[1]}\n")
    assert index.retrieve(folder / "two.tsv", k=3) == of_texts
    assert index.retrieve(str(folder / "two.tsv"), k=3) == of_texts


@pytest.mark.parametrize("text", ["what is cape", "x" * 5000])
def test_a_text_that_is_no_list_is_told_how_to_be_asked(index, text):
    with pytest.raises(sl.SecondlookError, match=r"retrieve\(\[text\]\)"):
        index.retrieve(text)


def test_a_run_becomes_a_dict_a_table_and_a_file_and_comes_back(index, tmp_path):
    pytest.importorskip("pandas")
    run = index.retrieve(TEXTS, k=5)
    assert sl.Run.of(run.to_dict()) == run
    table = run.to_dataframe()
    assert sl.Run.of(table) == run
    assert sl.Run.of(table.assign(name="bm25")).name == ""  # a column is no name of the run
    run.write(tmp_path / "run.trec")
    back = sl.Run.of(str(tmp_path / "run.trec"))
    assert [[hit.doc_id for hit in r.hits] for r in back] == [
        [hit.doc_id for hit in r.hits] for r in run
    ]
    assert repr(run) == "<Run 'bm25s': 2 queries, 10 hits>"
    assert run[0].hits[0].doc_id in run._repr_html_()


def test_judgments_become_a_table_and_a_file_and_come_back(tmp_path):
    pytest.importorskip("pandas")
    qrels = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}
    assert sl.load_qrels(sl.qrels_to_dataframe(qrels)) == qrels
    sl.write_qrels(tmp_path / "qrels.tsv", qrels)
    assert sl.load_qrels(tmp_path / "qrels.tsv") == qrels
    assert sl.load_qrels({1: {7: 1.0}}) == {"1": {"7": 1}}


def test_what_cannot_be_read_says_what_could(index, ranker):
    pd = pytest.importorskip("pandas")
    with pytest.raises(sl.SecondlookError, match="qid or query_id"):
        sl.Run.of(pd.DataFrame({"query": ["a"], "docno": ["d"], "score": [1.0]}))
    with pytest.raises(sl.SecondlookError, match="a run can be a file"):
        sl.compare({"q1": {"d1": 1}}, [("q1", "d1")], {})
    with pytest.raises(sl.SecondlookError, match="queries can be a file"):
        index.retrieve([1, 2])
    with pytest.raises(sl.SecondlookError, match="judgments can be a file"):
        sl.load_qrels(["q1"])
    with pytest.raises(sl.SecondlookError, match="judgments can be a file"):
        sl.load_qrels({"q1": ["d1"]})
    for grade in ("x", None):
        with pytest.raises(sl.SecondlookError, match="a grade must be a whole number"):
            sl.load_qrels({"q1": {"d1": grade}})
    with pytest.raises(sl.SecondlookError, match="'1' is there twice"):
        sl.load_qrels({1: {"d1": 1}, "1": {"d2": 1}})
    with pytest.raises(sl.SecondlookError, match="a score must be a number, not None"):
        sl.Run.of({"q1": {"d1": None}})
    with pytest.raises(sl.SecondlookError, match="query id '1' stands above already"):
        sl.load_queries([sl.Query("1", "a"), sl.Query("1", "b")])
    for measures in ("nDCG@10", []):
        with pytest.raises(sl.SecondlookError, match="measures are a list"):
            sl.evaluate_run({"q1": {"d1": 1}}, {"q1": {"d1": 1.0}}, measures=measures)
    with pytest.raises(sl.SecondlookError, match="the list of queries does not hold"):
        ranker.rerank(["a tide"], {"other": {"d1": 1.0}}, index)


def test_tables_are_refused_where_files_would_be():
    pd = pytest.importorskip("pandas")

    def qrels(*grades):
        return sl.load_qrels(pd.DataFrame({"qid": "1", "docno": "d", "label": grades}))

    assert qrels(1.0, 1.0) == {"1": {"d": 1}}
    for grades, problem in (
        ((0.7,), "a whole number, not 0.7"),
        ((float("nan"),), "a whole number, not nan"),
        ((0, 1), "query '1' has 0 and 1 for document 'd'"),
    ):
        with pytest.raises(sl.SecondlookError, match=problem):
            qrels(*grades)
    twice = pd.DataFrame({"qid": "1", "docno": "d", "score": [3.0, 1.0]})
    with pytest.raises(sl.SecondlookError, match=r"has 3\.0 and 1\.0"):
        sl.Run.of(twice)
    for texts, problem in ((["a", "b"], "more than one text"), (["a", None], "has no text")):
        with pytest.raises(sl.SecondlookError, match=problem):
            sl.load_queries(pd.DataFrame({"qid": "1", "query": texts}))
    assert len(sl.load_queries(pd.DataFrame({"qid": ["1", "1"], "query": ["a", "a"]}))) == 1


def test_only_the_top_candidates_are_scored_and_the_others_stay_below(index, ranker):
    bm25 = index.retrieve(TEXTS, k=6)
    shallow = ranker.rerank(TEXTS, bm25, index, depth=2)
    for before, after in zip(bm25, shallow, strict=True):
        ids = [hit.doc_id for hit in before.hits], [hit.doc_id for hit in after.hits]
        assert set(ids[0][:2]) == set(ids[1][:2])
        assert ids[0][2:] == ids[1][2:]


def test_a_bi_encoder_in_memory_is_the_one_that_is_written(ranker, tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "tiny-e5")
    written = sl.Ranker.from_biencoder(base, folder=tmp_path / "ranker", device="cpu")
    pairs = [("a tide", "the deep sea"), ("a river", "the cape of fish")]
    assert written.predict(pairs) == pytest.approx(ranker.predict(pairs), abs=1e-5)
    prompted = sl.Ranker.from_biencoder(base, query_prompt="query: ", device="cpu")
    assert prompted.settings.encode.query_prompt == "query: "


def test_a_written_ranker_is_replaced_only_if_asked(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "tiny-e5")
    given = {"folder": tmp_path / "ranker", "device": "cpu"}
    sl.Ranker.from_biencoder(base, **given)
    with pytest.raises(sl.SecondlookError, match="to overwrite it, give `replace=True`"):
        sl.Ranker.from_biencoder(base, query_prompt="query: ", **given)
    replaced = sl.Ranker.from_biencoder(base, query_prompt="query: ", replace=True, **given)
    assert replaced.settings.encode.query_prompt == "query: "


def test_the_index_tells_what_it_is_and_gives_its_texts(index):
    assert len(index) == len(DEEP_SEA)
    assert repr(index) == "<SearchIndex: 25 documents, bm25s>"
    assert [document.id for document in index.fetch(["d3", "d1"])] == ["d3", "d1"]
    index.verify()
