"""Re-ranking and teacher scores, as a program asks for them."""

import shutil

import pytest

import tiny
from invented import DEEP_SEA, invent, write_deep_sea
from no_cluster import in_this_process
from secondlook.data import read_run, write_run
from secondlook.encode.settings import WindowSettings
from secondlook.errors import UnknownFormat, Unwritable, WrongArgument
from secondlook.model.checkpoint import open_checkpoint, write_settings
from secondlook.progress import Progress
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.train.groups import Groups, write_groups
from secondlook.types import Hit, Ranking
from secondlook.workflows.export import export
from secondlook.workflows.fuse import set_fusion
from secondlook.workflows.rerank import rerank
from secondlook.workflows.teach import teach
from secondlook.workflows.warm import warm


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rerank")
    write_deep_sea(folder)
    Bm25Index.build(folder / "index", DEEP_SEA, Bm25Settings())
    tiny.save(tiny.classifier(), folder / "ranker")
    hits = [Hit(document.id, -float(rank)) for rank, document in enumerate(DEEP_SEA[:6])]
    write_run(folder / "first.trec", [Ranking.of(f"q{n}", hits) for n in range(3)])
    return folder


def given(folder):
    return [folder / name for name in ("first.trec", "index", "queries.jsonl", "ranker")]


def test_a_program_gets_figures_and_no_output(folder, tmp_path, capsys):
    calls = []
    result = rerank(
        *map(str, given(folder)),
        str(tmp_path / "out.trec"),
        progress=lambda *call: calls.append(call),
    )
    assert result.pairs == 18
    assert result.seconds > 0
    assert result.summary().startswith(f"{tmp_path / 'out.trec'}: 18 pairs in ")
    assert result.to_dict()["cost"]["truncated_texts"] == 0
    assert calls[0] == ("reading run and ranker", 0, None)
    assert calls[-1] == ("re-ranking", 18, 18)
    assert {len(ranking.hits) for ranking in read_run(tmp_path / "out.trec")} == {6}
    assert capsys.readouterr() == ("", "")


def test_a_cascade_tells_what_both_rankers_cost(folder, tmp_path):
    result = rerank(*given(folder), tmp_path / "out.trec", cascade=(folder / "ranker", 2))
    assert (result.pairs, result.cascade_cost.pairs) == (6, 18)
    first, second = result.summary().splitlines()
    assert first.startswith(f"{folder / 'ranker'}: 18 pairs")
    assert first.endswith("to keep 2 of each query")
    assert second.startswith(f"{tmp_path / 'out.trec'}: 6 pairs")


class Told(Progress):
    def __init__(self):
        self.messages = []

    def say(self, message):
        self.messages.append(message)


def test_a_fusion_that_leaves_the_order_to_the_first_stage_is_said(folder, tmp_path):
    own = shutil.copytree(folder / "ranker", tmp_path / "own")
    told = Told()
    for weight in (0.9, 1.0):
        set_fusion(own, weight, "min-max")
        output = tmp_path / f"{weight}.trec"
        rerank(*given(folder)[:3], own, output, progress=told)
    first = [[hit.doc_id for hit in one.hits] for one in read_run(folder / "first.trec")]
    assert [[hit.doc_id for hit in one.hits] for one in read_run(output)] == first
    [advice] = told.messages
    assert advice.startswith("own leaves the order to the first stage")
    assert advice.endswith(f"secondlook fuse clear {own}")
    rerank(*given(folder)[:3], own, tmp_path / "raw.trec", raw=True, progress=told)
    assert told.messages == [advice]


def test_long_work_on_torch_names_what_is_faster(folder, tmp_path, monkeypatch):
    first, index, queries, _ = given(folder)
    tiny.save(tiny.encoder(), tmp_path / "base")
    own = warm(tmp_path / "base", tmp_path / "own").ranker
    told = Told()
    rerank(first, index, queries, own, tmp_path / "few.trec", progress=told)
    assert told.messages == []
    monkeypatch.setattr("secondlook.workflows.rerank._WORTH_AN_EXPORT", 18)
    rerank(first, index, queries, own, tmp_path / "many.trec", progress=told)
    [advice] = told.messages
    command = f"secondlook export {own} --to openvino --precision fp32"
    assert advice == f"torch scores on the CPU; OpenVINO is about twice as fast: {command}"
    export(own, backend="onnx")
    for ranker in (own, folder / "ranker"):  # exported; not of this program's making
        rerank(first, index, queries, ranker, tmp_path / f"{ranker.name}.trec", progress=told)
    assert told.messages == [advice]


