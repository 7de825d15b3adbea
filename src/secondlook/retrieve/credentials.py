"""How a user signs in to a cluster: one of several ways, from the environment or from a file."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from secondlook.errors import EngineProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "OPENSEARCH_CREDENTIALS_FILE"
_WAYS = {
    "OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD": ("USERNAME", "PASSWORD"),
    "OPENSEARCH_API_KEY": ("API_KEY",),
    "OPENSEARCH_TOKEN": ("TOKEN",),
    "OPENSEARCH_AWS_REGION": ("AWS_REGION",),
}


@dataclass(frozen=True, slots=True)
class AwsSigning:
    """Requests are signed for Amazon OpenSearch Service, with the AWS credentials of this machine.

    These come from where all AWS tools take them: the environment, a profile, or the machine's
    role.
    """

    region: str
    service: str = "es"
    """`es`, or `aoss` for OpenSearch Serverless."""


def with_file(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment, with the lines `NAME=value` of the file it names where it has no own value.

    Raises EngineProblem where that file cannot be read; a message never holds one of its lines.
    """
    name = environ.get(FILE)
    if not name:
        return environ
    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise EngineProblem(f"{FILE} names {name}, which cannot be read: {reason}") from error
    given: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = line.partition("=")
        key = key.removeprefix("export ").strip()
        if not equals or not key.startswith("OPENSEARCH_"):
            raise EngineProblem(
                f"{name}:{number}: write OPENSEARCH_USERNAME=…, one such line for each setting"
            )
        given[key] = _unquoted(value.strip())
    return {**given, **environ}


def _unquoted(value: str) -> str:
    """Without the quotes around it; a single one, as a password may end in, is of the value."""
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def signing(environ: Mapping[str, str]) -> tuple[str | None, AwsSigning | None]:
    """The Authorization header, or how requests are signed, or neither.

    Raises EngineProblem where two ways to sign in are set, or half of one.
    """
    values = {name: environ.get(f"OPENSEARCH_{name}") for names in _WAYS.values() for name in names}
    ways = [way for way, names in _WAYS.items() if any(values[name] for name in names)]
    if len(ways) > 1:
        raise EngineProblem(f"both {ways[0]} and {ways[1]} are set: unset one kind")
    user, password = values["USERNAME"], values["PASSWORD"]
    if bool(user) != bool(password):
        raise EngineProblem("set both OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD, or neither")
    if values["API_KEY"]:
        return f"ApiKey {values['API_KEY']}", None
    if values["TOKEN"]:
        return f"Bearer {values['TOKEN']}", None
    if values["AWS_REGION"]:
        service = environ.get("OPENSEARCH_AWS_SERVICE") or "es"
        return None, AwsSigning(values["AWS_REGION"], service)
    if user:
        return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}", None
    return None, None


def fingerprints(said: str) -> frozenset[str]:
    """SHA-256 fingerprints of certificates, as openssl writes them or without colons."""
    pins = frozenset(pin.replace(":", "").lower() for pin in said.replace(",", " ").split())
    for pin in pins:
        if len(pin) != 64 or not set(pin) <= set("0123456789abcdef"):
            raise EngineProblem(
                "OPENSEARCH_CERT_FINGERPRINT is no SHA-256 fingerprint of a certificate: get it "
                "with openssl x509 -in node.pem -noout -fingerprint -sha256"
            )
    return pins
