"""Work over documents in parts is what one process does; here without a cluster."""

import pytest

from no_cluster import in_this_process
from secondlook.data.lines import lines
from secondlook.scale import documents as jobs
from secondlook.types import Document

CORPUS = [
    Document("d1", "the deep sea", "sea", ("what is deep",), {"sea": 3}),
    Document("d2", 'a "quoted"\nline \u2028 of text'),
    Document("d3", ""),
]


def shouting():
    return lambda some: [f"{one.id} {one.text.upper()!r}" for one in some]


@pytest.fixture
def ray(monkeypatch):
    monkeypatch.setattr(jobs, "run", in_this_process)


def test_documents_come_out_of_work_as_they_went_in():
    assert jobs.from_work(jobs.as_work(CORPUS)) == CORPUS


@pytest.mark.usefixtures("ray")
def test_parts_give_the_rows_of_one_process_in_order(tmp_path):
    seen = []
    made = {
        name: jobs.made(tmp_path / name, {}, shouting, CORPUS, 2, advance=seen.append, ray=address)
        for name, address in (("here", None), ("there", "somewhere"))
    }
    assert list(made["there"].rows()) == list(made["here"].rows())
    for rows in made.values():
        rows.finish(rows.rows())
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "there"]
    assert sum(seen) == 2 * len(CORPUS)


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    asked = []

    def half(address, missing, open_tools, *, advance):
        asked.append(missing)
        in_this_process(address, missing[:1], open_tools, advance=advance)

    monkeypatch.setattr(jobs, "run", half)
    for _ in range(2):
        counted = []
        made = jobs.made(
            tmp_path / "out", {}, shouting, CORPUS, 2, advance=counted.append, ray="somewhere"
        )
    assert [len(missing) for missing in asked] == [2, 1]
    made.finish(made.rows())
    assert [text for _, text in lines(tmp_path / "out")] == shouting()(CORPUS)
