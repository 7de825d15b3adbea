"""What the folder of an attached index says: where the index is, and how it is read."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, field_validator, model_validator

from secondlook.errors import WrongArgument
from secondlook.recipe import Settings
from secondlook.retrieve.access import plain_urls
from secondlook.retrieve.attached_mapping import IndexState  # noqa: TC001 - pydantic reads it
from secondlook.retrieve.attached_query import QueryTemplate, StoredTemplate
from secondlook.retrieve.attached_text import TextTemplate


class AttachedSettings(Settings):
    """Where a foreign index is, and how queries and documents are read.

    Secrets, and how certificates are checked, come from the environment, never from here.
    """

    urls: tuple[str, ...] = Field(min_length=1)
    """The cluster's nodes, or a load balancer before them, as the user named them."""
    nodes: tuple[str, ...] = ()
    """Other nodes that the cluster told of; asked when none of `urls` answers."""
    discover: bool = True
    name: str
    """An index, an alias or a data stream."""
    product: str = ""
    """`opensearch` or `elasticsearch`; empty where the user may not know."""
    query: dict[str, Any] | None = None
    """The search body, with `{{query}}`."""
    template: str | None = None
    """The id of a stored search template, instead of a search body."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Values of the query template's placeholders where a search gives none."""
    text: str
    title: str = ""
    id: str = "_id"
    """`_id`, or a field that holds the documents' ids."""
    signals: tuple[str, ...] = ()
    """Numeric and date fields whose values programs may use beside the scores."""
    analyzer: str = "none"
    """By which words of texts and queries are matched when hits are shown."""
    seen: IndexState
    """The index as it was when it was attached."""

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        refuse_no_name(name)
        return name

    @field_validator("urls", "nodes")
    @classmethod
    def _plain_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return plain_urls(urls)

    @model_validator(mode="after")
    def _templates_fit(self) -> AttachedSettings:
        if (self.query is None) == (self.template is None):
            raise WrongArgument(
                "give a search body or the id of a stored search template, not both"
            )
        self.query_template()
        self.text_template()
        self.title_template()
        return self

    def query_template(self) -> QueryTemplate | StoredTemplate:
        """How a query becomes a search."""
        if self.query is not None:
            return QueryTemplate(self.query, self.parameters)
        assert self.template is not None
        return StoredTemplate(self.template, self.parameters)

    def text_template(self) -> TextTemplate:
        """How a document becomes a text."""
        return TextTemplate.parse(self.text)

    def title_template(self) -> TextTemplate | None:
        """How it becomes a title; None where it has none."""
        return TextTemplate.parse(self.title) if self.title else None

    @property
    def read_fields(self) -> tuple[str, ...]:
        """Fields that texts, titles and ids are made of."""
        title = self.title_template()
        own = () if self.id == "_id" else (self.id,)
        paths = (*self.text_template().paths, *(title.paths if title else ()), *own)
        return tuple(dict.fromkeys(paths))


def refuse_no_name(name: str) -> None:
    """Raises WrongArgument for what no index, alias or data stream can be called, as `_all`."""
    if name in (".", "..") or not re.fullmatch(r"[^\s/\\?#\"<>|_+-][^\s/\\?#\"<>|]{0,254}", name):
        raise WrongArgument(f"{name!r} is no name of an index, an alias or a data stream")
