"""A cluster: where it is, how to reach it, how long to insist, and what its refusals mean."""

from __future__ import annotations

import logging
import os
import random
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from secondlook.errors import EngineProblem, MissingExtra
from secondlook.recipe import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")

_BUSY = frozenset({429, 500, 502, 503, 504})
"""Statuses that another attempt may cure: overload, and a node that is leaving."""


class OpenSearchSettings(Settings):
    """Where the index is and how it is made. Secrets come from the environment, never from here."""

    urls: tuple[str, ...] = Field(("http://localhost:9200",), min_length=1)
    """Nodes of one cluster; with several, the loss of one goes unnoticed."""
    name: str
    """What searches ask for: an alias, behind which a finished index takes an older one's place."""
    shards: int = Field(1, ge=1)
    replicas: int = Field(0, ge=0)
    k1: float = Field(0.9, ge=0)
    b: float = Field(0.4, ge=0, le=1)
    analyzer: str = "english"
    verify_certs: bool = True

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,199}", name):
            raise EngineProblem(
                f"{name!r} is no name for an index on a cluster: choose a --name of small letters, "
                "digits, '.', '_' and '-' that begins with a letter or digit"
            )
        return name

    @field_validator("urls")
    @classmethod
    def _plain_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            parts = urlsplit(url)
            if parts.username is not None or parts.password is not None:
                raise EngineProblem(
                    f"a cluster's url must not hold a password (host {parts.hostname}): set "
                    "OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD in the environment instead"
                )
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
                raise EngineProblem(
                    f"{url!r} is no cluster's url; write it like https://search.example.org:9200"
                )
        return urls


@dataclass(frozen=True, slots=True)
class Patience:
    """How often to try again, and how long to wait before each: doubling, with jitter."""

    retries: int
    first: float = 0.5
    ceiling: float = 30.0
    timeout: float = 60.0
    """Seconds until a request counts as lost."""

    def waits(self, rng: random.Random) -> Iterator[float]:
        """Seconds before each retry; spread out, so that many clients do not come back at once."""
        for retry in range(self.retries):
            yield min(self.ceiling, self.first * 2**retry) * rng.uniform(0.5, 1.0)


ASKING = Patience(retries=2)
"""A person waits for the answer: give up within seconds."""

LOADING = Patience(retries=12, timeout=120.0)
"""Hours of work are at stake: outlast a node's restart (two to three minutes)."""


class Busy(EngineProblem):
    """A refusal that another attempt may cure."""


