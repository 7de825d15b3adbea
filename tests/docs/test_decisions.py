"""Decision records: one template, one index, and no reference to a number that is gone."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("0*.md"))
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
DEPENDENCIES = (FOLDER / "dependencies.md").read_text(encoding="utf-8")
PARTS = ["Context", "Decision", "Consequences", "Revisit when"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_has_the_four_parts_in_order(record):
    text = record.read_text(encoding="utf-8")
    assert text.startswith(f"# {record.name[:4]} ")
    assert re.findall(r"^\*\*([A-Z][^*]*?)\.?\*\*", text, re.MULTILINE) == PARTS


def test_the_index_has_every_record_once_by_its_title():
    rows = re.findall(r"^\| (\d{4}) \| \[(.+)\]\((\S+)\) \|", INDEX, re.MULTILINE)
    titles = {record.name: record.read_text(encoding="utf-8").split("\n")[0] for record in RECORDS}
    assert {name: f"# {number} {title}" for number, title, name in rows} == titles
    assert len(rows) == len(RECORDS)


def test_a_number_belongs_to_one_record():
    own = [record.name[:4] for record in RECORDS]
    included = re.findall(r"\d{4}", " ".join(re.findall(r"; includes ([\d, ]+)", INDEX)))
    covered = [
        number
        for record in RECORDS
        for line in re.findall(
            r"^Also covers .*$", record.read_text(encoding="utf-8"), re.MULTILINE
        )
        for number in re.findall(r"\b\d{4}\b", line)
    ]
    assert sorted(included) == sorted(covered)
    rows = re.findall(
        r"\b\d{4}\b", " ".join(re.findall(r"^\| [^|]+\((0[\d, ]+)\)", DEPENDENCIES, re.M))
    )
    numbers = own + included + rows
    assert len(numbers) == len(set(numbers))


def test_numbers_that_code_and_pages_name_are_those_of_records():
    known = {record.name[:4] for record in RECORDS}
    known |= set(re.findall(r"\b0\d{3}\b", INDEX + DEPENDENCIES))
    pages = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    for page in pages:
        named = re.findall(r"[Dd]ecisions?[/\s]+(\d{4})\b", page.read_text(encoding="utf-8"))
        assert set(named) <= known, page


def test_every_dependency_has_a_row():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    groups = [*project["optional-dependencies"].values(), *settings["dependency-groups"].values()]
    wanted = [*project["dependencies"], *(one for group in groups for one in group)]
    names = {re.match(r"[\w-]+", one)[0] for one in wanted if isinstance(one, str)}
    rows = re.findall(r"^\| ([^|]+) \|", DEPENDENCIES, re.MULTILINE)
    listed = set(re.findall(r"[\w-]+", " ".join(rows)))
    assert names - listed == {"secondlook"}
