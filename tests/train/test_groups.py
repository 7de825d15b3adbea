"""The group file: what goes in comes out, wherever it stands; what is no group file is refused."""

import pickle
import re
from dataclasses import replace
from hashlib import sha256

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from secondlook.errors import MalformedInput, Unwritable
from secondlook.train import groups as module
from secondlook.train.groups import SCHEMA, Group, Groups, write_groups
from secondlook.types import Document, Query

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def groups(draw):
    count = draw(st.integers(0, 4))

    def each(values):
        return tuple(draw(values) for _ in range(count))

    return Group(
        Query(draw(TEXT), draw(TEXT), draw(st.none() | TEXT)),
        each(st.builds(Document, TEXT, TEXT, TEXT)),
        each(st.integers(-1, 127)),
        each(st.integers(0, 2**31 - 1)),
        draw(st.none() | st.just(each(st.floats(width=32, allow_nan=False)))),
        tuple(draw(st.lists(st.integers(1, 127), max_size=3))),
    )


def plain(number, text="a text"):
    documents = (Document(f"d{number}", text, "a title"), Document("other", "something else"))
    return Group(Query(f"q{number}", f"query {number}"), documents, (1, -1), (3, 0))


@given(st.lists(groups(), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_what_is_written_is_read_back(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("groups") / "train.parquet"
    assert write_groups(path, written, about={}) == len(written)
    assert list(Groups([path])) == written


def test_any_row_is_read_without_the_others(tmp_path):
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write_groups(first, map(plain, range(150)), about={"run": "bm25"})
    write_groups(second, map(plain, range(150, 200)), about={})
    both = Groups([first, second])
    assert len(both) == 200
    assert [both[place].query.id for place in (199, 0, 149, 150, 64, -1)] == [
        "q199", "q0", "q149", "q150", "q64", "q199",
    ]  # fmt: skip
    assert both[3:5] == [plain(3), plain(4)]
    assert both.about == ({"run": "bm25"}, {})
    with pytest.raises(IndexError):
        both[200]


def test_long_texts_are_parted_into_row_groups_that_fit_into_memory(tmp_path):
    path = tmp_path / "long.parquet"
    write_groups(path, (plain(number, "x" * 3_000_000) for number in range(5)), about={})
    assert parquet.ParquetFile(path).metadata.num_row_groups == 3


def test_row_groups_stay_in_memory_up_to_a_bound_in_bytes(tmp_path, monkeypatch):
    path, read = tmp_path / "long.parquet", []
    write_groups(path, (plain(number, "x" * 3_000_000) for number in range(6)), about={})

    class Counted(parquet.ParquetFile):
        def read_row_group(self, i, **how):
            read.append(i)
            return super().read_row_group(i, **how)

    def reads(megabytes):
        monkeypatch.setattr(module, "_IN_MEMORY", megabytes * 1_000_000)
        groups = Groups([path])
        read.clear()
        texts = [groups[row].documents[0].text for row in (0, 1, 2, 3, 0, 5, 2)]
        assert texts == ["x" * 3_000_000] * 7
        return list(read)

    monkeypatch.setattr(module.parquet, "ParquetFile", Counted)
    assert reads(30) == [0, 1, 2]
    assert reads(13) == [0, 1, 2, 1], "the least recently used one had to go"
    assert reads(1) == [0, 1, 0, 2, 1], "the last one stays in any case"


def test_the_groups_are_taken_one_by_one_as_they_come(tmp_path):
    path, taken = tmp_path / "streamed.parquet", []

    def groups_to_come():
        for number in range(300):
            taken.append(number)
            if number == 299:
                (half,) = tmp_path.glob(".streamed.parquet.*.half")
                assert half.stat().st_size > 0  # the first rows are on the disk already
            yield plain(number, "".join(chr(97 + (number * i) % 26) for i in range(2000)))

    assert write_groups(path, groups_to_come(), about={}) == 300
    assert taken == list(range(300))


def test_an_interrupted_write_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "train.parquet"
    write_groups(path, [plain(1)], about={})
    before = path.read_bytes()

    def broken():
        yield plain(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_groups(path, broken(), about={})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_fingerprint_is_the_hash_of_the_file(tmp_path):
    path, same, other = (tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet"))
    write_groups(path, [plain(1)], about={"seed": "7"})
    write_groups(same, [plain(1)], about={"seed": "7"})
    write_groups(other, [plain(2)], about={"seed": "7"})
    found = Groups([path]).fingerprint
    assert found == f"sha256:{sha256(path.read_bytes()).hexdigest()}"
    assert Groups([same]).fingerprint == found
    assert Groups([other]).fingerprint != found
    assert Groups([path, other]).fingerprint != Groups([other, path]).fingerprint


def test_a_copy_for_another_process_reads_the_same(tmp_path):
    path = tmp_path / "train.parquet"
    write_groups(path, map(plain, range(3)), about={})
    opened = Groups([path])
    assert list(pickle.loads(pickle.dumps(opened))) == list(opened)


def test_a_file_of_another_tool_will_do(tmp_path):
    path = tmp_path / "theirs.parquet"
    row = {
        "query_id": "q", "query": "what", "type": None, "doc_ids": ["d"], "titles": [""],
        "texts": ["that"], "labels": [1], "ranks": [0], "teacher": [0.5], "missed": [2],
        "their own": 1,
    }  # fmt: skip
    parquet.write_table(pa.Table.from_pylist([row]), path)  # labels are int64 now, texts string
    expected = Group(Query("q", "what"), (Document("d", "that"),), (1,), (0,), (0.5,), (2,))
    assert list(Groups([path])) == [expected]


def test_grades_that_differ_from_labels_are_kept(tmp_path):
    path = tmp_path / "dev.parquet"
    graded = replace(plain(0), grades=tuple(range(len(plain(0).labels))))
    write_groups(path, [graded, plain(1)], about={})
    assert list(Groups([path])) == [graded, plain(1)]


def test_what_is_no_group_file_is_refused(tmp_path):
    path = tmp_path / "train.parquet"
    with pytest.raises(MalformedInput, match="cannot be read as Parquet"):
        Groups([path])
    path.write_text("no parquet\n" * 5)
    with pytest.raises(MalformedInput, match="secondlook mine"):
        Groups([path])
    write_groups(path, map(plain, range(100)), about={})
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(MalformedInput, match=re.escape(str(path))):
        Groups([path])
    parquet.write_table(pa.table({"query_id": ["q"]}), path)
    with pytest.raises(MalformedInput, match="lacks the column 'query'"):
        Groups([path])


def test_a_row_that_contradicts_itself_is_refused_by_its_query(tmp_path):
    path = tmp_path / "train.parquet"
    write_groups(path, [plain(1)], about={})
    rows = parquet.read_table(path).to_pylist()
    rows[0]["labels"] = [1]
    parquet.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    with pytest.raises(MalformedInput, match=r"'q1'.*2 documents and 1 labels"):
        Groups([path])[0]
    rows[0]["texts"] = None
    parquet.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    with pytest.raises(MalformedInput, match="'q1'"):
        Groups([path])[0]


def test_nothing_and_half_characters_cannot_be_written(tmp_path):
    with pytest.raises(Unwritable, match="no group"):
        write_groups(tmp_path / "train.parquet", [], about={})
    with pytest.raises(Unwritable, match="surrogate"):
        write_groups(tmp_path / "train.parquet", [plain(1, "half \ud800")], about={})
    assert not list(tmp_path.iterdir())
