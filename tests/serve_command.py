"""`secondlook serve` as a program of its own."""

import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager


def free_port():
    """One that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def served(words, folder, port=None, patience=120):
    """The server that a command starts, ready to be asked; its page is there."""
    port = port or (words[words.index("--port") + 1] if "--port" in words else "8080")
    with (folder / "serve.log").open("w") as log:
        server = subprocess.Popen(words, cwd=folder, stderr=log)
    try:
        for _ in range(5 * patience):
            assert server.poll() is None, (folder / "serve.log").read_text()
            try:
                page = urllib.request.urlopen(f"http://127.0.0.1:{port}/")
            except OSError:
                time.sleep(0.2)
                continue
            with page:
                assert "<title>" in page.read().decode()
            break
        yield
    finally:
        server.terminate()
        server.wait(30)
