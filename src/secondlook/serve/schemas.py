"""The shapes on the wire: Cohere's, Jina's, text-embeddings-inference's, and our search."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from secondlook.model.settings import ScoreSource

_QUERY = "how do cats land on their feet"
_TEXTS = ["Cats turn in the air and land on their feet.", "The stock market fell on Monday."]

TopN = Annotated[int, Field(ge=1, le=2**31 - 1)]
ModelName = Annotated[str, Field(max_length=256)]
"""Bounded, as warnings and errors repeat it."""
Texts = Annotated[list[str], FailFast()]
"""The first wrong item is told, not each of a million."""
Unit = Annotated[float, Field(ge=0, le=1)]


def _example(**fields: Any) -> ConfigDict:  # noqa: ANN401 - JSON
    return ConfigDict(json_schema_extra={"examples": [fields]})


class CohereRequest(BaseModel):
    """Cohere's v2. Fields that are not named here are ignored."""

    model_config = _example(model="my.ranker", query=_QUERY, documents=_TEXTS, top_n=1)

    model: ModelName | None = None
    """A ranker's name. A server of a single ranker answers with that one, whatever it is called."""
    query: str = Field(min_length=1)
    documents: Texts
    top_n: TopN | None = None
    max_tokens_per_doc: TopN | None = None
    """Not applied: how much of a document is read is part of the ranker."""
    raw_scores: bool = False
    """Give each result's `raw_score` too."""


class TextDocument(BaseModel):
    """A document as an object; other fields than the text are ignored."""

    text: str


class JinaRequest(BaseModel):
    """Cohere's v1 and Jina's. Fields that are not named here are ignored."""

    model_config = _example(
        model="my.ranker", query=_QUERY, documents=_TEXTS, top_n=1, return_documents=True
    )

    model: ModelName | None = None
    query: str = Field(min_length=1)
    documents: Annotated[list[str | TextDocument], FailFast()]
    top_n: TopN | None = None
    return_documents: bool | None = None
    """Of the two APIs, Cohere's default counts: no."""
    raw_scores: bool = False
    """Give each result's `raw_score` too."""


class CohereResult(BaseModel):
    """A document by its place in the request."""

    index: int
    relevance_score: Unit
    """The same as `score` of the other routes and `Ranker.predict`; `/info` says what it means."""
    raw_score: float | None = None
    """What the ranker ranks by, where `raw_scores` was asked for."""


class JinaResult(CohereResult):
    """The same, with its text where that was asked for."""

    document: TextDocument | None = None


class ApiVersion(BaseModel):
    """Which of Cohere's APIs this is."""

    version: str


class BilledUnits(BaseModel):
    """What Cohere would have counted."""

    search_units: float


class Meta(BaseModel):
    """Beside the results."""

    api_version: ApiVersion
    billed_units: BilledUnits
    warnings: list[str] | None = None


class Usage(BaseModel):
    """What the ranker read."""

    total_tokens: int


class CohereAnswer(BaseModel):
    """Results best first."""

    model_config = _example(
        id="0b6c…",
        results=[{"index": 0, "relevance_score": 0.93}],
        meta={"api_version": {"version": "2"}, "billed_units": {"search_units": 1.0}},
    )

    id: str
    results: list[CohereResult]
    meta: Meta
    partial: bool | None = None
    """True where the deadline came first: documents without a score stand last, in their order."""


class JinaAnswer(BaseModel):
    """The union of Cohere's v1 and Jina's answers."""

    id: str
    model: str
    usage: Usage
    results: list[JinaResult]
    meta: Meta
    partial: bool | None = None


class CohereError(BaseModel):
    """What went wrong."""

    message: str


class JinaError(CohereError):
    """The same, where Jina's clients look for it too."""

    detail: str


class TeiRequest(BaseModel):
    """text-embeddings-inference's. Fields that are not named here are ignored."""

    model_config = _example(query=_QUERY, texts=_TEXTS, raw_scores=False, return_text=False)

    query: str = Field(min_length=1)
    texts: Texts
    truncate: bool | None = None
    """False: a text that is too long is refused (413). Else it is cut."""
    truncation_direction: Literal["right", "Right"] = "Right"
    """A ranker reads the beginning of what is too long, as it was trained to."""
    raw_scores: bool = False
    """Give raw scores in place of those from 0 to 1."""
    return_text: bool = False


