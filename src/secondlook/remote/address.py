"""A remote re-ranker's address: where it is, which API it speaks, and how it may be used.

    [SHAPE+]https://HOST/PATH[#model=NAME,option=value,…]

What stands behind `#` never leaves this machine. An address holds no secret: `key` names the
environment variable that does.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, ValidationError

from secondlook.errors import UnknownName, WrongArgument
from secondlook.recipe import Settings
from secondlook.remote.client_shapes import CLIENT_SHAPES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from secondlook.remote.client_shapes import ClientShape

_REMOTE = re.compile(r"(?:(?P<shape>[A-Za-z0-9_-]+)\+)?(?P<url>https?://.*)", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOW = "https://api.cohere.com/v2/rerank#model=rerank-v3.5"


class RemoteOptions(Settings):
    """What may stand behind the `#` of an address, as `name=value`, separated by commas."""

    model: str | None = None
    """The model's name, as the service calls it; a server of one model needs none."""
    key: str | None = None
    """The environment variable that holds the API key."""
    batch: int | None = Field(None, ge=1, le=10_000)
    """Documents per request at most; the default depends on the API."""
    scores: Literal["probability", "raw"] | None = None
    """What the service's scores are: from 0 to 1, or without bounds; the default depends on the
    API."""
    timeout: float = Field(30.0, gt=0)
    """Seconds until a request without an answer is sent again."""
    attempts: int = Field(6, ge=1, le=100)
    """How often a request is sent before it counts as failed."""
    concurrent: int = Field(4, ge=1, le=256)
    """Requests under way at once."""
    requests_per_minute: float | None = Field(None, gt=0)
    price_per_1000_searches: float | None = Field(None, ge=0)
    """A search is a request of up to `batch` documents."""
    price_per_1000_documents: float | None = Field(None, ge=0)
    max_cost: float | None = Field(None, gt=0)
    """What one command may spend, in the currency of the price."""
    cache: Literal["on", "off"] = "on"
    """Whether scores are kept on this machine, and asked for once only."""


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """A remote re-ranker, read from its address."""

    shape: str
    url: str
    options: RemoteOptions

    @classmethod
    def parse(cls, text: str) -> RemoteAddress:
        """Read an address; raises WrongArgument or UnknownName, which say what is wrong."""
        match = _REMOTE.fullmatch(text.strip())
        if match is None:
            raise WrongArgument(f"{_without_options(text)!r} is no address, such as {_HOW}")
        url, _, fragment = match["url"].partition("#")
        parts = _parts(url)
        if parts.username is not None or parts.password is not None:
            raise WrongArgument(
                f"an address must not hold a password ({parts.hostname}): put the key into an "
                f"environment variable and name that: {parts.scheme}://{parts.hostname}…#key=NAME"
            )
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise WrongArgument(
                f"{parts.hostname} would be asked over plain http, where anybody on the way can "
                "read texts and keys: use https (http is for this machine, as in "
                "http://localhost:8080/rerank)"
            )
        shape = match["shape"]
        if shape is None:
            shape = _shape_of(parts.path, url)
        else:
            _ = CLIENT_SHAPES[shape]  # raises UnknownName
        return cls(shape, url, _options(fragment))

    @property
    def api(self) -> ClientShape:
        """How requests and answers look."""
        return CLIENT_SHAPES[self.shape]

    @property
    def host(self) -> str:
        """Host and port."""
        return urlsplit(self.url).netloc

    @property
    def name(self) -> str:
        """What people call it: the host, and the model where one is named."""
        return f"{self.host} {self.options.model}" if self.options.model else self.host

    @property
    def place(self) -> str:
        """Where it is, for messages: without the query string."""
        return self.url.partition("?")[0]

    @property
    def batch(self) -> int:
        """Documents per request at most."""
        return self.options.batch or self.api.batch

    @property
    def gives_raw_scores(self) -> bool:
        """Whether the service's scores have no bounds."""
        if self.options.scores is None:
            return self.api.raw_scores
        return self.options.scores == "raw"

    def without_cache(self) -> RemoteAddress:
        """The same, asked for every score."""
        return replace(self, options=self.options.model_copy(update={"cache": "off"}))

    def identity(self) -> dict[str, str | None]:
        """What a score depends on, beside the texts."""
        return {
            "shape": self.shape,
            "url": self.url,
            "model": self.options.model,
            "scores": "raw" if self.gives_raw_scores else "probability",
        }

    def key(self, environ: Mapping[str, str] = os.environ) -> str | None:
        """The API key, from the environment, without the space around it.

        Without an option `key`, only a service's own host gets the key that is named after it.
        Raises WrongArgument where it is not set, or cannot be sent.
        """
        host = urlsplit(self.url).hostname or ""
        named = self.options.key
        variables = self.api.key_variables.get(host, ()) if named is None else (named,)
        for variable in variables:
            if key := environ.get(variable, "").strip():
                if not (key.isascii() and key.isprintable()):
                    raise WrongArgument(
                        f"the environment variable {variable} holds no API key: keys are of "
                        "printable ASCII characters; copy it anew"
                    )
                return key
        if named is None:
            return None
        raise WrongArgument(
            f"the environment variable {named}, which should hold the API key for {self.host}, is "
            "not set; export it first"
        )


