"""A cluster: where it is, how to reach it, how long to insist, and what its refusals mean."""

from __future__ import annotations

import random
import re
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field, field_validator

from secondlook.analyze import DEFAULT
from secondlook.errors import EngineProblem, Forbidden, MissingExtra, QueryRefused
from secondlook.recipe import Settings
from secondlook.retrieve.access import plain_urls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from secondlook.retrieve.access import Route

T = TypeVar("T")

_BUSY = frozenset({429, 500, 502, 503, 504})
"""Statuses that another attempt may cure: overload, and a node that is leaving."""
_SHOWN = 200  # characters of an answer that nobody understands


class VectorField(Settings):
    """The vectors of an index on a cluster."""

    dimension: int = Field(ge=1)
    made_by: str
    """The fingerprint of the ranker that makes them."""


class OpenSearchSettings(Settings):
    """Where the index is and how it is made.

    Secrets, and how certificates are checked, come from the environment, never from here.
    """

    urls: tuple[str, ...] = Field(("http://localhost:9200",), min_length=1)
    """The cluster's nodes, or a load balancer before them, as the user named them."""
    nodes: tuple[str, ...] = ()
    """Other nodes that the cluster told of; asked when none of `urls` answers."""
    discover: bool = True
    """Whether to ask the cluster for its other nodes."""
    name: str
    """What searches ask for: an alias, behind which a finished index takes an older one's place."""
    shards: int = Field(1, ge=1)
    replicas: int = Field(0, ge=0)
    k1: float = Field(0.9, ge=0)
    b: float = Field(0.4, ge=0, le=1)
    analyzer: str = DEFAULT
    """How texts become terms: a language, or an analyzer that the cluster has by itself."""
    vectors: VectorField | None = None
    """The documents' vectors, where they have any."""

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,199}", name):
            raise EngineProblem(
                f"{name!r} is no name for an index on a cluster: choose a `name` of small letters, "
                "digits, '.', '_' and '-' that begins with a letter or digit"
            )
        return name

    @field_validator("urls", "nodes")
    @classmethod
    def _plain_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return plain_urls(urls)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
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


ASKING = RetryPolicy(retries=2)
"""A person waits for the answer: give up within seconds."""

LOADING = RetryPolicy(retries=12, timeout=120.0)
"""Hours of work are at stake: outlast a node's restart (two to three minutes)."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a user can do about a refusal, which depends on whose index it is."""

    forbidden: str = (
        "give the user or key the right to create, write, read and manage the index and its "
        "aliases, or lift the block it names"
    )
    missing: str = "has lost the index"
    lost: str = "make it anew with secondlook index CORPUS INDEX"


class Busy(EngineProblem):
    """A refusal that another attempt may cure."""


