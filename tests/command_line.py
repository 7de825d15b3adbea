"""The command line as a user calls it."""

import signal
import subprocess
import sys
from contextlib import contextmanager

from typer.testing import CliRunner

from secondlook.cli import app
from secondlook.errors import SecondlookError

_MORTAL = """
import os, signal, sys
from importlib import import_module
from secondlook.cli import main
from secondlook.data import partial
from secondlook.data.partial import PartialLines

partial.SECONDS_BETWEEN_SAVES = 0
setattr(import_module("{module}"), "{constant}", 10)
append, left = PartialLines.append, [int(sys.argv.pop(1))]

def append_and_die(file, rows, items):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    append(file, rows, items)

PartialLines.append = append_and_die
main()
"""

_WRITER = """
import pathlib, sys
from secondlook.data.lock import Hold

hold = Hold(pathlib.Path(sys.argv[1]), "")
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def writing(target):
    """Another process that holds the lock on `target`, until it is told to end or is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


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


def in_process(*arguments, fails=False):
    """What a verb prints, or complains of if it `fails`; in this process, where torch is loaded."""
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=fails)
    assert (done.exit_code != 0) == fails, done.output
    if not fails:
        return done.stdout
    return str(done.exception) if isinstance(done.exception, SecondlookError) else done.output


def check_a_kill(output, at_once, verb, *arguments):
    """Killed after one of three batches (of ten or more), the verb goes on to the same `output`.

    `at_once` is the constant that says how large a batch is: `module.NAME`.
    """
    module, _, constant = at_once.rpartition(".")
    driver = _MORTAL.format(module=module, constant=constant)

    def drive(batches, out):
        command = [sys.executable, "-c", driver, batches, verb, *arguments, "-o", out]
        return subprocess.run(list(map(str, command)), check=False).returncode

    whole = output.with_name(f"whole.{output.name}")
    assert drive(9, whole) == 0
    assert drive(1, output) == -signal.SIGKILL
    assert not output.exists()
    assert drive(2, output) == 0  # two batches were left
    assert output.read_bytes() == whole.read_bytes()
    assert not list(output.parent.glob(".*"))
