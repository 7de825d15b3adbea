"""Every public function has an example in its docstring, which runs as it stands."""

from __future__ import annotations

import doctest
import inspect
import io
import json
import random
import shutil
from string import ascii_lowercase

import pytest

import secondlook as sl
import tiny

TEXTS = ["a cat lands on its feet", "cats land softly", "the tide of the river", "the river", "sea"]
RECIPE = """
base = "intfloat/e5-small"
[data]
train = ["groups.parquet"]
[[phases]]
phase = "warm"
[[phases]]
phase = "listwise"
negatives = 1
max_steps = 1
"""


@pytest.fixture(scope="module")
def at_home(tmp_path_factory):
    """A folder with all that the examples name; the base model is a tiny one of that name."""
    folder = tmp_path_factory.mktemp("examples")
    rng = random.Random(3)
    letters = [" ".join(rng.choices(ascii_lowercase, k=8)) for _ in range(30)]
    for place, texts in ((folder, TEXTS), (folder / "my-data", letters)):
        (place / "qrels").mkdir(parents=True)
        documents = [{"_id": f"d{at}", "text": text} for at, text in enumerate(texts)]
        queries = [{"_id": f"q{at}", "text": text[:-2]} for at, text in enumerate(texts[:-2])]
        for name, rows in (("corpus", documents), ("queries", queries)):
            (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        judged = {query["_id"]: {f"d{at}": 1} for at, query in enumerate(queries)}
        sl.write_qrels(place / "qrels/train.tsv", judged)
    tiny.save(tiny.encoder(), folder / "intfloat/e5-small")
    index = sl.build_index(folder / "corpus.jsonl", folder / "my.index")
    sl.Ranker.from_biencoder(folder / "intfloat/e5-small", folder=folder / "my.ranker")
    index.retrieve(folder / "queries.jsonl").write(folder / "bm25.trec")
    given = folder / "my.index", folder / "queries.jsonl", folder / "qrels/train.tsv"
    sl.mine(*given, folder / "groups.parquet", negatives=1)
    (folder / "recipe.toml").write_text(RECIPE)
    runs = 'base = ["bm25.trec"]\nnew = ["bm25.trec"]\n'
    judged = 'qrels = ["qrels/train.tsv"]\nqueries = ["queries.jsonl"]\n'
    (folder / "experiment.toml").write_text(judged + runs)
    return folder


FUNCTIONS = sorted(
    set(sl.__all__) - {"__version__", "serve_ranker"}
    - {name for name in sl.__all__ if name[0].isupper() and name not in ("Ranker", "Run")}
)  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_in_the_docstring_runs(name, at_home, monkeypatch):
    monkeypatch.chdir(at_home)
    if name == "build_index":
        shutil.rmtree("my.index")
    monkeypatch.setattr("secondlook.workflows.export.export_for_speed", lambda *_, **__: False)
    public = getattr(sl, name)
    scope = vars(inspect.getmodule(public))
    found = [
        test for test in doctest.DocTestFinder().find(public, name, globs=scope) if test.examples
    ]
    assert found
    for test in found:
        told = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        assert not runner.run(test, out=told.write).failed, told.getvalue()
