import json

import pytest
from typer.testing import CliRunner

from secondlook.cli import app

QUERIES = [f"q{number}" for number in range(30)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 a-{q} 1\n{q} 0 b-{q} 0\n" for q in QUERIES))
    for name, first, second in (("good", "a", "b"), ("bad", "b", "a")):
        lines = [f"{q} Q0 {first}-{q} 1 2.0 t\n{q} Q0 {second}-{q} 2 1.0 t\n" for q in QUERIES]
        (tmp_path / f"{name}.trec").write_text("".join(lines))


def called(*arguments):
    return CliRunner().invoke(app, ["compare", *arguments])


@pytest.mark.usefixtures("files")
def test_a_person_reads_the_table_and_the_verdict():
    result = called("qrels.txt", "bad.trec", "good.trec", "-m", "RR@10", "-m", "R@1")
    assert result.exit_code == 0
    assert "good.trec against bad.trec, 30 judged queries" in result.stdout
    assert ["wins/ties/losses", "30/0/0", "30/0/0"] in [
        line.split() for line in result.stdout.splitlines()
    ]
    assert "helps: RR@10 0.500 → 1.000 (+0.500, p < .001)" in " ".join(result.stdout.split())
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


@pytest.mark.usefixtures("files")
def test_a_release_pipeline_reads_the_exit_code():
    assert called("qrels.txt", "bad.trec", "good.trec", "--require", "helps").exit_code == 0
    assert called("qrels.txt", "good.trec", "bad.trec", "--require", "helps").exit_code == 3
    assert called("qrels.txt", "good.trec", "good.trec", "--require", "helps").exit_code == 3
    both = called("qrels.txt", "bad.trec", "good.trec", "bad.trec", "--require", "helps")
    assert both.exit_code == 3


@pytest.mark.usefixtures("files")
def test_a_machine_reads_json():
    said = json.loads(called("qrels.txt", "good.trec", "bad.trec", "-m", "RR", "--json").stdout)
    assert said["base"] == "good.trec"
    assert said["queries"] == 30
    assert said["warnings"] == []
    [run] = said["runs"]
    assert run["verdict"] == "hurts"
    assert run["sentence"].startswith("hurts: RR")
    [one] = run["differences"]
    assert one["delta"] == -0.5
    assert one["values"]["q7"] == [1.0, 0.5]
    assert one["hurt"] == 1.0


@pytest.mark.usefixtures("files")
def test_the_same_seed_gives_the_same_figures():
    arguments = ("qrels.txt", "good.trec", "bad.trec", "--json", "--seed", "5")
    assert called(*arguments).stdout == called(*arguments).stdout
