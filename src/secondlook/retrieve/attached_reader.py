"""The only requests that are ever sent to a foreign index: none of them writes."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from secondlook.errors import EngineProblem, Forbidden, IndexProblem
from secondlook.retrieve.attached_mapping import IndexMapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from secondlook.retrieve.cluster import Cluster

_READS = re.compile(
    r"(GET /|GET /[^/_][^/]*/(_mapping|_count|_field_caps|_stats/store)"
    r"|POST (/[^/_][^/]*)?/_search|POST /[^/_][^/]*/_search/(template|point_in_time)"
    r"|POST /[^/_][^/]*/_pit|DELETE /(_pit|_search/point_in_time))"
)
"""Searches, questions about the index, and the view of a moment that a long reading opens."""
_ANSWER = ",".join(
    ["error", "status", "timed_out", "_shards", "pit_id"]
    + [f"hits.hits.{part}" for part in ("_id", "_index", "_score", "_source", "sort")]
)
_KEEP_ALIVE = "5m"
_LARGEST_PAGE = 10_000  # index.max_result_window, unless its owner has set another


@dataclass(slots=True)
class PointInTime:
    """The index as it was at one moment; the cluster may change the id with each answer."""

    id: str


class IndexReader:
    """Asks one index, alias or data stream of a cluster, with no right but to read it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self._name = name
        self._path = "/" + quote(name, safe="*,:")

    def send(self, method: str, path: str, body: object = None, **options: Any) -> Any:  # noqa: ANN401 - JSON
        """One patient request; refuses, before it is sent, whatever is no reading."""
        if not _READS.fullmatch(f"{method} {path}"):
            raise AssertionError(f"{method} {path} is not a reading request")
        return self.cluster.ask(method, path, body, **options)

    def product(self) -> str:
        """`opensearch` or `elasticsearch`; empty where the user may not know."""
        answer = self.send("GET", "/", ignore=(401, 403))
        version = answer.get("version")
        return str(version.get("distribution", "elasticsearch")) if version else ""

    def mapping(self) -> IndexMapping:
        """The fields; by their capabilities where the user may not read the mapping itself."""
        try:
            mapping = IndexMapping.of_mapping(self.send("GET", f"{self._path}/_mapping"))
        except Forbidden:
            options = {"needs": ("fields",), "fields": "*"}
            answer = self.send("GET", f"{self._path}/_field_caps", **options)
            mapping = IndexMapping.of_capabilities(answer)
        if not mapping.indices:
            where = ", ".join(self.cluster.route.named)
            raise IndexProblem(
                f"{where} shows no index, alias or data stream {self._name!r}: check the name, and "
                "that the user may read it"
            )
        return mapping

    def count(self) -> int:
        """How many documents the user sees."""
        answer = self.send("GET", f"{self._path}/_count", needs=("count",))
        return int(answer["count"])

    def stored_bytes(self) -> int:
        """What the primary shards take on disk."""
        answer = self.send("GET", f"{self._path}/_stats/store", needs=("_all",))
        return int(answer["_all"]["primaries"]["store"]["size_in_bytes"])

    def search(
        self,
        body: str | dict[str, Any],
        *,
        stored: bool = False,
        routing: str | None = None,
        preference: str | None = None,
        point_in_time: PointInTime | None = None,
    ) -> list[dict[str, Any]]:
        """The hits of a search, of all shards or none; `stored` is for a stored template."""
        params = {"allow_partial_search_results": "false", "filter_path": _ANSWER}
        path = "/_search" if point_in_time else f"{self._path}/_search"
        if stored:
            path, params = f"{path}/template", {"filter_path": _ANSWER}
        if routing is not None and not point_in_time:
            params["routing"] = routing
        if preference is not None and not point_in_time:
            params["preference"] = preference
        answer = self.send("POST", path, body, needs=("_shards",), **params)
        shards = answer["_shards"]
        if answer.get("timed_out") or shards["successful"] < shards["total"]:
            said = f"only {shards['successful']} of {shards['total']} shards answered in time"
            raise self.cluster.refusal(503, said)
        if point_in_time and "pit_id" in answer:
            point_in_time.id = answer["pit_id"]
        return list(answer.get("hits", {}).get("hits", ()))

    @contextmanager
    def point_in_time(self, product: str, routing: str | None = None) -> Iterator[PointInTime]:
        """The index as it is now, for readings in many pages."""
        ways = [(self._open_elasticsearch, self._close_elasticsearch)]
        if product != "elasticsearch":
            ways = [(self._open_opensearch, self._close_opensearch), *ways]
        params = {"keep_alive": _KEEP_ALIVE} | ({"routing": routing} if routing else {})
        refused = list[EngineProblem]()
        for open_, close in ways[: 1 if product else 2]:
            try:
                moment = PointInTime(open_(params))
            except EngineProblem as problem:
                refused.append(problem)
                continue
            try:
                yield moment
            finally:
                with suppress(EngineProblem):  # it ends by itself after a while
                    close(moment)
            return
        raise EngineProblem(
            f"more hits than one answer holds need a point in time of {self._name!r}, and the "
            f"cluster gives none ({refused[0]}): it takes OpenSearch 2.4 or Elasticsearch 7.10, "
            "and on OpenSearch the right indices:data/read/point_in_time/*"
        ) from refused[0]

    def _open_opensearch(self, params: dict[str, str]) -> str:
        path = f"{self._path}/_search/point_in_time"
        return str(self.send("POST", path, needs=("pit_id",), **params)["pit_id"])

    def _close_opensearch(self, moment: PointInTime) -> None:
        self.send("DELETE", "/_search/point_in_time", {"pit_id": [moment.id]})

    def _open_elasticsearch(self, params: dict[str, str]) -> str:
        return str(self.send("POST", f"{self._path}/_pit", needs=("id",), **params)["id"])

    def _close_elasticsearch(self, moment: PointInTime) -> None:
        self.send("DELETE", "/_pit", {"id": moment.id})

    def pages(
        self,
        moment: PointInTime,
        sort: list[Any],
        body_of: Callable[[dict[str, Any]], str | dict[str, Any]],
        size: int,
    ) -> Iterator[list[dict[str, Any]]]:
        """Hits page by page in this order, until there are none.

        `body_of` makes the body of a search, given the keys that make it one page of many. Ties
        are ordered by `_seq_no`. Elasticsearch adds a last sort value that no two documents share.
        OpenSearch does not, and a number is unique in its shard only: documents of different shards
        may be equal in all sort values. Where such stand at the end of a page they are left out of
        it, and asked for again with the next; where a page has no others, a larger one is asked
        for. Raises EngineProblem where the largest has none.
        """
        order = [*sort, {"_seq_no": "asc"}]
        page: dict[str, Any] = {"size": size, "sort": order}
        while True:
            page["pit"] = {"id": moment.id, "keep_alive": _KEEP_ALIVE}
            hits = self.search(body_of(page), point_in_time=moment)
            if len(hits) < size:
                yield hits
                return
            last = hits[-1]["sort"]
            if len(last) > len(order):
                page["search_after"] = last
            else:
                hits = [hit for hit in hits if hit["sort"] != last]
                if not hits:
                    page["size"] = size = self._larger(size)
                    continue
                page["search_after"] = [*last[:-1], last[-1] - 1]
            yield hits

    def _larger(self, size: int) -> int:
        if size >= _LARGEST_PAGE:
            raise EngineProblem(
                f"{self._name} has as many shards as a page has hits ({_LARGEST_PAGE:,}), so that "
                "it cannot be read page by page: attach fewer of its indices"
            )
        return min(2 * size, _LARGEST_PAGE)
