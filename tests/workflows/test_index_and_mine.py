"""Building an index and mining training groups, as a program asks for them."""

import pytest

from invented import DEEP_SEA, write_deep_sea
from secondlook.errors import IndexProblem, SecondlookError, UnknownName
from secondlook.train.groups import Groups
from secondlook.workflows.index import add_documents, build_index, remove_documents
from secondlook.workflows.mine import mine


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_deep_sea(tmp_path_factory.mktemp("sea"))


def test_an_index_is_built_and_mined_without_a_word(files, tmp_path, capsys):
    corpus, queries, qrels = files
    calls = []
    index = build_index(
        str(corpus), str(tmp_path / "index"), k1=1.2, progress=lambda *call: calls.append(call)
    )
    assert index.card.documents == len(DEEP_SEA)
    assert index.card.settings["k1"] == 1.2
    assert calls[-1] == ("indexing", len(DEEP_SEA), None)
    counts = mine(
        tmp_path / "index",
        str(queries),
        qrels,
        tmp_path / "train.parquet",
        negatives=2,
        ranks=(1, 9),
        progress=lambda *call: calls.append(call),
    )
    assert counts.to_dict()["queries"] == counts.queries == len(DEEP_SEA)
    assert counts.summary().startswith("25 queries\n  positives 25, ")
    assert calls[-1] == ("mining", 25, 25)
    assert len(Groups([tmp_path / "train.parquet"])) == 25
    assert capsys.readouterr() == ("", "")


def test_errors_name_arguments_instead_of_options(files, tmp_path):
    build_index(files[0], tmp_path / "index")
    with pytest.raises(IndexProblem, match="to rebuild it, give `replace=True`"):
        build_index(files[0], tmp_path / "index")
    with pytest.raises(UnknownName, match="bm25s"):
        build_index(files[0], tmp_path / "other", engine="bm25")
    with pytest.raises(IndexProblem, match="cannot change"):
        add_documents(str(tmp_path / "index"), files[0])
    with pytest.raises(IndexProblem, match="cannot change"):
        remove_documents(tmp_path / "index", ["d1"])
    for problem, options in {"give a run": {}, "of a Ray cluster": {"ray": "local"}}.items():
        with pytest.raises(SecondlookError, match=problem):
            mine(*files, tmp_path / "train.parquet", **options)