class Cluster:
    """The one door to the cluster: requests out, answers in, refusals as EngineProblem."""

    def __init__(
        self,
        route: Route,
        transport: Any,  # noqa: ANN401 - opensearch-py's, imported late, or a fake
        patience: RetryPolicy = ASKING,
        sleep: Callable[[float], object] | None = None,
        rng: random.Random | None = None,
        advice: Advice = Advice(),  # noqa: B008 - frozen
    ) -> None:
        self.route = route
        self._advice = advice
        self._transport = transport
        self._where = ", ".join(route.named)
        self._patience = patience
        self._given_up = threading.Event()
        self._sleep = sleep or self._given_up.wait
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret

    @classmethod
    def connect(cls, route: Route, advice: Advice = Advice()) -> Cluster:  # noqa: B008 - frozen
        """Ready to ask; the first request tells whether anybody is there."""
        try:
            from secondlook.retrieve.connection import transport
        except ImportError as error:
            raise MissingExtra("opensearch", "the OpenSearch engine") from error
        return cls(route, transport(route), advice=advice)

    @classmethod
    def reach(cls, route: Route) -> Cluster:
        """The same; raises EngineProblem at once where nobody is there."""
        cluster = cls.connect(route)
        cluster.ask("GET", "/_cluster/health", needs=("status",))
        return cluster

    def with_patience(self, patience: RetryPolicy) -> Cluster:
        """The same connections, asked for longer or shorter."""
        return Cluster(self.route, self._transport, patience, advice=self._advice)

    def with_others(self, urls: tuple[str, ...]) -> Cluster:
        """The same cluster, with these nodes to fall back on."""
        return Cluster.connect(replace(self.route, others=urls), self._advice)

    def at(self, url: str) -> Cluster:
        """One node of this cluster, reached as the others are."""
        return Cluster.connect(replace(self.route, named=(url,), others=()))

    def identity(self, within: float | None = None) -> str:
        """The cluster's id, empty where the user may not know it; raises for no search engine."""
        answer = self.request("GET", "/", needs=("version",), ignore=(403,), within=within)
        return str(answer.get("cluster_uuid", ""))

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        needs: Sequence[str] = (),
        ignore: Sequence[int] = (),
        within: float | None = None,
        **params: str,
    ) -> Any:  # noqa: ANN401 - JSON
        """One attempt, `within` so many seconds, for an answer that has what it `needs`.

        A status to `ignore` is an answer too.
        """
        from opensearchpy.exceptions import OpenSearchException

        limit = within or self._patience.timeout
        try:
            answer = self._transport.perform_request(
                method,
                path,
                params=params,
                body=body,
                timeout=limit,
                ignore=ignore,
            )
        except OpenSearchException as error:
            raise self._problem(error, limit) from error
        if isinstance(answer, dict) and (
            answer.keys() >= set(needs) or answer.get("status") in ignore
        ):
            return answer
        raise self.no_engine(str(answer))

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
        if status in (401, 403) and self.route.withheld:
            return EngineProblem(
                f"{self._where} asks for credentials, and yours were not sent: the index folder "
                "names this cluster, you have not. If you trust it, set "
                f"OPENSEARCH_URL={self.route.named[0]} in the environment"
            )
        if status == 401:
            return EngineProblem(
                f"{self._where} refused the credentials: set OPENSEARCH_USERNAME and "
                "OPENSEARCH_PASSWORD, or OPENSEARCH_API_KEY, or OPENSEARCH_TOKEN, in the "
                "environment or in the file that OPENSEARCH_CREDENTIALS_FILE names"
            )
        if status == 403:
            return Forbidden(f"{self._where} forbids this ({reason}): {self._advice.forbidden}")
        if status == 404:
            return EngineProblem(
                f"{self._where} {self._advice.missing} ({reason}): {self._advice.lost}"
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
                "an index made with one of `replicas` survives the loss of one"
            )
        if status in _BUSY:
            return Busy(f"{self._where} is overloaded or failing ({status}: {reason}): try later")
        if status == 400:
            cause = _refused_because(error)
            about = f"{subject}: {cause}" if subject else cause
            return QueryRefused(f"{self._where} refused (400): {about}", cause)
        return EngineProblem(f"{self._where} refused ({status}): {reason}")

    def _problem(self, error: Exception, limit: float) -> EngineProblem:
        from opensearchpy import exceptions

        if isinstance(error, exceptions.SSLError):
            cause = _short(error.error)
            return EngineProblem(
                f"the certificate of {self._where} cannot be trusted ({cause}): "
                f"{_certificate_advice(cause)}"
            )
        if isinstance(error, exceptions.ConnectionTimeout):
            return Busy(
                f"{self._where} did not answer within {limit:g} s: "
                "look at its load (GET _cat/nodes) and try again"
            )
        if isinstance(error, exceptions.ConnectionError):
            return Busy(
                f"cannot reach the cluster at {self._where} ({error.error}): is it running, and is "
                "the url right? examples/compose.yaml starts one on this machine"
            )
        if isinstance(error, exceptions.TransportError) and isinstance(error.status_code, int):
            if isinstance(error.info, dict):
                return self.refusal(error.status_code, error.info.get("error", error.error))
            if error.status_code == 401 or error.status_code in _BUSY:
                return self.refusal(error.status_code, _short(error.error))
            return self.no_engine(f"{error.status_code}: {error.error}")
        return self.no_engine(str(error))

    def no_engine(self, answer: str) -> EngineProblem:
        """Somebody answered, and nothing that makes sense."""
        return EngineProblem(
            f"{self._where} answers, but not as a search engine does ({_short(answer)}): is the "
            "url right, or is there a proxy or a sign-in page before the cluster?"
        )


def _certificate_advice(cause: str) -> str:
    if "expired" in cause or "not yet valid" in cause:
        return (
            "its dates are past or to come: have it renewed on the cluster, or set this machine's "
            "clock right"
        )
    if "pinned" in cause:
        return (
            "if the certificate was renewed, and the new fingerprint comes from whoever did it, "
            "set OPENSEARCH_CERT_FINGERPRINT to it"
        )
    return (
        "name the file of its authority in OPENSEARCH_CA_CERTS, and the host as the certificate "
        "does"
    )


def _refused_because(error: object) -> str:
    """What is wrong with a request: the root cause itself, which says more than its own causes."""
    if not isinstance(error, dict):
        return _short(error)
    roots = error.get("root_cause") or [error]
    return f"{roots[0].get('type', 'error')}: {roots[0].get('reason', 'no reason given')}"


def _reason(error: object) -> str:
    """The engine's own words, from the depth where it says why."""
    if not isinstance(error, dict):
        return _short(error)
    for deeper in ("caused_by", "root_cause"):
        inner = error.get(deeper)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if inner:
            return _reason(inner)
    return f"{error.get('type', 'error')}: {error.get('reason', 'no reason given')}"


def _short(answer: object) -> str:
    """The beginning of what may be a whole page, in one line."""
    line = " ".join(str(answer).split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
