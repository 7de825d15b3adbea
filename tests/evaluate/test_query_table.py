"""A measure by what is known of queries, as MarkedBERT's tables have it."""

import pytest

from secondlook.errors import SecondlookError, UnknownName, WrongArgument
from secondlook.evaluate.breakdown import Facet, every_length
from secondlook.evaluate.query_table import found_by, table_by
from secondlook.types import Hit, Query, Ranking
from secondlook.workflows.evaluate import evaluate_by
from secondlook.workflows.query_types import predict_types, train_types


def test_every_length_from_two_to_ten_is_a_row():
    queries = [Query(f"q{n}", " ".join("w" * n)) for n in range(1, 13)]
    values = {"bm25": {q.id: 0.5 for q in queries}, "marked": {q.id: 0.75 for q in queries}}
    table = table_by(values, every_length(queries), "RR@10")
    assert [(row.label, row.queries) for row in table.rows] == [
        ("2 or fewer", 2), *((str(n), 1) for n in range(3, 10)), ("10 or more", 3),
    ]  # fmt: skip
    assert table.rows[0].gains == (pytest.approx(0.5),)
    assert table.summary().splitlines()[0] == (
        "| query length in words | queries | bm25 | marked | over bm25 |"
    )
    assert table.summary().splitlines()[2] == "| 2 or fewer | 2 | 0.5000 | 0.7500 | +50.0% |"


def test_rows_are_means_of_their_queries_and_nothing_is_gained_on_zero():
    facet = Facet("query type", {f"q{n}": "NUM" if n < 6 else "ABBR" for n in range(12)})
    values = {
        "a": {f"q{n}": float(n >= 6) for n in range(12)},
        "b": {f"q{n}": 0.5 for n in range(12)},
    }
    rows = {row.label: row for row in table_by(values, facet, "RR@10").rows}
    assert rows["NUM"].means == (0.0, 0.5)
    assert rows["NUM"].gains == (None,)
    assert rows["ABBR"].gains == (-0.5,)


def test_queries_that_a_re_ranker_could_not_help_are_left_out():
    qrels = {"q1": {"d1": 1}, "q2": {"d9": 1}, "q3": {"d3": 1}}
    rankings = [
        Ranking.of(f"q{n}", [Hit("d1", 3.0), Hit("d2", 2.0), Hit("d3", 1.0)]) for n in (1, 2, 3)
    ]
    assert found_by(qrels, rankings) == {"q1", "q3"}
    assert found_by(qrels, rankings, depth=2) == {"q1"}
    values = {"a": {"q1": 1.0, "q2": 0.0, "q3": 0.5}}
    facet = Facet("query length in words", {"q1": 2, "q2": 2, "q3": 2}, (3,), ("short", "long"))
    [row] = table_by(values, facet, "RR@10", found_by(qrels, rankings)).rows
    assert (row.queries, row.means) == (2, (0.75,))
    with pytest.raises(SecondlookError, match="no query that is left"):
        table_by(values, facet, "RR@10", ())


SIX = """type\tquery
ABBR\tWhat does NASA stand for ?
ABBR\tWhat is the abbreviation of the European Union ?
DESC\tWhat is a golf course ?
ENTY\tWhat color is the sea ?
HUM\tWho wrote Hamlet ?
LOC\tWhere is Cape Fear ?
NUM\tHow many fish are in the sea ?
"""


def test_six_answer_types_from_files_to_a_table(tmp_path):
    (tmp_path / "six.tsv").write_text(SIX + SIX.partition("\n")[2] * 2)
    assert train_types([tmp_path / "six.tsv"], tmp_path / "six.bin", six=True) == 21
    assert predict_types(tmp_path / "six.bin", ["what does NATO stand for"]) == ["ABBR"]
    texts = [line.split("\t")[1] for line in SIX.splitlines()[1:]] * 5
    ids = [f"q{n}" for n in range(len(texts))]
    lines = [f"{i}\t{t}\n" for i, t in zip(ids, texts, strict=True)]
    (tmp_path / "queries.tsv").write_text("".join(lines))
    (tmp_path / "qrels.txt").write_text("".join(f"{i} 0 d1 1\n" for i in ids))
    for name, score in {"base": 1, "marked": 3}.items():
        run = "".join(f"{i} Q0 d1 1 {score} x\n{i} Q0 d2 2 2 x\n" for i in ids)
        (tmp_path / f"{name}.trec").write_text(run)
    runs = [tmp_path / "base.trec", tmp_path / "marked.trec"]
    files = (tmp_path / "qrels.txt", runs, tmp_path / "queries.tsv")
    table = evaluate_by(*files, "type", types=tmp_path / "six.bin", found_in=runs[0])
    rows = {row.label: row for row in table.rows}
    assert sorted(rows) == ["ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"]
    assert rows["ABBR"].queries == 10
    assert rows["ABBR"].means == (0.5, 1.0)
    with pytest.raises(WrongArgument, match="no query has a type"):
        evaluate_by(*files, "type")
    (tmp_path / "five.tsv").write_text("type\tquery\nperson\twho\n")
    with pytest.raises(UnknownName, match="class of TREC"):
        train_types([tmp_path / "five.tsv"], tmp_path / "x", six=True)
