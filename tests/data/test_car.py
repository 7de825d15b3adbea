import gzip
import sys

import pytest

from secondlook import data
from secondlook.errors import MalformedInput, MissingExtra
from secondlook.types import Document, Query


@pytest.fixture
def cbor():
    """Makes CBOR; comes with trec-car-tools, which reads it."""
    return pytest.importorskip("cbor")


def paragraph(number):
    link = [1, [0, "Moon", [], b"enwiki:Moon", "the moon"]]
    return [0, b"%040x" % number, [[0, f"Paragraph {number}: tides follow "], link, [0, "."]]]


def page():
    deeper = [0, "Neap tide", b"Neap%20tide", []]
    sections = [[0, "Types", b"Types", [deeper]], [0, "Café", b"Caf%C3%A9", []]]
    return [0, "Tide", b"enwiki:Tide", sections, [0], []]


def car_file(cbor, kind, elements):
    """As the files of version 2.0 and later are: a header, and a list that marks its end."""
    start = cbor.dumps(["CAR", [kind], {}]) + b"\x9f"
    return start + b"".join(map(cbor.dumps, elements)) + b"\xff"


TIDES = "tides follow the moon."
EXPECTED = [Document(f"{i:040x}", f"Paragraph {i}: {TIDES}") for i in range(300)]


@pytest.mark.parametrize("form", ["with header", "older", "gz"])
def test_paragraphs_with_links_as_words(tmp_path, cbor, form):
    elements = list(map(paragraph, range(300)))
    content = (
        b"".join(map(cbor.dumps, elements)) if form == "older" else car_file(cbor, 2, elements)
    )
    path = tmp_path / "paragraphs.cbor"
    path.write_bytes(gzip.compress(content) if form == "gz" else content)
    assert list(data.read_corpus(path)) == EXPECTED


@pytest.mark.parametrize("form", ["with header", "older", "gz"])
@pytest.mark.parametrize("cut", [1, 2, 30, 100, 1000])
def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path, cbor, form, cut):
    elements = list(map(paragraph, range(300)))
    path = tmp_path / "paragraphs.cbor"
    if form == "older":
        path.write_bytes(b"".join(map(cbor.dumps, elements))[:-cut])
    elif form == "gz":
        path.write_bytes(gzip.compress(car_file(cbor, 2, elements))[:-cut])
    else:
        path.write_bytes(car_file(cbor, 2, elements)[:-cut])
    with pytest.raises(MalformedInput, match=r"ends amid|cut short"):
        list(data.read_corpus(path))


def test_other_bytes_and_other_car_files_are_refused(tmp_path, cbor):
    path = tmp_path / "file.cbor"
    path.write_bytes(car_file(cbor, 1, [page()]))
    with pytest.raises(MalformedInput, match="does not support CAR file type"):
        list(data.read_corpus(path))
    path.write_bytes(b"\x83\x01\x02\x03")
    with pytest.raises(MalformedInput, match="not the CBOR"):
        list(data.read_corpus(path))
    path.write_bytes(b"")
    with pytest.raises(MalformedInput):
        list(data.read_corpus(path, "car"))


def test_outlines_give_every_section_as_title_and_headings(tmp_path, cbor):
    path = tmp_path / "outlines.cbor"
    path.write_bytes(car_file(cbor, 1, [page()]))
    assert list(data.read_queries(path)) == [
        Query("enwiki:Tide/Types", "Tide Types"),
        Query("enwiki:Tide/Types/Neap%20tide", "Tide Types Neap tide"),
        Query("enwiki:Tide/Caf%C3%A9", "Tide Café"),
    ]


def test_paths_give_title_and_all_headings(tmp_path):
    path = tmp_path / "topics.txt"
    path.write_text("enwiki:Tide\nenwiki:Spring%20tide/Types/Caf%C3%A9\nenwiki:C++/100%\n")
    assert list(data.read_queries(path)) == [
        Query("enwiki:Tide", "Tide"),
        Query("enwiki:Spring%20tide/Types/Caf%C3%A9", "Spring tide Types Café"),
        Query("enwiki:C++/100%", "C++ 100%"),
    ]


def test_paths_of_older_files_have_no_site_and_must_be_named(tmp_path):
    path = tmp_path / "topics.txt"
    path.write_text("Tide/Types\n")
    assert list(data.read_queries(path, "car")) == [Query("Tide/Types", "Tide Types")]


def test_without_the_package_the_extra_is_named(tmp_path, cbor, monkeypatch):
    path = tmp_path / "paragraphs.cbor"
    path.write_bytes(car_file(cbor, 2, [paragraph(1)]))
    monkeypatch.setitem(sys.modules, "trec_car", None)
    with pytest.raises(MissingExtra, match=r"pip install 'secondlook\[datasets\]'"):
        list(data.read_corpus(path))
