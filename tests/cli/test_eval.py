import json

import pytest
from typer.testing import CliRunner

from command_line import in_process
from secondlook.cli import app
from secondlook.errors import MalformedInput, UnknownName, WrongArgument
from secondlook.terminal.problems import exit_code

QRELS = "q1 0 a 2\nq1 0 b 0\nq2 0 a 1\nq3 0 c 1\n"
BETTER = "q1 Q0 a 1 2.0 t\nq1 Q0 b 2 1.0 t\nq2 Q0 x 1 2.0 t\nq2 Q0 a 2 1.0 t\n"
WORSE = "q1 Q0 b 1 2.0 t\nq1 Q0 a 2 1.0 t\nq2 Q0 x 1 2.0 t\nq9 Q0 a 1 1.0 t\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "better.trec").write_text(BETTER)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "worse.trec").write_text(WORSE)


def output(*arguments, **environment):
    result = CliRunner().invoke(app, ["eval", *arguments], env=environment)
    if result.exception:
        raise result.exception
    return result.stdout


def rows(text):
    return [line.split() for line in text.splitlines() if line.strip()]


@pytest.mark.usefixtures("files")
def test_runs_are_rows_and_measures_columns():
    table = rows(output("qrels.txt", "better.trec", "runs/worse.trec", "-m", "RR@10", "-m", "R@5"))
    assert table[0] == ["run", "RR@10", "R@5", "missing", "unjudged"]
    assert table[2] == ["better.trec", "0.5000", "0.6667", "1", "0"]
    assert table[3] == ["worse.trec", "0.1667", "0.3333", "1", "1"]
    assert table[4][:3] == ["3", "judged", "queries."]


@pytest.mark.usefixtures("files")
def test_the_best_of_several_is_bold_and_equals_are_not():
    measures = ("-m", "RR", "-m", "R(rel=2)@5")
    styled = output("qrels.txt", "better.trec", "runs/worse.trec", *measures, FORCE_COLOR="1")
    assert "\x1b[1m0.5000" in styled
    assert "\x1b[1m0.3333" not in styled


@pytest.mark.usefixtures("files")
def test_per_query_shows_the_runs_of_a_query_together():
    table = rows(output("qrels.txt", "better.trec", "runs/worse.trec", "-m", "RR", "--per-query"))
    assert table[0] == ["query", "run", "RR"]
    assert table[2:8] == [
        ["q1", "better.trec", "1.0000"],
        ["worse.trec", "0.5000"],
        ["q2", "better.trec", "0.5000"],
        ["worse.trec", "0.0000"],
        ["q3", "better.trec", "0.0000"],
        ["worse.trec", "0.0000"],
    ]


@pytest.mark.usefixtures("files")
def test_one_run_needs_no_column_for_its_name():
    table = rows(output("qrels.txt", "better.trec", "-m", "NumRet", "-m", "RR", "--per-query"))
    assert table[0] == ["query", "NumRet", "RR"]
    assert table[2] == ["q1", "2", "1.0000"]


@pytest.mark.usefixtures("files")
def test_runs_of_the_same_file_name_are_shown_by_their_paths(tmp_path):
    (tmp_path / "runs" / "better.trec").write_text(BETTER)
    table = rows(output("qrels.txt", "better.trec", "runs/better.trec"))
    assert [table[2][0], table[3][0]] == ["better.trec", "runs/better.trec"]


@pytest.mark.usefixtures("files")
def test_json_holds_everything_unrounded():
    said = json.loads(output("qrels.txt", "better.trec", "-m", "RR@10", "--per-query", "--json"))
    assert said == {
        "qrels": "qrels.txt",
        "runs": [
            {
                "run": "better.trec",
                "judged": 3,
                "missing": 1,
                "unjudged": 0,
                "means": {"RR@10": 0.5},
                "per_query": {"RR@10": {"q1": 1.0, "q2": 0.5, "q3": 0.0}},
            }
        ],
    }


@pytest.mark.usefixtures("files")
def test_without_measures_there_are_three():
    said = json.loads(output("qrels.txt", "better.trec", "--json"))
    assert list(said["runs"][0]["means"]) == ["nDCG@10", "RR@10", "R@100"]
    assert "per_query" not in said["runs"][0]


@pytest.mark.usefixtures("files")
def test_means_by_length_are_of_files_in_the_formats_that_are_named(tmp_path):
    (tmp_path / "queries.tsv").write_text("q1\tone two\nq2\tone\nq3\tthree\n")
    (tmp_path / "plain").write_text("q1 a 1\nq2 x 1\nq2 a 2\n".replace(" ", "\t"))  # msmarco's
    words = ("qrels.txt", "plain", "--by", "length", "--queries", "queries.tsv", "--json")
    said = json.loads(output(*words, "--format", "msmarco", "--qrels-format", "trec"))
    assert [(row["queries"], row["means"]) for row in said["rows"]] == [(3, [0.5])]
    with pytest.raises(MalformedInput, match=r"plain:1: .*qid Q0 docid"):
        output(*words, "--format", "trec")
    with pytest.raises(MalformedInput, match=r"qrels\.txt:1: "):
        output(*words, "--format", "msmarco", "--qrels-format", "beir")
    with pytest.raises(WrongArgument, match="by type"):
        output(*words, "--types", "some.types")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--queries", "queries.tsv"), "--found-in need --by"),
        (("--types", "some.types"), "--found-in need --by"),
        (("--found-in", "better.trec"), "--found-in need --by"),
        (("--by", "length"), "--by needs --queries"),
        (("--by", "length", "--queries", "q", "--per-query"), "no --per-query"),
        (("--by", "length", "--queries", "q", "-m", "RR", "-m", "AP"), "at most one -m"),
    ],
)
def test_options_that_would_be_ignored_are_refused(options, told):
    result = CliRunner().invoke(app, ["eval", "qrels.txt", "better.trec", *options])
    assert result.exit_code == 2
    assert told in " ".join(result.output.replace("│", " ").split())


@pytest.mark.usefixtures("files")
def test_a_misspelt_measure_is_one_line_with_the_nearest_name():
    with pytest.raises(UnknownName, match="did you mean 'nDCG@10'") as raised:
        output("qrels.txt", "better.trec", "-m", "ndcg10")
    assert exit_code(raised.value) == 2


@pytest.mark.usefixtures("files")
def test_a_measure_that_cannot_be_read_is_a_wrong_option():
    with pytest.raises(WrongArgument, match="cannot be read") as raised:
        output("qrels.txt", "better.trec", "-m", "nDCG@ten")
    assert exit_code(raised.value) == 2


@pytest.mark.parametrize(("year", "ndcg"), [("dl19", 0.5058), ("dl20", 0.4796)])
def test_bm25_on_trec_deep_learning_is_what_the_field_publishes(shared_data, year, ndcg):
    folder = shared_data / "msmarco-dl"
    qrels, run = folder / "qrels" / f"{year}.tsv", folder / "runs" / f"{year}.bm25.trec.gz"
    said = json.loads(output(str(qrels), str(run), "-m", "nDCG@10", "--json"))
    assert round(said["runs"][0]["means"]["nDCG@10"], 4) == ndcg


def test_judgments_of_no_known_format_name_the_option_for_them(tmp_path):
    judgments = tmp_path / "judgments"
    judgments.write_text("one two\n", encoding="utf-8")
    assert "say --qrels-format" in in_process("eval", judgments, judgments, fails=True)
