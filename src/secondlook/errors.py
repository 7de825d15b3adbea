"""Everything that can go wrong and that a user can mend. Each message says what to do next."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import Any


class SecondlookError(Exception):
    """The root of the tree; the command line prints it as one line, without a traceback."""


class InvalidRanking(SecondlookError):
    """A ranking that is not best first, or names a document twice."""


class MissingDocument(SecondlookError):
    """An id that the corpus does not hold."""

    def __init__(self, doc_ids: Iterable[str], where: str) -> None:
        self.doc_ids = tuple(doc_ids)
        shown = ", ".join(repr(doc_id) for doc_id in self.doc_ids[:5])
        more = f" and {len(self.doc_ids) - 5} more" if len(self.doc_ids) > 5 else ""
        super().__init__(
            f"{where} does not hold {shown}{more}; is the run from another corpus, or the index "
            "older than the run? Re-index the corpus the run was made from"
        )


class VanishedDocuments(MissingDocument):
    """Documents that an index which others write to no longer holds; the rest were `found`."""

    def __init__(self, doc_ids: Iterable[str], where: str, found: Mapping[str, Any]) -> None:
        super().__init__(doc_ids, where)
        self.where, self.found = where, found


class MissingQuery(SecondlookError):
    """A ranking whose query has no text."""

    def __init__(self, query_id: str, where: str) -> None:
        super().__init__(
            f"the run ranks query {query_id!r}, which {where} does not hold; give the queries "
            "the run was made from"
        )


class MalformedInput(SecondlookError):
    """A file that does not hold what it should; names the file and the line."""

    def __init__(self, path: Path | str, line: int | None, problem: str) -> None:
        self.path, self.line, self.problem = path, line, problem
        place = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{place}: {problem}")


class DuplicateId(MalformedInput):
    """Two documents of one id; `first` and `second` are their places in the corpus, from 1."""

    def __init__(
        self, doc_id: str, first: int, second: int, lines_of: Path | str | None = None
    ) -> None:
        self.doc_id, self.first, self.second = doc_id, first, second
        noun = "document" if lines_of is None else "line"
        super().__init__(
            lines_of or "the corpus",
            None if lines_of is None else second,
            f"the id {doc_id!r} of {noun} {second:,} is that of {noun} {first:,} too; ids must be "
            "unique: drop or rename one",
        )

    def in_file(self, path: Path) -> DuplicateId:
        """The same where each document is a line of this file."""
        return DuplicateId(self.doc_id, self.first, self.second, path)


class Unwritable(SecondlookError):
    """Something that cannot be written: the format has no place for it, or the disk refuses."""


class OutputInUse(SecondlookError):
    """An output that another process is writing just now."""

    def __init__(self, target: Path, holder: str) -> None:
        super().__init__(
            f"{target} is being written by {holder or 'another process'}; wait until it has ended, "
            "or give another name for the output"
        )


class Interrupted(SecondlookError):
    """Work that the user stopped (Ctrl-C); says what was kept."""


class UnknownFormat(SecondlookError):
    """A file whose format could not be told."""


class UnknownName(SecondlookError):
    """A measure, engine or key that does not exist; names the nearest one that does."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = {known_name.casefold(): known_name for known_name in sorted(known)}
        near = get_close_matches(name.casefold(), names, n=1, cutoff=0.6)
        hint = (
            f"did you mean {names[near[0]]!r}?" if near else f"known: {', '.join(names.values())}"
        )
        super().__init__(f"no {kind} {name!r}; {hint}")


class MissingExtra(SecondlookError):
    """A part of the product whose packages are not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs more packages: pip install 'secondlook[{extra}]'")


class IndexProblem(SecondlookError):
    """An index folder that is missing, incomplete, or of another kind."""


class EngineProblem(SecondlookError):
    """A search engine that refused, failed or could not be reached."""


class RemoteProblem(SecondlookError):
    """A re-ranker behind a URL that refused, failed or could not be reached.

    `answer` is in the service's own words, which may repeat what it was sent: `reason` is the
    message without it.
    """

    def __init__(self, reason: str, answer: str = "") -> None:
        super().__init__(f"{reason}. Its answer: {answer}" if answer else reason)
        self.reason = reason


class CostLimitReached(RemoteProblem):
    """The next request to a remote re-ranker would cost more than may be spent."""


class Forbidden(EngineProblem):
    """A request that the user has no right to."""


class QueryRefused(EngineProblem):
    """A search that the engine does not understand; `reason` is in its own words."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class CheckpointProblem(SecondlookError):
    """A ranker's folder that is missing, incomplete, unsafe to load, or of another kind."""


class BackendProblem(SecondlookError):
    """A scoring back end that cannot run here, or not as asked."""


class UnusableTokenizer(SecondlookError):
    """A tokenizer that lacks what the settings ask of it."""


class MissingQueryType(SecondlookError):
    """A query without a type, and nothing that could predict one."""


class WrongArgument(SecondlookError, ValueError):
    """Arguments that do not go together; the command line exits as for a wrong option."""
