"""What is said where a verb ends early: one message that says what was kept and how to go on.

Exit codes: 0 done, 1 a problem the user can mend, 2 a wrong option or argument, 3 the verdict asked
for was not reached (`tune`, `compare --require`), 130 interrupted (Ctrl-C).
"""

from __future__ import annotations

import errno
from typing import Any

from typer.core import TyperGroup

from secondlook.errors import Interrupted, SecondlookError, WrongArgument

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


class Verbs(TyperGroup):
    """The command line, which turns what a person can mend into a message."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - click's context, whose place varies
        """Run a verb."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as pressed:
            raise Interrupted(_with_what_was_kept("stopped", pressed)) from pressed
        except (SecondlookError, BrokenPipeError):
            raise
        except Exception as error:
            problem = told(error)
            if problem is None:
                raise
            raise SecondlookError(_with_what_was_kept(problem, error)) from error


def exit_code(problem: SecondlookError) -> int:
    """What the process ends with."""
    if isinstance(problem, WrongArgument):
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
