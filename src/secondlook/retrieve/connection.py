"""opensearch-py's client, set up as the engine needs it; import late, it takes a while."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from opensearchpy import OpenSearch, Urllib3HttpConnection
from opensearchpy.connection_pool import RoundRobinSelector
from opensearchpy.exceptions import ConnectionTimeout
from urllib3 import Timeout

from secondlook.retrieve.access import origin

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from secondlook.retrieve.access import Route

_CONNECT_SECONDS = 5.0  # a machine that lost its power does not refuse, it says nothing
_REST_SECONDS = 60.0  # as long as the client rests a node that refused a connection


class Connection(Urllib3HttpConnection):
    """One node. Gives up on connecting soon, and remembers when it did not answer in time."""

    slow_until = 0.0

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
    return OpenSearch(
        urls,
        connection_class=Connection,
        selector_class=partial(NamedFirst, frozenset(map(origin, route.named))),
        verify_certs=access.verify,
        ca_certs=access.authority,
        ssl_show_warn=False,  # whoever turned the check off in the environment knows
        max_retries=len(urls) - 1,  # at once, on the other nodes; then patience
        retry_on_status=(),
        pool_maxsize=16,
        headers={"authorization": access.authorization} if route.authorized else None,
    ).transport
