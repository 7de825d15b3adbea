"""What is said where a verb ends early: one message that says what was kept and how to go on.

Exit codes: 0 done, 1 a problem the user can mend, 2 a wrong option or argument, 3 the verdict asked
for was not reached (`tune`, `compare --require`), 130 interrupted (Ctrl-C).
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Any

from secondlook.errors import Interrupted, SecondlookError, UnknownName, WrongArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROBLEM, WRONG_OPTION, INTERRUPTED = 1, 2, 130
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_ALSO_FULL = (
    "no space left on device",
    "disk is full",
    "quota exceeded",
    "file too large",
    "pytorchstreamwriter failed writing",
    "iostream error",  # OpenVINO
)
"""How libraries say it that raise no OSError."""
_ARGUMENT = re.compile(r"`([a-z][a-z0-9_]*)(?:=True)?`")


def as_problem(error: BaseException, options: Iterable[Any]) -> SecondlookError | None:
    """What a verb with these options ends with; None for a fault of the program itself.

    Where a function's message names an argument, as `replace=True`, the verb's option stands.
    """
    if isinstance(error, KeyboardInterrupt):
        problem: SecondlookError = Interrupted(_with_what_was_kept("stopped", error))
    elif isinstance(error, SecondlookError):
        problem = error
    elif type(error).__name__ == "ValidationError":  # pydantic's: options that make no settings
        problem = WrongArgument("; ".join(map(_wrong_setting, error.errors())))  # type: ignore[attr-defined]
    elif words := told(error):
        problem = SecondlookError(_with_what_was_kept(words, error))
    else:
        return None
    spelled = {
        option.name: next((name for name in option.opts if name.startswith("--")), option.opts[0])
        for option in options
        if option.param_type_name == "option"
    }
    message = _ARGUMENT.sub(lambda named: spelled.get(named[1], named[0]), str(problem))
    problem.args = (message,)
    return problem


def exit_code(problem: SecondlookError) -> int:
    """What the process ends with."""
    if isinstance(problem, (WrongArgument, UnknownName)):
        return WRONG_OPTION
    return INTERRUPTED if isinstance(problem, Interrupted) else PROBLEM


def told(error: BaseException) -> str | None:
    """A failure of the machine in words; None for one of the program, which shows its traceback."""
    if _is_full(error):
        where = getattr(error, "filename", None)
        return f"the disk is full{f' ({where})' if where else ''}: free some space"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return None


def _wrong_setting(problem: Mapping[str, Any]) -> str:
    place = "".join(f"{part}: " for part in problem["loc"])
    return place + str(problem["msg"]).removeprefix("Value error, ")


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    if any(words in str(error).casefold() for words in _ALSO_FULL):
        return True
    cause = error.__cause__ or error.__context__
    return cause is not None and _is_full(cause)


def _with_what_was_kept(problem: str, error: BaseException) -> str:
    from secondlook.data.lock import left_by

    return f"{problem}; {left_by(error) or 'nothing was written'}"