@pytest.mark.parametrize("pooling", ["max", "first"])
@pytest.mark.parametrize("raw", [False, True])
def test_texts_cut_short_are_counted_in_windows_too(folder, tmp_path, raw, pooling):
    ranker = shutil.copytree(folder / "ranker", tmp_path / "ranker")
    settings = open_checkpoint(ranker).settings
    windows = WindowSettings(length=4, stride=2, pooling=pooling)
    encode = settings.encode.model_copy(update={"max_length": 8, "windows": windows})
    write_settings(ranker, settings.model_copy(update={"encode": encode}))
    *files, _ranker = given(folder)
    cost = rerank(*files, ranker, tmp_path / "out.trec", raw=raw).cost
    assert (cost.pairs, cost.truncated_texts) == (18, 18)
    assert "were longer than the ranker reads" in cost.summary()


def test_workers_of_a_cluster_write_the_run_that_one_process_writes(folder, tmp_path, monkeypatch):
    rerank(*given(folder), tmp_path / "here.trec", depth=4)
    monkeypatch.setattr("secondlook.scale.ray_job.run", in_this_process)
    result = rerank(*given(folder), tmp_path / "there.trec", depth=4, ray="somewhere")
    assert (result.pairs, result.seconds) == (12, None)
    assert (tmp_path / "there.trec").read_bytes() == (tmp_path / "here.trec").read_bytes()


def test_workers_of_a_cluster_score_with_the_back_end_that_was_opened_here(
    folder, tmp_path, monkeypatch
):
    opened = []

    def watched(_address, missing, open_tools, *, advance):
        opened.extend(open_tools.args[-2:])
        in_this_process(_address, missing, open_tools, advance=advance)

    monkeypatch.setattr("secondlook.scale.ray_job.run", watched)
    rerank(*given(folder), tmp_path / "out.trec", depth=1, ray="somewhere")
    assert opened == ["torch", "fp32"]


def test_a_remote_ranker_is_not_asked_by_the_workers_of_a_cluster(folder, tmp_path):
    *files, _ranker = given(folder)
    with pytest.raises(WrongArgument, match="asked from this machine; leave out ray"):
        rerank(*files, "http://localhost:1/v2/rerank#model=m", tmp_path / "o.trec", ray="local")


def test_errors_name_arguments_instead_of_options(folder, tmp_path):
    (tmp_path / "out.trec").write_text("precious")
    with pytest.raises(Unwritable, match="give `replace=True`"):
        rerank(*given(folder), tmp_path / "out.trec")
    for options in ({"raw": True}, {"cascade": (folder / "ranker", 2)}):
        with pytest.raises(WrongArgument, match="leave out ray"):
            rerank(*given(folder), tmp_path / "new.trec", ray="local", **options)
    with pytest.raises(WrongArgument, match="1 candidate or more"):
        rerank(*given(folder), tmp_path / "new.trec", cascade=("ranker", 0))


@pytest.mark.parametrize("ray", [None, "somewhere"])
def test_a_name_without_a_format_is_refused_before_anything_is_scored(folder, tmp_path, ray):
    with pytest.raises(UnknownFormat, match=r"does not end in \.trec.*; give it such an ending"):
        rerank(*given(folder), tmp_path / "reranked", ray=ray)
    assert list(tmp_path.iterdir()) == []


def test_raw_scores_are_not_written_in_a_format_without_scores(folder, tmp_path):
    with pytest.raises(WrongArgument, match="ranks and no scores; with `raw`, give a name"):
        rerank(*given(folder), tmp_path / "raw.tsv.gz", raw=True)
    assert list(tmp_path.iterdir()) == []
    rerank(*given(folder), tmp_path / "ranks.tsv")


def test_a_teacher_scores_groups(folder, tmp_path, capsys):
    write_groups(tmp_path / "train.parquet", invent(2), about={})
    calls = []
    result = teach(
        str(tmp_path / "train.parquet"),
        str(folder / "ranker"),
        tmp_path / "taught.parquet",
        progress=lambda *call: calls.append(call),
    )
    assert (result.queries, result.teacher, result.cost.pairs) == (2, "ranker", 12)
    assert result.to_dict()["cost"]["pairs"] == 12
    assert calls[-1] == ("scoring", 2, 2)
    assert all(len(group.teacher) == 6 for group in Groups([tmp_path / "taught.parquet"]))
    assert capsys.readouterr() == ("", "")