class TeiRank(BaseModel):
    """A text by its place in the request."""

    index: int
    score: float
    text: str | None = None


class TeiError(BaseModel):
    """What went wrong, and of which kind it is."""

    error: str
    error_type: str


class SearchRequest(BaseModel):
    """Both looks in one call."""

    model_config = _example(query=_QUERY, k=10, depth=100)

    query: str = Field(min_length=1)
    model: ModelName | None = None
    k: int = Field(10, ge=1, le=1000)
    """How many hits to give back."""
    depth: int = Field(100, ge=1, le=1000)
    """How many hits of the first look the ranker sees."""
    explain: bool = False
    """Why the first hits scored as they did (10, unless the server was set otherwise); takes a
    multiple of the time, and what is not ready at the deadline is left out."""
    marks: bool = False
    """Which words of the hits the query holds too, and which the vocabulary lacks; left out
    altogether where they would be late."""


class Passage(BaseModel):
    """The part of a long document that scored highest."""

    start: int
    """In characters of the document's text."""
    end: int
    text: str


class WordMark(BaseModel):
    """A word that both texts hold, or that the ranker's vocabulary lacks."""

    start: int
    """In characters of its text, as `end`."""
    end: int
    matched: Literal["", "word", "stem"]
    outside: bool


class SearchHit(BaseModel):
    """A document, and where both looks have it."""

    id: str
    rank: int
    score: Unit | None
    """The relevance score, from 0 to 1; none where the deadline came first."""
    raw_score: float | None
    """What the ranker ranks by."""
    final_score: float | None
    """What the rank goes by, as `secondlook rerank` writes it: the raw score, or where the ranker
    was tuned to be fused with the first look, both looks' together."""
    first_rank: int
    first_score: float
    title: str
    text: str
    passage: Passage | None = None
    """None where the document was read as a whole."""
    cut_tokens: int
    """How many tokens of the document the ranker did not see."""
    explanation: dict[str, Any] | None = None
    marks: list[WordMark] | None = None
    """Of the passage where there is one, else of the document's beginning."""


class SearchAnswer(BaseModel):
    """Hits best first, in the second look's order."""

    id: str
    model: str
    hits: list[SearchHit]
    found: int
    """How many hits of the first look the ranker was given."""
    score_meaning: str
    """What the hits' `score` means, in one sentence."""
    partial: bool
    first_look_ms: float
    second_look_ms: float
    query_marks: list[WordMark] | None = None


class ExplainRequest(BaseModel):
    """A query and a document's text."""

    model_config = _example(query=_QUERY, text=_TEXTS[0])

    query: str = Field(min_length=1)
    text: str
    title: str = ""
    """Read as the ranker reads titles, but not taken apart."""
    model: ModelName | None = None


class ExplainAnswer(BaseModel):
    """Why they score as they do."""

    id: str
    model: str
    explanation: dict[str, Any]
    """As `secondlook explain --json` has it."""


class RankerInfo(BaseModel):
    """What a ranker is."""

    name: str
    base: str
    form: str
    max_length: int
    max_query_length: int | None
    """None: the query may fill the whole of `max_length`."""
    windows: bool
    scores: ScoreSource
    """What relevance scores were fitted on. They estimate probabilities after `judgments` and
    `positives only`; else they tell related from unrelated texts."""
    score_meaning: str
    """The same in a sentence."""


class Info(BaseModel):
    """text-embeddings-inference's, and all rankers."""

    model_id: str
    model_type: dict[str, Any]
    max_input_length: int
    max_client_batch_size: int
    max_concurrent_requests: int
    auto_truncate: bool
    version: str
    rankers: list[RankerInfo]
    engine: str | None
    """What takes the first look, if anything does."""


class State(BaseModel):
    """Whether requests are welcome."""

    status: str
    engine: Literal["ok", "failing"] | None = None
    """Of the search engine: `ok`, or `failing` since its last answer; none without an index."""
