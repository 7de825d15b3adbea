"""API keys: random words that clients send, of which only hashes are kept.

A key has 256 random bits, so that one round of SHA-256 is as safe as a slow hash, and costs no
request its time. (Slow hashes are for passwords, which can be guessed.)
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from secondlook.errors import MalformedInput, Unwritable
from secondlook.serve.logs import LOGGER

if TYPE_CHECKING:
    from pathlib import Path

_LINE = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,64}) sha256:(?P<hash>[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys a server takes: who holds each, and its hash."""

    hashes: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, path: Path) -> Keys:
        """A file of lines `NAME sha256:HASH`; empty lines and `#` comments are passed over."""
        held = []
        for number, line in _lines(path):
            if (found := _LINE.fullmatch(line)) is None:
                raise MalformedInput(
                    path, number, "is no key; make one with: secondlook key NAME --keys FILE"
                )
            held.append((found["name"], found["hash"]))
        if not held:
            raise MalformedInput(
                path, None, "holds no key; make one with: secondlook key NAME --keys FILE"
            )
        return cls(tuple(held))

    @classmethod
    def reread(cls, path: Path) -> Keys:
        """The keys of a server that is running: exactly those that are in the file now.

        There may be none. A line that is no key is logged and left out: were the whole file
        refused, keys that were deleted from it would go on working.
        """
        held = []
        for number, line in _lines(path):
            if (found := _LINE.fullmatch(line)) is None:
                facts = {"file": str(path), "line": number}
                LOGGER.error("a line of the key file is no key", extra={"facts": facts})
            else:
                held.append((found["name"], found["hash"]))
        return cls(tuple(held))

    def holder(self, key: str) -> str | None:
        """Who holds this key, or None. All hashes are compared, each in constant time."""
        given, found = _hash(key), None
        for name, kept in self.hashes:
            if hmac.compare_digest(given, kept):
                found = name
        return found


def add_key(path: Path, name: str) -> str:
    """A new key for `name`; its hash is added to the file, the key itself is kept nowhere."""
    key = f"sl_{secrets.token_urlsafe(32)}"
    line = f"{name} sha256:{_hash(key)}"
    if not _LINE.fullmatch(line):
        raise Unwritable(f"{name!r} is no name for a key: take letters, digits, '.', '_' and '-'")
    try:
        path.touch(mode=0o600)
        whole = path.read_bytes()
        with path.open("a", encoding="utf-8") as out:
            if whole and not whole.endswith(b"\n"):  # as some editors leave it
                out.write("\n")
            out.write(line + "\n")
    except OSError as error:
        raise Unwritable(f"{path} cannot be written ({error})") from error
    return key


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines that should be keys, with their numbers."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise MalformedInput(path, None, f"cannot be read ({error})") from error
    lines = enumerate(text.splitlines(), start=1)
    return [(n, line.strip()) for n, line in lines if line.strip() and not line.startswith("#")]


def _hash(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