class Cluster:
    """The one door to the cluster: requests out, answers in, refusals as EngineProblem."""

    def __init__(
        self,
        settings: OpenSearchSettings,
        transport: Any,  # noqa: ANN401 - opensearch-py's, imported late, or a fake
        patience: Patience = ASKING,
        sleep: Callable[[float], object] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._transport = transport
        self._where = ", ".join(settings.urls)
        self._patience = patience
        self._given_up = threading.Event()
        self._sleep = sleep or self._given_up.wait
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret

    @classmethod
    def connect(
        cls, settings: OpenSearchSettings, environ: Mapping[str, str] = os.environ
    ) -> Cluster:
        """Ready to ask; the first request tells whether anybody is there."""
        try:
            from opensearchpy import OpenSearch
        except ImportError as error:
            raise MissingExtra("opensearch", "the OpenSearch engine") from error

        # The client logs each lost connection with a traceback. Applications that configure
        # logging still get them; a terminal does not.
        logger = logging.getLogger("opensearch")
        if not logger.hasHandlers():
            logger.addHandler(logging.NullHandler())
        client = OpenSearch(
            list(settings.urls),
            verify_certs=settings.verify_certs,
            ssl_show_warn=False,  # whoever turned the check off in the settings knows
            max_retries=len(settings.urls) - 1,  # at once, on the other nodes; then patience
            retry_on_status=(),
            pool_maxsize=16,
            **_credentials(environ),
        )
        return cls(settings, client.transport)

    def with_patience(self, patience: Patience) -> Cluster:
        """The same connections, another temper."""
        return Cluster(self._settings, self._transport, patience)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        ignore: Sequence[int] = (),
        within: float | None = None,
        **params: str,
    ) -> Any:  # noqa: ANN401 - JSON
        """One attempt, `within` so many seconds. A status to `ignore` is an answer too."""
        from opensearchpy.exceptions import OpenSearchException

        try:
            return self._transport.perform_request(
                method,
                path,
                params=params,
                body=body,
                timeout=within or self._patience.timeout,
                ignore=ignore,
            )
        except OpenSearchException as error:
            raise self._problem(error) from error

    def ask(self, method: str, path: str, body: object = None, **options: Any) -> Any:  # noqa: ANN401 - JSON
        """A request, repeated patiently: only for what may safely happen twice."""
        return self.patiently(lambda: self.request(method, path, body, **options))

    def patiently(self, attempt: Callable[[], T]) -> T:
        """Repeat an attempt that raises Busy, until patience ends."""
        for wait in self._patience.waits(self._rng):
            try:
                return attempt()
            except Busy:
                if self._sleep(wait):  # true once given up
                    raise
        return attempt()

    def give_up(self) -> None:
        """Wait no longer, in any thread: what is busy now fails now."""
        self._given_up.set()

    def refusal(self, status: int, error: object, subject: str = "") -> EngineProblem:
        """What a status and an error mean, of a whole request or of one item in its answer."""
        cause = _reason(error)
        reason = f"{subject}: {cause}" if subject else cause
        if status == 401:
            return EngineProblem(
                f"{self._where} refused the credentials: set OPENSEARCH_USERNAME and "
                "OPENSEARCH_PASSWORD, or OPENSEARCH_API_KEY, in the environment"
            )
        if status == 403:
            return EngineProblem(
                f"{self._where} forbids this ({reason}): give the user or key the right to create, "
                "write, read and manage the index and its aliases, or lift the block it names"
            )
        if status == 404:
            return EngineProblem(
                f"{self._where} has lost the index ({reason}): "
                "make it anew with secondlook index CORPUS INDEX"
            )
        if status == 413:
            return EngineProblem(
                f"{self._where} takes no request of that size: cut the longest documents, or raise "
                "http.max_content_length there"
            )
        if status >= 500 and "shard" in cause:
            return Busy(
                f"{self._where} is red, some shards have no copy on a running node ({reason}): "
                "bring the missing nodes back (GET _cat/nodes, GET _cluster/allocation/explain); "
                "an index made with --replicas 1 survives the loss of one"
            )
        if status in _BUSY:
            return Busy(f"{self._where} is overloaded or failing ({status}: {reason}): try later")
        return EngineProblem(f"{self._where} refused ({status}): {reason}")

    def _problem(self, error: Exception) -> EngineProblem:
        from opensearchpy import exceptions

        if isinstance(error, exceptions.SSLError):
            return EngineProblem(
                f"the certificate of {self._where} cannot be trusted ({error.error}): name the "
                "file of its authority in OPENSEARCH_CA_CERTS"
            )
        if isinstance(error, exceptions.ConnectionTimeout):
            return Busy(
                f"{self._where} did not answer within {self._patience.timeout:.0f} s: "
                "look at its load (GET _cat/nodes) and try again"
            )
        if isinstance(error, exceptions.ConnectionError):
            return Busy(
                f"cannot reach the cluster at {self._where} ({error.error}): is it running, and is "
                "the url right? examples/compose.yaml starts one on this machine"
            )
        if isinstance(error, exceptions.TransportError) and isinstance(error.status_code, int):
            info = error.info if isinstance(error.info, dict) else {"error": error.error}
            return self.refusal(error.status_code, info.get("error", error.error))
        return EngineProblem(f"{self._where} answered what is no JSON: is it a search engine?")


def _reason(error: object) -> str:
    """The engine's own words, from the depth where it says why."""
    if not isinstance(error, dict):
        return str(error)
    for deeper in ("caused_by", "root_cause"):
        inner = error.get(deeper)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if inner:
            return _reason(inner)
    return f"{error.get('type', 'error')}: {error.get('reason', 'no reason given')}"


def _credentials(environ: Mapping[str, str]) -> dict[str, Any]:
    user, password, key, authority = (
        environ.get(f"OPENSEARCH_{name}")
        for name in ("USERNAME", "PASSWORD", "API_KEY", "CA_CERTS")
    )
    options: dict[str, Any] = {"ca_certs": authority} if authority else {}
    if key and (user or password):
        raise EngineProblem(
            "both OPENSEARCH_API_KEY and OPENSEARCH_USERNAME or _PASSWORD are set: unset one kind"
        )
    if bool(user) != bool(password):
        raise EngineProblem("set both OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD, or neither")
    if key:
        options["headers"] = {"authorization": f"ApiKey {key}"}
    elif user:
        options["http_auth"] = (user, password)
    return options
