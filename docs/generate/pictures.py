"""The pictures of the documentation, as SVG: of the concepts, and of the front page.

    python docs/generate/pictures.py

A test compares the committed files with what this draws.
"""

from __future__ import annotations

from pathlib import Path

from drawing import AMBER, GREY, RED, TEAL, WHITE, Picture
from front_page import gains, pipeline

DOCS = Path(__file__).parents[1]


def monobert() -> Picture:
    """One sequence, one encoder, one number."""
    p = Picture(720, 260, "Query and passage in one sequence; the score is read from [CLS]")
    query = [(w, TEAL) for w in ("how", "do", "cats", "land")]
    passage = [(w, AMBER) for w in ("a", "falling", "cat", "turns", "its", "body")]
    mark = ("[SEP]", GREY)
    at = p.row(30, 200, [("[CLS]", GREY), *query, mark, *passage, mark])
    p.say(at[2], 248, "query, 64 tokens at most", "middle", "small")
    p.say(at[8], 248, "passage, cut where the whole is full", "middle", "small")
    p.box(30, 110, 660, 50, "encoder: in every layer, every token attends to every token", GREY)
    for x in at:
        p.arrow(x, 198, x, 164)
    p.arrow(at[0], 108, at[0], 66)
    p.box(30, 30, 190, 34, "s = w · h[CLS] + b", TEAL)
    p.say(235, 52, "one logit; its sigmoid is the papers' softmax over two classes", kind="small")
    return p


def warm() -> Picture:
    """Two parts side by side, and a dial between them."""
    p = Picture(
        720, 310, "The warm form: two parts, a learned bias between them, two ways to score"
    )
    p.row(30, 250, [("[CLS]", GREY), ("query", TEAL), ("tokens", TEAL), ("[SEP]", GREY)])
    p.row(390, 250, [("[CLS]", GREY), ("document", AMBER), ("tokens", AMBER), ("[SEP]", GREY)])
    p.say(140, 298, "positions from 0", "middle", "small")
    p.say(530, 298, "positions from 0 again", "middle", "small")
    p.box(30, 160, 240, 56, "attends to itself", TEAL)
    p.box(390, 160, 280, 56, "attends to itself", AMBER)
    p.arrow(276, 178, 384, 178)
    p.arrow(384, 198, 276, 198)
    p.say(330, 150, "a gate per layer,", "middle", "small")
    p.say(330, 166, "begins almost shut", "middle", "small")
    p.arrow(120, 246, 120, 220)
    p.arrow(530, 246, 530, 220)
    p.box(135, 70, 115, 34, "mean", TEAL)
    p.box(440, 70, 130, 34, "mean", AMBER)
    p.arrow(185, 156, 185, 108)
    p.arrow(505, 156, 505, 108)
    p.arrow(50, 156, 50, 54)
    p.box(20, 18, 680, 34, "score = α · cos(query mean, document mean)  +  w · h[CLS] + b", GREY)
    p.arrow(185, 66, 260, 54)
    p.arrow(505, 66, 400, 54)
    p.say(60, 92, "w = b = 0", kind="small")
    p.say(60, 108, "at first", kind="small")
    return p


def strm() -> Picture:
    """Which token attends to which."""
    tokens = ["what", "is", "bog", "##ue", "[SEP]", "a", "bog", "##us", "claim"]
    word = [0, 1, 2, 2, 3, 4, 5, 5, 6]
    last = [a != b for a, b in zip(word, [*word[1:], -1], strict=True)]
    p = Picture(
        690, 400, "STRM's mask: inner pieces of a word are seen from inside their word only"
    )
    size, left, top = 32, 110, 80
    p.say(left, 30, "attended to →", kind="small")
    p.say(20, top - 10, "from ↓", kind="small")
    for j, name in enumerate(tokens):
        p.say(left + size * j + size / 2, top - 28 + 16 * (j % 2), name, "middle", "mono")
        p.say(left - 8, top + size * j + 21, name, "end", "mono")
        for i in range(len(tokens)):
            same = word[i] == word[j] and not last[j]
            fill = AMBER if same else TEAL if last[j] else WHITE
            p.box(left + size * j, top + size * i, size - 2, size - 2, "", fill)
    for n, (fill, says) in enumerate(
        (
            (TEAL, "seen by all: a word's last piece"),
            (AMBER, "seen inside its word"),
            (WHITE, "shut"),
        )
    ):
        p.box(415, 120 + 40 * n, 24, 24, "", fill)
        p.say(447, 137 + 40 * n, says, kind="small")
    p.say(415, 260, "The two “bog” never meet:", kind="small")
    p.say(415, 278, "bogue is not bogus.", kind="small")
    return p


