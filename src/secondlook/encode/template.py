"""Where a base's special tokens stand around one text and around two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondlook.encode.tokens import Tokens
from secondlook.errors import UnusableTokenizer

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from secondlook.encode.settings import Form


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A pair is `before` query `between`, then `opening` document `after`.

    | | before | between | opening | after | segments |
    |---|---|---|---|---|---|
    | joint, BERT | [CLS] | [SEP] | | [SEP] | 0, 1 |
    | joint, RoBERTa | <s> | </s></s> | | </s> | 0, 0 |
    | joint, T5 | | </s> | | </s> | 0, 0 |
    | warm or frozen, BERT | [CLS] | [SEP] | [CLS] | [SEP] | 0, 0 |

    A query type stands between `before` and the query, followed by `separator`, in the query's
    segment: DR-BERT's `[CLS] T [SEP] Q [SEP] D [SEP]` has segment 0 up to and with the second
    [SEP], and segment 1 from D on.
    """

    before: Tokens
    between: Tokens
    opening: Tokens
    after: Tokens
    separator: Tokens
    segments: tuple[int, int]

    @classmethod
    def read(cls, tokenizer: Tokenizer, form: Form) -> Template:
        """What the tokenizer's own post-processor does, found by letting it join two texts."""
        pair = tokenizer.encode("a", "a")
        before, between, after = _around(pair, 2, first_empty=form == "joint")
        query, document = pair.type_ids[len(before)], pair.type_ids[-1 - len(after)]
        if form == "joint":
            return cls(before, between, Tokens.special([]), after, between, (query, document))
        opening, closing = _around(tokenizer.encode("a"), 1)
        return cls(opening, closing, opening, closing, between, (query, query))


def _around(encoding: Encoding, texts: int, *, first_empty: bool = False) -> list[Tokens]:
    """The special tokens before the first text, between texts and after the last.

    Before the first there may be none, as with T5, whose score is read at the last token.
    """
    gaps: list[list[int]] = [[] for _ in range(texts + 1)]
    seen = 0
    for token, text in zip(encoding.ids, encoding.sequence_ids, strict=True):
        if text is None:
            gaps[seen].append(token)
        else:
            seen = text + 1
    if seen != texts or not all(gaps[first_empty:]):
        raise UnusableTokenizer(
            "the tokenizer puts no special tokens around its texts, so there is no place to read "
            "a score from; take the tokenizer.json of a BERT-family encoder, or save it anew with "
            "transformers' save_pretrained"
        )
    return [Tokens.special(gap) for gap in gaps]
