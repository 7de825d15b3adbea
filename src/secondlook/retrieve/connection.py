"""opensearch-py's client, set up as the engine needs it; import late, it takes a while."""

from __future__ import annotations

import hashlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from opensearchpy import OpenSearch, Urllib3HttpConnection
from opensearchpy.connection_pool import RoundRobinSelector
from opensearchpy.exceptions import ConnectionTimeout
from urllib3 import HTTPSConnectionPool, Timeout
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import SSLError

from secondlook.errors import EngineProblem, MissingExtra
from secondlook.retrieve.access import origin

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from secondlook.retrieve.access import Route
    from secondlook.retrieve.credentials import AwsSigning

_CONNECT_SECONDS = 5.0  # a machine that lost its power does not refuse, it says nothing
_REST_SECONDS = 60.0  # as long as the client rests a node that refused a connection


class Connection(Urllib3HttpConnection):
    """One node. Gives up on connecting soon, and remembers when it did not answer in time.

    With `pins`, only certificates of these SHA-256 fingerprints are trusted.
    """

    slow_until = 0.0

    def __init__(self, *arguments: Any, pins: frozenset[str], **options: Any) -> None:  # noqa: ANN401 - the client's
        self._pins = pins
        super().__init__(*arguments, **options)

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        if self._pins and isinstance(self.pool, HTTPSConnectionPool):
            self.pool.ConnectionCls = pinned(self._pins)

    def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - the client's
        """As the client's own."""
        seconds = timeout or self.timeout
        limit: Any = Timeout(connect=min(_CONNECT_SECONDS, seconds), read=seconds)
        try:
            return super().perform_request(method, url, params, body, limit, ignore, headers)
        except ConnectionTimeout:
            self.slow_until = time.monotonic() + _REST_SECONDS
            raise


def pinned(pins: frozenset[str]) -> type[HTTPSConnection]:
    """Connections that end before a request is sent, unless the certificate is one of these."""

    class PinnedConnection(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            shown = self.sock.getpeercert(binary_form=True)  # type: ignore[union-attr]
            fingerprint = hashlib.sha256(shown).hexdigest()
            if fingerprint not in pins:
                self.close()
                raise SSLError(f"it is not a pinned one, its SHA-256 is {fingerprint}")
            self.is_verified = True

    return PinnedConnection


def signer(aws: AwsSigning) -> Any:  # noqa: ANN401 - opensearch-py's
    """Signs requests with the AWS credentials that this machine has."""
    try:
        from botocore.session import Session
    except ImportError as error:
        raise MissingExtra("aws", "signing requests for AWS") from error
    from opensearchpy import Urllib3AWSV4SignerAuth

    credentials = Session().get_credentials()
    if credentials is None:
        raise EngineProblem(
            "OPENSEARCH_AWS_REGION is set, and there are no AWS credentials: set AWS_PROFILE, or "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return Urllib3AWSV4SignerAuth(credentials, aws.region, aws.service)


class NamedFirst(RoundRobinSelector):
    """Takes turns among the nodes that the user named; the others are for when none is well."""

    def __init__(self, named: frozenset[str], options: Any) -> None:  # noqa: ANN401 - the client's
        super().__init__(options)
        self._named = named

    def select(self, connections: Sequence[Any]) -> Any:  # noqa: ANN401 - the client's
        """One that is named and answered in time; else one that did; else any."""
        now = time.monotonic()
        quick = [node for node in connections if node.slow_until <= now] or connections
        named = [node for node in quick if node.host in self._named]
        return super().select(named or quick)


def transport(route: Route) -> Any:  # noqa: ANN401 - opensearch-py's
    """Requests to the named nodes, and to the others where no named one answers."""
    # The client logs each lost connection with a traceback. Applications that configure logging
    # still get them; a terminal does not.
    logger = logging.getLogger("opensearch")
    if not logger.hasHandlers():
        logger.addHandler(logging.NullHandler())
    urls = list(dict.fromkeys((*route.named, *route.others)))
    access = route.access
    headers = None
    if route.authorized and access.authorization:
        headers = {"authorization": access.authorization}
    return OpenSearch(
        urls,
        connection_class=Connection,
        selector_class=partial(NamedFirst, frozenset(map(origin, route.named))),
        pins=access.pins,
        verify_certs=access.verify and not access.pins,  # a pin says more than an authority
        ca_certs=access.authority,
        ssl_show_warn=False,  # whoever turned the check off in the environment knows
        max_retries=len(urls) - 1,  # at once, on the other nodes; then patience
        retry_on_status=(),
        pool_maxsize=16,
        http_auth=signer(access.aws) if route.authorized and access.aws else None,
        headers=headers,
    ).transport