def markers() -> Picture:
    """The same number around the same term."""
    p = Picture(760, 190, "Query terms found in the passage stand between numbered markers")

    def marked(k: int, term: str, fill: str) -> list[tuple[str, str]]:
        return [(f"[e{k}]", RED), (term, fill), (f"[/e{k}]", RED)]

    query = [*marked(1, "ghost", TEAL), ("meaning", TEAL), *marked(2, "urban", TEAL)]
    p.say(30, 30, "query", kind="small")
    q = p.row(30, 40, query)
    p.say(30, 110, "passage", kind="small")
    passage = [*marked(1, "ghost", AMBER), ("town,", AMBER), ("an", AMBER)]
    d = p.row(30, 120, [*passage, *marked(2, "urban", AMBER), ("area", AMBER)])
    p.arrow(q[1], 70, d[1], 118)
    p.arrow(q[5], 70, d[6], 118)
    p.say(q[3], 84, "not in the passage: no marker", "middle", "small")
    p.say(30, 175, "k counts the matched terms in the query's order", kind="small")
    return p


def query_types() -> Picture:
    """A word before the query."""
    p = Picture(720, 190, "A classifier names the type of answer; it stands before the query")
    p.box(30, 30, 200, 34, "how tall is mont blanc", TEAL)
    p.arrow(234, 47, 286, 47)
    p.box(290, 26, 150, 42, "classifier", GREY)
    p.arrow(444, 47, 496, 47)
    p.box(500, 30, 100, 34, "numeric", RED)
    p.arrow(550, 68, 120, 116)
    tokens = [("[CLS]", GREY), ("numeric", RED), ("[SEP]", GREY), ("how tall is mont blanc", TEAL)]
    p.row(30, 120, [*tokens, ("[SEP]", GREY), ("passage …", AMBER), ("[SEP]", GREY)])
    p.say(30, 172, "description, entity, location, numeric, person", kind="small")
    return p


def denoise() -> Picture:
    """What scores like a positive is no negative."""
    p = Picture(
        720, 230, "Unlabelled candidates that score above the threshold leave the training data"
    )
    p.arrow(40, 150, 690, 150)
    p.say(690, 172, "score of the ranker so far", "end", "small")
    scores = (60, 95, 120, 170, 200, 245, 300, 350, 395)
    for x in scores:
        p.box(x, 112, 22, 22, "–", AMBER)
    for x in (470, 560, 640):
        p.box(x, 112, 22, 22, "?", RED)
    for x in (390, 500, 600):
        p.box(x, 76, 22, 22, "+", TEAL)
    p.shapes.append('<line x1="450" y1="50" x2="450" y2="160" stroke="#c62828" stroke-width="2"/>')
    p.say(450, 40, "threshold", "middle", "small")
    p.say(60, 205, "–  unlabelled, stays a negative", kind="small")
    p.say(280, 205, "?  unlabelled, taken out and listed", kind="small")
    p.say(510, 205, "+  known positive, always kept", kind="small")
    return p


def listwise() -> Picture:
    """A softmax over the documents of one query."""
    p = Picture(720, 240, "Listwise training: the positive's share of a softmax over its group")
    shares = [("d⁺", 90, TEAL), ("d₁", 46, AMBER), ("d₂", 30, AMBER), ("d₃", 22, AMBER)]
    shares += [("d₄", 14, AMBER), ("d₅", 10, AMBER)]
    for n, (name, height, fill) in enumerate(shares):
        x = 60 + 70 * n
        p.box(x, 180 - height, 44, height, "", fill)
        p.say(x + 22, 202, name, "middle")
    p.say(40, 60, "softmax over one query's documents", kind="small")
    p.arrow(150, 108, 496, 108)
    p.box(500, 86, 190, 44, "loss = −log share(d⁺)", TEAL)
    p.say(60, 228, "one positive and five negatives, drawn anew each time", kind="small")
    return p


def windows() -> Picture:
    """Overlapping windows, one score."""
    p = Picture(720, 270, "A long document as overlapping windows, and their scores as one")
    p.box(30, 30, 660, 30, "a document of 400 words", AMBER)
    scores = ["0.2", "−1.1", "3.4", "2.9", "−0.5", "0.1", "0.8"]
    for n, score in enumerate(scores):
        x, y = 30 + 82.5 * n, 80 + 32 * (n % 2)
        best = score == "3.4"
        p.box(x, y, 165, 24, f"window {n + 1}: {score}", TEAL if best else GREY)
    p.arrow(277, 106, 277, 186)
    p.box(30, 190, 280, 34, "max: 3.4", TEAL)
    p.box(330, 190, 360, 34, "top, weights .5 .3 .2: .5·3.4 + .3·2.9 + .2·0.8", GREY)
    p.say(
        30, 252, "100 words each, a new one every 50; the best is the passage to show", kind="small"
    )
    return p


