"""A ranker as a step of a PyTerrier pipeline.

import pyterrier as pt
from secondlook.pyterrier import SecondLook

pipeline = bm25 % 100 >> pt.text.get_text(dataset, "text") >> SecondLook("my.ranker")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.errors import MalformedInput, MissingExtra
from secondlook.score.ranker import Ranker
from secondlook.types import Document, Query

try:
    import pyterrier as pt
except ImportError as error:
    raise MissingExtra("pyterrier", "PyTerrier pipelines") from error

if TYPE_CHECKING:
    import pandas as pd


class SecondLook(pt.Transformer):
    """Scores every query and document of the table anew, and ranks by that.

    `ranker` is a folder, a hub id, or a ranker that is loaded. The table needs `qid`, `query`,
    `docno` and the text; where it has a `title`, that is read too, as the ranker reads titles.
    Scores are raw, as in run files: PyTerrier's own operators fuse and compare them.
    """

    def __init__(self, ranker: str | Ranker, text_field: str = "text") -> None:
        self.ranker = Ranker.load(ranker) if isinstance(ranker, str) else ranker
        self.text_field = text_field

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The same rows with the ranker's raw scores and their ranks."""
        pt.validate.result_frame(inp, extra_columns=["query", self.text_field])
        titles = inp["title"] if "title" in inp.columns else [""] * len(inp)
        rows = zip(
            inp["qid"], inp["query"], inp["docno"], inp[self.text_field], titles, strict=True
        )
        pairs = [
            (Query(qid, query), self._document(docno, text, title))
            for qid, query, docno, text, title in rows
        ]
        return pt.model.add_ranks(inp.assign(score=self.ranker.score(pairs)))

    def _document(self, docno: str, text: object, title: object) -> Document:
        """What is missing in a table is None or NaN."""
        if not isinstance(text, str):
            raise MalformedInput(
                "the table",
                None,
                f"document {docno!r} has no text in column {self.text_field!r}; drop the row, or "
                "fill in an empty text",
            )
        return Document(docno, text, title if isinstance(title, str) else "")
