"""The command line as a user calls it."""

import subprocess
import sys


def secondlook(*arguments, fails=False):
    """What a verb prints: on standard error if it `fails`, which it does without a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "secondlook", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if fails else done.stdout
