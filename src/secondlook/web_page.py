"""A page that needs nothing from elsewhere: on screens wide and narrow, and on paper."""

from __future__ import annotations

from html import escape

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#767676"
"""Okabe and Ito's: told apart by nearly everyone, and in grey by their lightness."""

_STYLE = """
:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 64rem; background: #fff;
  color: #1c1c1c;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; border-bottom: 1px solid #ccc; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p { margin: .4rem 0; max-width: 46rem; }
.small, figcaption, caption { color: #555; font-size: .85rem; text-align: left; }
.verdict { border-left: .5rem solid; padding: .7rem 1rem; margin: 1rem 0; background: #f5f5f5; }
.verdict b { font-size: 1.35rem; }
.helps { border-color: #0072b2; } .hurts { border-color: #d55e00; }
.cannot-tell { border-color: #767676; }
.warning { border-left: .3rem solid #e69f00; padding: .3rem .8rem; margin: .5rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .5rem 0; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid #888; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr));
  gap: 1.2rem; align-items: start; }
figure { margin: 0; min-width: 0; }
svg { max-width: 100%; height: auto; display: block; }
pre { background: #f5f5f5; padding: .6rem .8rem; overflow-x: auto; font-size: .85rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
details { margin: .4rem 0; } summary { cursor: pointer; }
.looks { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.5rem; }
.looks ol { margin: 0; padding-left: 1.6rem; font-size: .85rem; overflow-wrap: anywhere; }
.words { line-height: 2.1; } .w { padding: .1rem .2rem; border-radius: .2rem; }
.outside { border-bottom: 2px dotted #1c1c1c; } .matched { font-weight: 700; }
@media (max-width: 40rem) { table { font-size: .75rem; } th, td { padding-right: .4rem; }
  .looks { grid-template-columns: 1fr; } h1 { font-size: 1.3rem; } }
@media screen and (prefers-color-scheme: dark) {
  body { background: #16181c; color: #e6e6e6; } h2 { border-color: #555; }
  .small, figcaption, caption { color: #b0b0b0; }
  .verdict, pre { background: #24272d; } a { color: #8ac6f2; }
  svg, img { background: #fff; border-radius: .3rem; } .w { color: #1c1c1c; }
  .outside { border-color: #888; } }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } .scroll { overflow: visible; }
  h2, summary { break-after: avoid; }
  figure, table, pre, .looks li, .verdict { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
@page { margin: 1.6cm; }
"""


def whole_page(title: str, body: str) -> str:
    """The page; a browser that reads it may load nothing and run nothing."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body>{body}</body></html>\n"
    )


def table(header: list[str], rows: list[list[str]], *, names: int = 1, caption: str = "") -> str:
    """A table whose first columns are names and whose others are numbers; cells are text."""

    def cells(tag: str, row: list[str]) -> str:
        return "".join(
            f"<{tag}{'' if at < names else ' class=n'}>{escape(cell)}</{tag}>"
            for at, cell in enumerate(row)
        )

    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', header)}</tr></thead>"
    return f'<div class="scroll"><table>{said}{head}<tbody>{body}</tbody></table></div>'


def tint(share: float) -> str:
    """A background for a share from -1, orange, through 0, white, to 1, blue; black reads on it."""
    strength = min(1.0, abs(share)) ** 0.7
    end = (86, 180, 233) if share >= 0 else (230, 159, 0)
    red, green, blue = (round(255 + (value - 255) * strength) for value in end)
    return f"rgb({red},{green},{blue})"
