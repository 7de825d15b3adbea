"""Where tuning keeps what its stages make."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


_ENDINGS = frozenset({".jsonl", ".json", ".tsv", ".txt", ".xml", ".cbor"})
"""The usual ones of texts in the formats that can be read; each may be compressed."""


class TuneFiles:
    """The files of one tuning, by name; `stages` can be removed, and all is made again."""

    data: Path
    output: Path
    bases: tuple[str, ...]
    clicks: Path | None
    expander: str | None
    given_index: Path | None
    """An index that there was before, searched instead of one made of the corpus."""

    @property
    def results(self) -> Path:
        """What the stages made."""
        return self.output / "stages"

    @property
    def index(self) -> Path:
        """The first stage's index."""
        return self.given_index or self.results / "index"

    @property
    def judged(self) -> Path:
        """Queries and judgments: given, or made."""
        return self.results / "made" if self.clicks or self.expander else self.data

    @property
    def report(self) -> Path:
        """The page for people."""
        return self.output / "report.html"

    @property
    def shipped(self) -> Path:
        """The ranker, where it helps."""
        return self.output / "ranker"

    @property
    def ship_noted(self) -> Path:
        """Says of which ranker `shipped` was made."""
        return self.results / "ranker.made-of"

    @property
    def fusion_done(self) -> Path:
        """Is there when a fusion of the tuned ranker was tried: that none is better is a result."""
        return self.results / "fusion.done"

    def planned(self, name: str) -> Any:  # noqa: ANN401 - a number
        """A figure of the plan."""
        return json.loads((self.results / "plan.json").read_text("utf-8"))[name]

    @property
    def base(self) -> str:
        """The base that tuning starts from, known once the bases were tried."""
        if len(self.bases) == 1:
            return self.bases[0]
        chosen: str = json.loads((self.results / "bases.json").read_text("utf-8"))["base"]
        return chosen

    @property
    def tried_bases(self) -> dict[str, float]:
        """Base → nDCG@10 without training on some validation queries; empty for a single base."""
        kept = self.results / "bases.json"
        if len(self.bases) == 1:
            return {}
        return dict(json.loads(kept.read_text("utf-8"))["nDCG@10"])

    @property
    def better(self) -> str:
        """What the tuned ranker is: `untuned`, `trained`, or `separate`, that without attention."""
        chosen: str = json.loads((self.results / "chosen.json").read_text("utf-8"))["weights"]
        return chosen

    @property
    def first_stage_file(self) -> Path:
        """Which first stage was chosen for the index made here."""
        return self.results / "first_stage.json"

    @property
    def by(self) -> str:
        """How candidates are retrieved: `bm25`, `vectors`, `hybrid`, or as a given `index` is."""
        if self.given_index:
            return "index"
        found: str = json.loads(self.first_stage_file.read_text("utf-8"))["by"]
        return found

    @property
    def queries(self) -> Path:
        """Their texts."""
        return file_of(self.judged, "queries")

    def qrels(self, part: str) -> Path:
        """The split as it is."""
        return self.results / "qrels" / f"{part}.tsv"

    def used(self, part: str) -> Path:
        """What of the split there is time for."""
        return self.results / "used" / f"{part}.tsv"

    def run(self, name: str, part: str) -> Path:
        """The run of a ranker over a part of the queries."""
        return self.results / f"{part}.{name}.trec.gz"

    def candidates(self, part: str) -> Path:
        """The run of the first stage over a part of the queries, named by how it retrieves."""
        return self.run("bm25" if self.by == "index" else self.by, part)

    def ranker(self, name: str) -> Path:
        """The folder of a ranker."""
        return self.results / name


def file_of(folder: Path, name: str) -> Path:
    """The file of this name in a data folder, whatever its format."""
    from secondlook.errors import SecondlookError

    found = files_of(folder, name)
    if not found:
        raise SecondlookError(
            f"{folder} has no {name}.jsonl; `secondlook convert` converts other formats"
        )
    return found[0]


def files_of(folder: Path, name: str) -> list[Path]:
    """The files of this name: those with a usual ending, else any.

    A backup beside the file is none of them, nor is a folder, such as an index.
    """
    named = [path for path in sorted(folder.glob(f"{name}.*")) if path.is_file()]
    usual = [
        path
        for path in named
        if path.name.removesuffix(".gz").removesuffix(".zst").removeprefix(name) in _ENDINGS
    ]
    return usual or named  # formats are told by content