def calibration() -> Picture:
    """From scores to probabilities."""
    p = Picture(620, 300, "A curve from raw scores to the share that is relevant")
    p.arrow(70, 240, 590, 240)
    p.arrow(70, 240, 70, 30)
    p.say(590, 262, "raw score", "end", "small")
    p.say(80, 40, "probability of relevance", kind="small")
    p.shapes.append(
        '<path d="M70 232C230 228 260 190 320 140S420 62 580 56" fill="none" stroke="#00796b" '
        'stroke-width="3"/>'
    )
    for x, y in ((110, 226), (170, 222), (230, 208), (290, 158), (350, 122), (420, 74), (520, 62)):
        p.shapes.append(f'<circle cx="{x}" cy="{y}" r="5" fill="#ffb74d" stroke="#78909c"/>')
    p.say(360, 180, "points: share judged relevant, by score", kind="small")
    p.say(360, 200, "line: σ(slope · score + intercept)", kind="small")
    p.say(70, 286, "the order of documents stays as it is", kind="small")
    return p


def deepct() -> Picture:
    """A weight for every word."""
    p = Picture(720, 220, "DeepCT: a network weighs each word, and the index counts it that often")
    words = [("the", 0), ("solar", 8), ("panel", 9), ("on", 0), ("a", 0), ("roof", 5)]
    at = p.row(40, 40, [(w, AMBER) for w, _ in words], gap=46)
    p.box(40, 86, 640, 34, "encoder, and one number per word", GREY)
    for x, (_, weight) in zip(at, words, strict=True):
        p.arrow(x, 70, x, 84)
        p.arrow(x, 122, x, 146)
        p.say(x, 166, f"tf {weight}", "middle", "mono")
    p.say(40, 202, "BM25 reads these counts in place of the plain ones", kind="small")
    return p


def doc2query() -> Picture:
    """Questions the passage answers, for the index only."""
    p = Picture(
        720, 220, "doc2query: BM25 searches passage and queries, the re-ranker reads the passage"
    )
    p.box(30, 80, 180, 50, "passage", AMBER)
    p.arrow(212, 92, 278, 60)
    p.box(282, 34, 170, 48, "sequence to sequence", GREY)
    p.arrow(454, 58, 500, 58)
    p.box(504, 30, 186, 56, "query? query?\nquery?", TEAL)
    p.arrow(596, 90, 520, 136)
    p.arrow(212, 114, 376, 152)
    p.box(380, 138, 310, 40, "index: passage + queries", GREY)
    p.arrow(120, 132, 120, 162)
    p.box(30, 164, 240, 36, "re-ranker: passage only", TEAL)
    return p


def fusion() -> Picture:
    """Two scores on one scale."""
    p = Picture(720, 200, "Fusion: both scores brought to one scale, then a weighted sum")
    p.box(30, 30, 160, 40, "BM25 score", AMBER)
    p.box(30, 120, 160, 40, "ranker's score", TEAL)
    for y in (50, 140):
        p.arrow(192, y, 236, y)
        p.box(240, y - 20, 190, 40, "to 0 … 1, per query", GREY)
    p.arrow(432, 50, 496, 88)
    p.arrow(432, 140, 496, 104)
    p.say(470, 58, "α", kind="mono")
    p.say(462, 146, "1 − α", kind="mono")
    p.box(500, 76, 190, 40, "fused score", GREY)
    return p


PICTURES = {
    "monobert": monobert,
    "warm-form": warm,
    "strm": strm,
    "markers": markers,
    "query-types": query_types,
    "denoise": denoise,
    "listwise": listwise,
    "windows": windows,
    "calibration": calibration,
    "deepct": deepct,
    "doc2query": doc2query,
    "fusion": fusion,
}


def files() -> dict[str, str]:
    """Every picture's file, light and dark, by its path below docs, with its text."""
    pictures = {f"explanation/images/{name}": draw() for name, draw in PICTURES.items()}
    pictures |= {"images/pipeline": pipeline(), "images/gains": gains(DOCS / "results")}
    sides = (("", False), ("-dark", True))
    return {
        f"{name}{side}.svg": picture.svg(dark=dark)
        for name, picture in pictures.items()
        for side, dark in sides
    }


def main() -> None:
    """Write all pictures."""
    for name, text in files().items():
        (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
