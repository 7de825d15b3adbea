"""The group file: what a ranker learns from or is validated on; a row is a query, its candidates.

One Parquet file holds texts, labels and first-stage ranks, so that training needs neither index
nor store. Any tool that writes Parquet can make one: the columns are those of `SCHEMA`.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING, Any, overload

from secondlook.data.durable import replacing_file
from secondlook.errors import MalformedInput, MissingExtra, Unwritable
from secondlook.types import Document, Query

try:
    import pyarrow as pa
    from pyarrow import parquet
except ImportError as error:
    raise MissingExtra("train", "reading and writing training groups") from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

UNJUDGED = -1
"""The label of a candidate that nobody judged; it is trained on as a negative."""

SCHEMA = pa.schema(
    [
        ("query_id", pa.string()),
        ("query", pa.string()),
        ("type", pa.string()),  # may be null
        ("doc_ids", pa.list_(pa.string())),
        ("titles", pa.list_(pa.string())),
        ("texts", pa.list_(pa.large_string())),
        ("labels", pa.list_(pa.int8())),
        ("ranks", pa.list_(pa.int32())),
        ("teacher", pa.list_(pa.float32())),  # may be null
        ("missed", pa.list_(pa.int8())),
        ("grades", pa.list_(pa.int8())),  # may be null
    ]
)
_OPTIONAL = frozenset({"grades"})
"""Columns that files of earlier versions lack."""
_ABOUT = b"secondlook.groups"
_ROWS_TOGETHER = 64
_TEXT_TOGETHER = 4 << 20
"""A row group, the least that is read at once, ends at this many rows or characters."""
_IN_MEMORY = 256 << 20
"""Bytes of row groups that stay in memory; an epoch reads them in random order."""
HIGHEST_GRADE = 127


@dataclass(frozen=True, slots=True)
class Group:
    """One query and the candidates a ranker is to put in order."""

    query: Query
    documents: tuple[Document, ...]
    labels: tuple[int, ...]
    """The grade of each document: above 0 it is a positive, 0 was judged not relevant, -1 was
    not judged."""
    ranks: tuple[int, ...]
    """Where the first stage put each document, from 1; 0 where it did not find it."""
    teacher: tuple[float, ...] | None = None
    """A teacher's score of each document."""
    missed: tuple[int, ...] = ()
    """The grades above 0 of judged documents that are not here, so that nDCG can be exact."""
    grades: tuple[int, ...] | None = None
    """What measures count, where it differs from the labels: a grade above 0 that is too low for a
    positive has the label 0 and still its gain."""

    def __post_init__(self) -> None:
        count = len(self.documents)
        for name in ("labels", "ranks", "teacher", "grades"):
            given = getattr(self, name)
            if given is not None and len(given) != count:
                raise ValueError(
                    f"query {self.query.id!r} has {count} documents and {len(given)} {name}"
                )
        if any(not UNJUDGED <= label <= HIGHEST_GRADE for label in (*self.labels, *self.measured)):
            raise ValueError(f"query {self.query.id!r} has a label outside of -1 to 127")
        if any(not 0 < grade <= HIGHEST_GRADE for grade in self.missed):
            raise ValueError(f"query {self.query.id!r} has a missed grade outside of 1 to 127")

    @property
    def measured(self) -> tuple[int, ...]:
        """The grade of each document as measures count it; -1 was not judged."""
        return self.labels if self.grades is None else self.grades


def write_groups(path: Path, groups: Iterable[Group], *, about: Mapping[str, str]) -> int:
    """Write the groups as they come, all or nothing, and say how many there were.

    `about` says what they were made of, and is read back as `Groups.about`. Equal groups and an
    equal `about` give equal bytes, for one version of pyarrow.
    """
    schema = SCHEMA.with_metadata({_ABOUT: json.dumps(dict(about), sort_keys=True).encode()})
    written = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            replacing_file(path) as half,
            parquet.ParquetWriter(half, schema, compression="zstd") as writer,
        ):
            for together in _row_groups(groups):
                writer.write_table(_table(together, schema), row_group_size=len(together))
                written += len(together)
            if not written:
                raise Unwritable(f"{path}: there is no group to write")
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror or error}") from error
    return written


