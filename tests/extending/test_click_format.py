"""A click-log format of another package: one function, one line that registers it."""

from __future__ import annotations

from command_line import in_process
from secondlook.data import read_qrels
from secondlook.data.clicks import CLICK_FORMATS, Impression
from secondlook.data.lines import lines


def read_semicolons(path):
    for number, line in lines(path):
        query, shown, clicked = line.split(";")
        yield number, Impression(query, tuple(shown.split(",")), frozenset(clicked.split(",")))


def test_it_is_read_by_its_name(tmp_path):
    CLICK_FORMATS.add("semicolons", read_semicolons)
    log = tmp_path / "log.txt"
    log.write_text("cape fear;d1,d2,d3;d2\n" * 10 + "cape fear;d2,d3,d1;d2\n" * 10)
    in_process("clicks", log, "-o", tmp_path / "made", "--eta", "1", "--format", "semicolons")
    (grades,) = read_qrels(tmp_path / "made").values()
    assert grades == {"d1": 0, "d2": 1, "d3": 0}
    said = in_process("clicks", log, "-o", tmp_path / "no", "--format", "semicolon", fails=True)
    assert "did you mean 'semicolons'" in said
    log.write_text("cape fear;d1;d9\n")
    said = in_process("clicks", log, "-o", tmp_path / "no", "--format", "semicolons", fails=True)
    assert "log.txt:1: document 'd9' was clicked" in said