def is_remote(source: object) -> bool:
    """Whether a re-ranker's name is an address, and no folder or hub id."""
    return isinstance(source, str) and _REMOTE.fullmatch(source.strip()) is not None


def is_loopback(host: str) -> bool:
    """Whether the host is this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _parts(url: str) -> SplitResult:
    """Of a URL whose host and port can be read. What is wrong is not repeated: it may be secret."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.hostname and parts.port != 0:
            return parts
    raise WrongArgument(f"the host or the port of an address cannot be read; write it as in {_HOW}")


def _shape_of(path: str, url: str) -> str:
    """By the path alone, which must be exactly that of an API."""
    for name in CLIENT_SHAPES.names():
        if path.rstrip("/") in CLIENT_SHAPES[name].paths:
            return name
    known = ", ".join(path for name in CLIENT_SHAPES.names() for path in CLIENT_SHAPES[name].paths)
    names = ", ".join(f"{name}+" for name in CLIENT_SHAPES.names())
    raise WrongArgument(
        f"the path of {url.partition('?')[0]} does not tell which API it is (known: {known}); name "
        f"the API before the address ({names}), as in jina+https://host/rerank"
    )


def _options(fragment: str) -> RemoteOptions:
    given: dict[str, str] = {}
    for part in filter(None, fragment.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise WrongArgument(
                f"{name!r} behind the # of an address is not name=value, as in {_HOW}"
            )
        if name.strip() not in RemoteOptions.model_fields:
            raise UnknownName("option of an address", name.strip(), RemoteOptions.model_fields)
        given[name.strip()] = value.strip()
    if "key" in given and not _VARIABLE.fullmatch(given["key"]):
        raise WrongArgument(
            "key= names the environment variable that holds the API key, as in key=CO_API_KEY; "
            "the key itself must not stand in an address"
        )
    try:
        options = RemoteOptions.model_validate(given)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise WrongArgument(f"{place}= of an address: {problem['msg']}") from error
    if options.price_per_1000_searches is not None and options.price_per_1000_documents is not None:
        raise WrongArgument(
            "an address has a price per 1,000 searches or per 1,000 documents, not both"
        )
    priced = options.price_per_1000_searches or options.price_per_1000_documents
    if options.max_cost is not None and not priced:
        raise WrongArgument(
            "max_cost= needs a price: price_per_1000_searches= or price_per_1000_documents="
        )
    return options


def _without_options(text: str) -> str:
    return text.partition("#")[0]
