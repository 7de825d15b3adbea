"""Tables of pandas: made only where pandas is installed, read by their columns alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from secondlook.errors import MalformedInput, SecondlookError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def dataframe(rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> Any:  # noqa: ANN401
    """A pandas DataFrame with these columns, a row for each mapping."""
    try:
        import pandas as pd
    except ImportError as error:
        raise SecondlookError("a DataFrame needs pandas: pip install pandas") from error
    return pd.DataFrame(list(rows), columns=list(columns))


def is_dataframe(given: object) -> bool:
    """Whether it is a table with named columns, of pandas or alike."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def column(frame: Any, what: str, *names: str) -> list[Any]:  # noqa: ANN401 - any library's frame
    """The values of the first of these columns that the table has; `what` says what they are."""
    have = [str(name) for name in frame.columns]
    for name in names:
        if name in have:
            return list(frame[name])
    raise MalformedInput(
        "the DataFrame",
        None,
        f"it has no column of {what}; name one of its columns ({', '.join(have)}) "
        f"{' or '.join(names)}",
    )
