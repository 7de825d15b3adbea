"""The ranker as users hold it: texts in, scores out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from secondlook.encode.encoder import Encoder
from secondlook.encode.tokens import Reader, TokenStore, text_only
from secondlook.encode.type_classifier import TypeClassifier
from secondlook.model.checkpoint import TYPES, locate, refuse_to_replace
from secondlook.rank.fusion import Fusion, fuse
from secondlook.score.backends import open_backend
from secondlook.score.calibration import calibrate, score_meaning
from secondlook.score.default_scale import fit_scale, reference_pairs
from secondlook.score.ranked_texts import check_first_stage_scores, ranked_texts
from secondlook.score.scored import Scored
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from secondlook.data.conversions import Queries, RunLike
    from secondlook.data.run import Run
    from secondlook.encode.features import Features
    from secondlook.model.settings import RankerSettings
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.score.backends import Backend
    from secondlook.score.calibration import Calibration
    from secondlook.score.export_folder import Engine, Precision
    from secondlook.score.ranked_texts import RankedText
    from secondlook.types import Corpus, Pair

_COUNTED_BYTES = 32 * 2**20
"""Of texts whose tokens were counted, so that they are not counted again."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A pair as the network reads it: the whole document, or one row for each of its windows."""

    rows: tuple[Features, ...]
    spans: tuple[tuple[int, int], ...]
    """Where each row's text begins and ends in the document's, in characters."""
    unread: int = 0
    """How many of the document's tokens stand behind its rows: in windows that were left out."""

    @property
    def cut(self) -> int:
        """How many of the document's tokens are not seen."""
        return sum(row.cut for row in self.rows) + self.unread

    @property
    def cut_query(self) -> int:
        """How many of the query's."""
        return max(row.cut_query for row in self.rows)


