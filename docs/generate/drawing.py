"""Drawings of boxes, arrows and text, as SVG with a light and a dark side."""

from __future__ import annotations

from html import escape

TEAL, AMBER, GREY, RED, WHITE = "#b2dfdb", "#ffe0b2", "#eceff1", "#ffcdd2", "#ffffff"
_STYLE = (
    "text{font:14px ui-sans-serif,system-ui,sans-serif;fill:#263238}"
    ".small{font-size:12px;fill:#546e7a}.head{font-weight:600}"
    ".mono{font-family:ui-monospace,monospace;font-size:13px}"
)
_DARK = {
    TEAL: "#00594f",
    AMBER: "#6b4700",
    GREY: "#333a45",
    RED: "#7f2a2a",
    WHITE: "#1e2129",
    "#263238": "#eceff1",  # text
    "#546e7a": "#b0bec5",  # small text
    "#455a64": "#90a4ae",  # arrows
    "#78909c": "#607d8b",  # outlines
}


class Picture:
    """Shapes on a sheet, with what they show in words."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.shapes: list[str] = []

    def box(self, x: float, y: float, w: float, h: float, text: str, fill: str = GREY) -> None:
        """A rectangle with its text in the middle, one line for each of the text's."""
        self.shapes.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="5" fill="{fill}" '
            'stroke="#78909c"/>'
        )
        lines = text.split("\n")
        for n, line in enumerate(lines):
            self.say(x + w / 2, y + h / 2 + 5 + 17 * (n - (len(lines) - 1) / 2), line, "middle")

    def say(self, x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> None:
        """A line of text; `kind` is small or mono."""
        self.shapes.append(
            f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, colour: str = "#455a64") -> None:
        """A line with a head."""
        self.shapes.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="1.6" '
            'marker-end="url(#head)"/>'
        )

    def row(self, x: float, y: float, tokens: list[tuple[str, str]], gap: float = 4) -> list[float]:
        """Tokens side by side, (text, colour) each; where their middles are."""
        middles = []
        for text, fill in tokens:
            width = 14 + 8.2 * len(text)
            self.box(x, y, width, 28, text, fill)
            middles.append(x + width / 2)
            x += width + gap
        return middles

    def bar(self, x: float, y: float, w: float, h: float, fill: str) -> None:
        """A bar of a chart."""
        self.shapes.append(f'<rect x="{x}" y="{y}" width="{w:.1f}" height="{h}" fill="{fill}"/>')

    def svg(self, *, dark: bool = False) -> str:
        """The file's text."""
        text = self._light()
        for light, other in _DARK.items() if dark else ():
            text = text.replace(light, other)
        return text

    def _light(self) -> str:
        shapes = "\n".join(self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img">\n'
            f"<title>{escape(self.title)}</title>\n<style>{_STYLE}</style>\n"
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#455a64"/>'
            "</marker></defs>\n"
            f'<rect width="{self.width}" height="{self.height}" rx="8" fill="{WHITE}"/>\n'
            f"{shapes}\n</svg>\n"
        )