class Groups(Sequence[Group]):
    """The groups of one or more files, one after the other; any can be read without the rest.

    Only some row groups are held in memory. A copy sent to another process opens the files anew.
    Raises MalformedInput for a file that is none of this kind.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._files = [_open(path) for path in self.paths]
        self._starts = [0]  # of every row group among all rows, and the end
        self._places: list[tuple[int, int]] = []  # file and row group
        for number, file in enumerate(self._files):
            for inside in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(inside).num_rows
                self._starts.append(self._starts[-1] + rows)
                self._places.append((number, inside))
        self._held: OrderedDict[int, pa.Table] = OrderedDict()
        self._bytes = 0  # of what is held

    @cached_property
    def fingerprint(self) -> str:
        """`sha256:` and the digest of the file; of several files, of their digests in a row."""
        digests = []
        for path in self.paths:
            with path.open("rb") as file:
                digests.append(file_digest(file, "sha256").hexdigest())
        whole = digests[0] if len(digests) == 1 else sha256("".join(digests).encode()).hexdigest()
        return f"sha256:{whole}"

    @property
    def about(self) -> tuple[dict[str, str], ...]:
        """For each file what it was made of; nothing where another tool made it."""
        metadata = [file.schema_arrow.metadata or {} for file in self._files]
        return tuple(json.loads(found.get(_ABOUT, b"{}")) for found in metadata)

    @property
    def labels(self) -> str:
        """Where their judgments came from, if not from people."""
        return "; ".join(sorted({made["labels"] for made in self.about if "labels" in made}))

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> Group: ...
    @overload
    def __getitem__(self, index: slice) -> list[Group]: ...
    def __getitem__(self, index: int | slice) -> Group | list[Group]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        number = bisect_right(self._starts, place) - 1
        row = place - self._starts[number]
        return _group(self._row_group(number), row, self.paths[self._places[number][0]])

    def __iter__(self) -> Iterator[Group]:
        return (self[place] for place in range(len(self)))

    def __reduce__(self) -> tuple[type[Groups], tuple[tuple[Path, ...]]]:
        return Groups, (self.paths,)

    def _row_group(self, number: int) -> pa.Table:
        if number in self._held:
            self._held.move_to_end(number)
            return self._held[number]
        file, inside = self._places[number]
        path = self.paths[file]
        try:
            # Arrow's own threads would not survive the fork of a data loader.
            table = self._files[file].read_row_group(
                inside, columns=SCHEMA.names, use_threads=False
            )
            for name in _OPTIONAL.difference(table.column_names):
                nothing = pa.nulls(len(table), SCHEMA.field(name).type)
                table = table.append_column(name, nothing)
            table = table.select(SCHEMA.names).cast(SCHEMA)
        except (pa.ArrowException, OSError) as error:
            raise _malformed(path, f"its row group {inside} cannot be read ({error})") from error
        self._held[number] = table
        self._bytes += table.nbytes
        while self._bytes > _IN_MEMORY and len(self._held) > 1:
            self._bytes -= self._held.popitem(last=False)[1].nbytes
        return table


def _row_groups(groups: Iterable[Group]) -> Iterator[list[Group]]:
    held: list[Group] = []
    size = 0
    for group in groups:
        held.append(group)
        size += sum(len(document.text) for document in group.documents)
        if len(held) == _ROWS_TOGETHER or size >= _TEXT_TOGETHER:
            yield held
            held, size = [], 0
    if held:
        yield held


def _table(groups: list[Group], schema: pa.Schema) -> pa.Table:
    try:
        return pa.Table.from_pylist([row_of(group) for group in groups], schema=schema)
    except UnicodeEncodeError as error:
        raise Unwritable(
            "a text holds half of a surrogate pair, which no file can hold; mend what ends in "
            f"{error.object[max(0, error.start - 40) : error.start + 1]!r}"
        ) from error


def row_of(group: Group) -> dict[str, Any]:
    """The group by the columns of `SCHEMA`."""
    return {
        "query_id": group.query.id,
        "query": group.query.text,
        "type": group.query.type,
        "doc_ids": [document.id for document in group.documents],
        "titles": [document.title for document in group.documents],
        "texts": [document.text for document in group.documents],
        "labels": group.labels,
        "ranks": group.ranks,
        "teacher": group.teacher,
        "missed": group.missed,
        "grades": group.grades,
    }


def group_of(row: Mapping[str, Any]) -> Group:
    """The same back."""
    documents = zip(row["doc_ids"], row["texts"], row["titles"], strict=True)
    return Group(
        Query(row["query_id"], row["query"], row["type"]),
        tuple(Document(*one) for one in documents),
        tuple(row["labels"]),
        tuple(row["ranks"]),
        None if row["teacher"] is None else tuple(row["teacher"]),
        tuple(row["missed"]),
        None if row["grades"] is None else tuple(row["grades"]),
    )


def _group(table: pa.Table, row: int, path: Path) -> Group:
    (found,) = table.slice(row, 1).to_pylist()
    try:
        return group_of(found)
    except (TypeError, ValueError) as error:
        raise _malformed(path, f"query {found['query_id']!r} cannot be read ({error})") from error


def _open(path: Path) -> Any:  # noqa: ANN401 - pyarrow has no types
    try:
        file = parquet.ParquetFile(path, memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise _malformed(path, f"cannot be read as Parquet ({error})") from error
    needed = [name for name in SCHEMA.names if name not in _OPTIONAL]
    missing = [name for name in needed if name not in file.schema_arrow.names]
    if missing:
        raise _malformed(path, f"lacks the column {missing[0]!r}")
    return file


def _malformed(path: Path, problem: str) -> MalformedInput:
    return MalformedInput(
        path, None, f"{problem}; a group file is made with: secondlook mine … -o {path.name}"
    )
