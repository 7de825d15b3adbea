import gzip
import os
import stat

import pytest
import zstandard

from secondlook.data.lines import CORRUPTS_COLUMNS, first_bytes, lines, write_lines
from secondlook.errors import MalformedInput, Unwritable


def texts(path, **how):
    return [line for _, line in lines(path, **how)]


def packed(content, how):
    if how == "gz":
        return gzip.compress(content)
    if how == "zst":
        return zstandard.ZstdCompressor().compress(content)
    return content


@pytest.mark.parametrize("how", ["plain", "gz", "zst"])
def test_compression_is_told_by_the_content_whatever_the_name(tmp_path, how):
    path = tmp_path / "file.txt"
    path.write_bytes(packed("één\ntwee\n".encode(), how))
    assert list(lines(path)) == [(1, "één"), (2, "twee")]
    assert first_bytes(path, 5) == "één".encode()


@pytest.mark.parametrize("how", ["gz", "zst"])
def test_compressed_parts_one_after_the_other_are_one_file(tmp_path, how):
    path = tmp_path / "file"
    path.write_bytes(packed(b"one\ntw", how) + packed(b"", how) + packed(b"o\nthree\n", how))
    assert texts(path) == ["one", "two", "three"]


def test_a_skippable_zst_frame_is_skipped(tmp_path):
    path = tmp_path / "file"
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"
    path.write_bytes(skippable + packed(b"one\n", "zst"))
    assert texts(path) == ["one"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\nb\n\n\r\n\n", ["a", "b"]),
        (b"a\nb\r\n", ["a", "b"]),
        ("a\u2028b\x85c\x0bd\n".encode(), ["a\u2028b\x85c\x0bd"]),
        (b" a \t\n", [" a \t"]),
    ],
    ids=["BOM", "CRLF", "no last end", "blank at the end", "mixed", "odd ends", "spaces kept"],
)
def test_odd_but_harmless_files_are_read(tmp_path, content, expected):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert texts(path) == expected


def test_lines_and_blocks_of_any_size_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("secondlook.data.lines.BLOCK", 7)
    rows = ["x" * size for size in (1, 6, 7, 8, 20, 1, 1)] + ["é" * 9]
    path = tmp_path / "file"
    write_lines(path, rows)
    assert list(lines(path)) == list(enumerate(rows, start=1))


def test_a_line_of_ten_megabytes_is_read(tmp_path):
    path = tmp_path / "file.gz"
    write_lines(path, ["short", "x" * 10_000_000, "short"])
    assert [len(line) for line in texts(path)] == [5, 10_000_000, 5]


def test_an_endless_line_is_refused_before_it_is_read_to_its_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"first\n" + b"x" * (4 << 20))
    with pytest.raises(MalformedInput, match=r"file:2: is longer than 2 MiB"):
        texts(path, longest=2 << 20)


def test_where_columns_could_break_every_control_character_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a\tb\nc\x1cd\n")
    assert texts(path) == ["a\tb", "c\x1cd"]
    with pytest.raises(MalformedInput, match=r"file:2: holds the control character '\\x1c'"):
        texts(path, refuse=CORRUPTS_COLUMNS)


def test_the_line_of_an_error_is_right_in_later_blocks_too(tmp_path, monkeypatch):
    monkeypatch.setattr("secondlook.data.lines.BLOCK", 16)
    path = tmp_path / "file"
    path.write_bytes(b"line\n" * 50 + b"bad \xff\n" + b"line\n" * 50)
    with pytest.raises(MalformedInput) as caught:
        texts(path)
    assert caught.value.line == 51


def test_what_was_there_survives_a_failed_write_and_nothing_else_is_left(tmp_path):
    target = tmp_path / "run.trec"
    target.write_text("as it was\n")

    def interrupted():
        yield "half"
        raise KeyboardInterrupt

    for end in ("", ".gz", ".zst"):
        with pytest.raises(KeyboardInterrupt):
            write_lines(tmp_path / f"run.trec{end}", interrupted())
    assert [path.name for path in tmp_path.iterdir()] == ["run.trec"]
    assert target.read_text() == "as it was\n"


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unwritable, match="No space left on device"):
        write_lines(tmp_path / "file", ["line"])
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_reported(tmp_path):
    with pytest.raises(Unwritable, match="No such file or directory"):
        write_lines(tmp_path / "no" / "file", ["line"])


def test_half_a_surrogate_pair_cannot_be_written(tmp_path):
    with pytest.raises(Unwritable, match="surrogate"):
        write_lines(tmp_path / "file", ["good", "bad \ud800"])
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link_and_others_may_read_what_we_write(tmp_path):
    (tmp_path / "real").write_text("old\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_lines(tmp_path / "link", ["new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new\n"
    (tmp_path / "plain").write_text("made by open()\n")
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )


def test_a_zst_file_with_the_longest_window_is_read(tmp_path):
    far = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    path = tmp_path / "file"
    packing = zstandard.ZstdCompressor(compression_params=far).compressobj()  # of unknown size
    path.write_bytes(packing.compress(b"one\ntwo\n") + packing.flush())
    assert zstandard.get_frame_parameters(path.read_bytes()[:20]).window_size == 1 << 28
    assert texts(path) == ["one", "two"]
