"""An explanation as a page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from secondlook.web_page import table, tint, whole_page

if TYPE_CHECKING:
    from secondlook.explain.findings import AttentionMap, Findings, Standing, Word

MOST_COLUMNS = 24
_CELL, _LETTER = 15, 6.6  # pixels: of a cell, and of a letter of a label

LEGEND = (
    "Blue words raise the score, orange ones lower it: it is scored once more without each. "
    "Bold: in both texts, by word or stem. Dotted: outside the vocabulary, read in pieces."
)


def page(said: Findings) -> str:
    """The whole page."""
    largest = max(
        (abs(word.attribution) for word in (*said.query_words, *said.document_words)), default=0.0
    )
    body = [
        "<h1>Why this score</h1>",
        f'<p class="verdict cannot-tell"><b>{said.shown:.4g}</b> {escape(_whence(said))}</p>',
        _standing(said.standing) if said.standing is not None else "",
        f'<p class="small">{LEGEND}</p>',
        f"<h2>Query</h2>{_text(said.query_words, largest)}",
        f"<h2>Document</h2>{_text(said.document_words, largest)}",
    ]
    for side, cut in (("query", said.cut_query), ("document", said.cut)):
        if cut:
            body.append(f"<p class=warning>{cut} tokens of the {side} were not seen.</p>")
    if len(said.windows) > 1:
        body.append(_windows(said))
    body.append("<h2>What each word adds</h2>" + _attributions(said))
    if said.attention or said.attention_note:
        body.append("<h2>Attention</h2>" + _attention(said))
    return whole_page(f"Why: {said.query}", "\n".join(body))


def _standing(one: Standing) -> str:
    parts = " ".join(f"{value:+.3f} {escape(name)}" for name, value in one.parts.items())
    return (
        f"<p>First look: place {one.first_rank} of {one.hits}. Second look: place {one.rank}, "
        f"final score {one.score:.4f} = {parts}.</p>"
    )


def _whence(said: Findings) -> str:
    parts = [f"{value:+.3f} {name}" for name, value in said.parts.items()]
    whence = f"raw score {said.score:.4f}"
    return f"{whence} = {' '.join(parts)}" if parts else whence


def _text(words: tuple[Word, ...], largest: float) -> str:
    return f'<p class="words">{" ".join(_marked(word, largest) for word in words)}</p>'


def _marked(word: Word, largest: float) -> str:
    names = "w" + " outside" * word.outside + " matched" * bool(word.matched)
    told = f"{word.attribution:+.3f}" + (f" · {' '.join(word.pieces)}" if word.outside else "")
    colour = tint(word.attribution / largest if largest else 0.0)
    return (
        f'<span class="{names}" style="background:{colour}" title="{escape(told)}">'
        f"{escape(word.text)}</span>"
    )


def _windows(said: Findings) -> str:
    rows = [
        [f"{window.start}–{window.end}", f"{window.score:.4f}", "shown" * (at == said.window)]
        for at, window in enumerate(said.windows)
    ]
    return "<h2>Windows</h2>" + table(["characters", "score", ""], rows)


def _attributions(said: Findings) -> str:
    sides = (("query", said.query_words), ("document", said.document_words))
    ranked = sorted(
        ((side, word) for side, words in sides for word in words if word.attribution),
        key=lambda one: -abs(one[1].attribution),
    )
    rows = [
        [word.text, side, " ".join(word.pieces) if word.outside else "", f"{word.attribution:+.4f}"]
        for side, word in ranked[:12]
    ]
    return table(["word", "of", "pieces", "score lost without it"], rows, names=3)


def _attention(said: Findings) -> str:
    note = f"<p>{escape(_sentence(said.attention_note))}</p>" if said.attention_note else ""
    return note + (_maps(said) if said.attention else "")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _maps(said: Findings) -> str:
    rows = [row for one in said.attention for row in one.query_to_document]
    top = max((share for row in rows for share in row), default=0.0)
    chosen = said.attention[0]
    whose = f"layer {chosen.layer}" if chosen.layer else "mean of all layers"
    whose += f", head {chosen.head}" if chosen.head else ", mean of all heads"
    figures = "".join(_figure(said, one, top) for one in said.attention)
    return (
        f"<p>How much each query word (rows) looks at each document word (columns): {whose}. "
        f"The darkest cell is {top:.2g} of a word's attention.</p>"
        f'<div class="figures">{figures}</div>'
    )


def _figure(said: Findings, one: AttentionMap, top: float) -> str:
    title = f"{'With' if one.strm else 'Without'} STRM"
    title += ", as it scores" if one.as_trained else ", for comparison"
    columns = _columns(said)
    left = 8 + _LETTER * max((len(w.text) for w in said.query_words), default=0)
    above = 8 + _LETTER * max((len(said.document_words[at].text) for at in columns), default=0)
    width, height = left + _CELL * len(columns), above + _CELL * len(said.query_words)
    marks = [
        f'<text x="{left - 4}" y="{above + _CELL * (row + 0.75):.1f}" text-anchor="end">'
        f"{escape(word.text)}</text>"
        for row, word in enumerate(said.query_words)
    ]
    for place, column in enumerate(columns):
        x = left + _CELL * (place + 0.7)
        marks.append(
            f'<text transform="translate({x:.1f},{above - 4}) rotate(-90)">'
            f"{escape(said.document_words[column].text)}</text>"
        )
        marks += [
            f'<rect x="{left + _CELL * place:.1f}" y="{above + _CELL * row:.1f}" width="{_CELL}" '
            f'height="{_CELL}" fill="{_shade(line[column] / top if top else 0)}">'
            f"<title>{line[column]:.2g}</title></rect>"
            for row, line in enumerate(one.query_to_document)
        ]
    seen = max(
        (
            (line[at], q.text, d.text)
            for q, line in zip(said.query_words, one.query_to_document, strict=True)
            for at, d in enumerate(said.document_words)
        ),
        default=(0.0, "", ""),
    )
    alt = f"{title}: strongest from {seen[1]} to {seen[2]}, {seen[0]:.2g}"
    some = f" {len(columns)} of {len(said.document_words)} document words."
    return (
        f'<figure><svg role="img" aria-label="{escape(alt)}" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" font-size="11" '
        f'font-family="ui-monospace, DejaVu Sans Mono, monospace" stroke="#eee">'
        f"<g stroke-width='.5'>{''.join(marks).replace('<text', '<text stroke=none')}</g></svg>"
        f"<figcaption>{escape(title)}; it scores {one.score:.3f}."
        f"{some if len(columns) == MOST_COLUMNS else ''}</figcaption></figure>"
    )


def _columns(said: Findings) -> list[int]:
    """The document words that are looked at most in any map, in their order; no punctuation."""
    weights = [
        max(line[at] for one in said.attention for line in one.query_to_document)
        if said.query_words and any(map(str.isalnum, word.text))
        else 0.0
        for at, word in enumerate(said.document_words)
    ]
    best = sorted(range(len(weights)), key=lambda at: -weights[at])[:MOST_COLUMNS]
    return sorted(at for at in best if weights[at])


def _shade(share: float) -> str:
    red, green, blue = (round(255 + (value - 255) * share**0.6) for value in (0, 60, 110))
    return f"rgb({red},{green},{blue})"