class Ranker:
    """Scores how well documents answer queries, as its checkpoint says.

    `score` gives raw scores, for ranking and fusing: the logit, pooled over windows where the
    checkpoint has them. `predict` and `rank` give relevance scores, from 0 to 1, as the server
    does; `score_meaning` says what they mean. The order is the same. Where a first stage's scores
    are known too, `fusion` says what they add.
    """

    def __init__(
        self,
        settings: RankerSettings,
        tokenizer: Tokenizer,
        backend: Backend,
        types: TypeClassifier | None = None,
    ) -> None:
        self.settings = settings
        self.tokenizer = tokenizer
        self.encoder = Encoder(tokenizer, settings.encode, types=types)
        self.backend = backend

    @classmethod
    def load(
        cls,
        source: str | Path,
        *,
        backend: Literal["auto", "torch"] | Engine = "auto",
        precision: Literal["auto"] | Precision = "auto",
        device: str | None = None,
        untrained_head: bool = False,
        same_on_any_machine: bool = False,
    ) -> Ranker:
        """Load a ranker from a checkpoint's folder or a hub id.

        What was exported into the folder runs; of several exports the fastest, in the order of
        `FASTEST_FIRST`. So scores are torch's to 1e-3 unless an export at bf16 or int8 was made or
        asked for. Where nothing is exported, or a `device` is named, torch runs, in fp32 unless
        bf16 is asked for. An export of other weights than the folder's is refused, and so is a head
        that was never trained, unless asked for.

        `same_on_any_machine` is for jobs whose parts run on several: how many cores there are then
        decides nothing about a batch, so that no score differs in its last bit.

        >>> import secondlook as sl
        >>> scores = sl.Ranker.load("my.ranker").predict([("cats land", "a cat falls")])
        >>> bool(0 <= scores[0] <= 1)
        True
        """
        folder = locate(source)
        settings, tokenizer, run = open_backend(
            folder,
            backend,
            precision,
            device,
            untrained_head=untrained_head,
            same_on_any_machine=same_on_any_machine,
        )
        types = TypeClassifier.load(folder / TYPES) if (folder / TYPES).is_file() else None
        return cls(settings, tokenizer, run, types)

    @classmethod
    def from_biencoder(
        cls,
        source: str | Path,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        folder: str | Path | None = None,
        replace: bool = False,
        device: str | None = None,
    ) -> Ranker:
        """A re-ranker that ranks as the bi-encoder `source` does, without training.

        `source` is a folder or a hub id. Prompts are texts put before every query and document, by
        default as the bi-encoder's own files say. The re-ranker is in memory only, unless `folder`
        is given: then it is written there, to be fine-tuned, exported or served. A re-ranker that
        is there already is an error, unless `replace` is set.

        >>> import secondlook as sl
        >>> ranker = sl.Ranker.from_biencoder("intfloat/e5-small")
        >>> len(ranker.rank("cats land", ["a cat falls", "the tide"], top_k=1))
        1
        """
        from secondlook.score.warm import from_biencoder, make_warm

        prompts = {"query_prompt": query_prompt, "document_prompt": document_prompt}
        encode = {name: text for name, text in prompts.items() if text is not None}
        if folder is None:
            return from_biencoder(source, encode, device)
        if not replace:
            refuse_to_replace(Path(folder), "to overwrite it, give `replace=True`")
        make_warm(source, folder, encode=encode)
        return cls.load(folder, device=device)

    def rerank(
        self,
        queries: Queries,
        rankings: RunLike,
        corpus: Corpus,
        *,
        depth: int | None = None,
        progress: Progress | ProgressCallback | None = None,
    ) -> Run:
        """Re-rank the candidates of each query; scores are fused where this ranker has a fusion.

        `queries` and `rankings` are objects, dicts, DataFrames or files, matched by query id;
        `corpus` holds the texts, as an index does. With `depth`, only the top candidates are
        scored, and the others stay below them in their old order.

        >>> import secondlook as sl
        >>> index, ranker = sl.open_index("my.index"), sl.Ranker.load("my.ranker")
        >>> bm25 = index.retrieve("queries.jsonl", k=3)
        >>> len(ranker.rerank("queries.jsonl", bm25, index))
        3
        """
        from secondlook.score.reranking import rerank_run

        return rerank_run(self, queries, rankings, corpus, depth=depth, progress=progress)

    def encode(self, pairs: Sequence[Pair], *, every_window: bool = False) -> list[Encoded]:
        """One Encoded per pair, in the order given. Threads may share it.

        Windows that the pooling takes no notice of are left out, and count as cut, unless all are
        asked for.
        """
        parts = self.encoder.windows([document for _, document in pairs])
        windows, unread = self.settings.encode.windows, [0] * len(pairs)
        if windows is not None and windows.pooling == "first" and not every_window:
            behind = [d.text[some[0].end :] for (_, d), some in zip(pairs, parts, strict=True)]
            unread = [tokens.total for tokens in self._token_counts.read(behind)]
            parts = [some[:1] for some in parts]
        rows = iter(
            self.encoder.encode(
                [
                    (query, one.document)
                    for (query, _), some in zip(pairs, parts, strict=True)
                    for one in some
                ]
            )
        )
        return [
            Encoded(
                tuple(islice(rows, len(some))), tuple((one.start, one.end) for one in some), count
            )
            for some, count in zip(parts, unread, strict=True)
        ]

    def score_encoded(self, encoded: Sequence[Encoded]) -> Scored:
        """The same as `scored`, of pairs that are encoded already."""
        rows = [row for one in encoded for row in one.rows]
        return Scored.of(
            self.backend.logits(rows),
            [len(one.rows) for one in encoded],
            self.settings.encode.windows,
            cut=[one.cut for one in encoded],
            cut_query=[one.cut_query for one in encoded],
        )

    def scored(self, pairs: Sequence[Pair]) -> Scored:
        """One raw score per pair, in the order given, and how much of each document was cut off."""
        return self.score_encoded(self.encode(pairs))

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """One raw score per pair, in the order given; higher is more relevant."""
        return self.scored(pairs).scores

    def scored_windows(self, pairs: Sequence[Pair]) -> Scored:
        """The same as `scored`, with every window's raw score, whatever the pooling."""
        return self.score_encoded(self.encode(pairs, every_window=True))

    @cached_property
    def _token_counts(self) -> TokenStore:
        """Counts tokens: it keeps none of them, only their number."""
        tokenizer = text_only(self.tokenizer)  # the caller's stays as it is
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return TokenStore(Reader(tokenizer, limit=0), "", _COUNTED_BYTES)

    @property
    def name(self) -> str:
        """What it was made from: a model's name."""
        return self.settings.lineage.base

    @property
    def reads_windows(self) -> bool:
        """Whether long documents are read in windows, each a pair of its own."""
        return self.settings.encode.windows is not None

    @property
    def fusion(self) -> Fusion | None:
        """How `rank.second_look` makes one score of the first stage's and this ranker's."""
        own = self.settings.fusion
        return None if own is None else Fusion(own.weight, own.scale)

    @property
    def score_meaning(self) -> str:
        """What a relevance score of this ranker means, in one sentence."""
        return score_meaning(self.scale)

    @cached_property
    def scale(self) -> Calibration:
        """From raw scores to relevance scores: as the checkpoint says.

        Where it says nothing, as a cross-encoder from elsewhere, a scale is fitted now to some of
        the reference pairs; `secondlook calibrate` stores one. A bi-encoder in memory gets the
        scale that it would be stored with.
        """
        every = 1 if self.settings.warm is not None else 2
        return self.settings.calibration or fit_scale(self, reference_pairs(every=every))

    def predict(
        self, pairs: Sequence[tuple[str, str]], *, raw_scores: bool = False
    ) -> NDArray[np.float32]:
        """One relevance score per (query text, document text), or one raw score."""
        scores = self.score([(Query("", query), Document("", text)) for query, text in pairs])
        return scores if raw_scores else self.relevance(scores)

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,  # noqa: FBT001, FBT002 - sentence-transformers' signature
        *,
        raw_scores: bool = False,
        first_stage_scores: Sequence[float] | None = None,
    ) -> list[RankedText]:
        """The documents best first, each by its place in `documents`; equals keep their order.

        The order is that of the raw scores; `score` is the relevance score, unless raw scores are
        asked for. With `first_stage_scores`, by which the documents were retrieved, a ranker that
        was tuned to add them (`fusion`) orders by both, as `rerank` does.
        """
        check_first_stage_scores(first_stage_scores, len(documents))
        scores = self.score([(Query("", query), Document("", text)) for text in documents])
        shown = scores if raw_scores else self.relevance(scores)
        by: NDArray[np.floating] = scores
        if first_stage_scores is not None and self.fusion is not None:
            by = fuse(first_stage_scores, scores, self.fusion)
        return ranked_texts(by, shown, documents if return_documents else None, top_k)

    def relevance(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The relevance scores of these raw scores: from 0 to 1, in the same order."""
        return calibrate(scores, self.scale)
