"""The nodes of a cluster, found by asking it, so that the loss of one does not matter."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from secondlook.errors import EngineProblem
from secondlook.retrieve.access import origin, plain_urls

if TYPE_CHECKING:
    from secondlook.retrieve.cluster import Cluster

_ASKED_AT_ONCE = 8
_MANAGERS_ONLY = (["cluster_manager"], ["master"])


def other_nodes(cluster: Cluster, within: float) -> tuple[str, ...]:
    """Urls of the cluster's nodes beside the named ones: those that answer here, `within` seconds.

    A node may publish an address that this machine cannot reach, or that is another cluster's here
    (a container's, or 127.0.0.1): it counts only if it answers with the cluster's own id. Where
    the user may not ask, or where credentials would go to an address whose certificate is not
    checked, it stays at the nodes that were known before.
    """
    route = cluster.route
    if not route.may_follow:
        return route.others
    try:
        identity = cluster.identity()
        listed = cluster.request(
            "GET", "/_nodes/http", filter_path="nodes.*.http.publish_address,nodes.*.roles"
        )
    except EngineProblem:  # no right to ask, or gone again: the named nodes have to do
        return route.others
    if not identity:
        return route.others
    scheme = urlsplit(route.named[0]).scheme
    named = set(map(origin, route.named))
    urls = [url for url in _published(listed, scheme) if origin(url) not in named]
    unknown = [url for url in urls if url not in route.others]
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        answers = pool.map(lambda url: _is_of(cluster.at(url), identity, within), unknown)
        silent = {url for url, answered in zip(unknown, answers, strict=True) if not answered}
    return tuple(sorted(url for url in urls if url not in silent))


def _published(listed: Any, scheme: str) -> list[str]:  # noqa: ANN401 - JSON
    nodes = listed.get("nodes") if isinstance(listed, dict) else None
    urls = list[str]()
    for node in nodes.values() if isinstance(nodes, dict) else ():
        address = node.get("http", {}).get("publish_address", "")
        if not address or node.get("roles") in _MANAGERS_ONLY:
            continue
        name, _, numeric = address.rpartition("/")  # "name/1.2.3.4:9200" where a name was set
        url = f"{scheme}://{name}:{numeric.rpartition(':')[2]}" if name else f"{scheme}://{address}"
        try:
            urls += plain_urls([url])
        except EngineProblem:
            continue
    return urls


def _is_of(node: Cluster, identity: str, within: float) -> bool:
    try:
        return node.identity(within) == identity
    except EngineProblem:
        return False
