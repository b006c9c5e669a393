"""Boxes, lines and texts as SVG in the page's colors."""

from __future__ import annotations

from xml.sax.saxutils import escape

#: Width of a letter of 12 pixels, with room for a reader's wider font.
_LETTER = 6.6


class Pen:
    """Collects shapes; coordinates are pixels, texts are 12 pixels high and never scaled."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        dashed: bool = False,
        tint: bool = False,
        strong: bool = False,
        card: bool = False,
    ) -> None:
        """A rectangle: tinted for caches, strong for usable cores."""
        fill = "var(--series-1)" if tint or strong else "var(--paper)" if card else "none"
        opacity = ' fill-opacity=".14"' if tint else ' fill-opacity=".28"' if strong else ""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        stroke = "var(--series-2)" if dashed else "var(--muted)" if card else "var(--series-1)"
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" '
            f'fill="{fill}"{opacity} stroke="{stroke}"{dash}/>'
        )

    def reserve(self) -> int:
        """Keep a place below what follows, for a frame whose height is not known yet."""
        self._parts.append("")
        return len(self._parts) - 1

    def fill(self, place: int, x: float, y: float, width: float, height: float) -> None:
        """Draw a frame at a reserved place."""
        self._parts[place] = (
            f'<rect x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{width - 1:.1f}" '
            f'height="{height - 1:.1f}" rx="8" fill="var(--paper)" stroke="var(--muted)"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A connection."""
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            'stroke="var(--muted)" stroke-width="2"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        bold: bool = False,
        muted: bool = False,
        centered: bool = False,
        room: float,
    ) -> None:
        """A line of text, shortened to ``room`` pixels."""
        most = max(int(room / (_LETTER * (1.08 if bold else 1))), 1)
        shown = words if len(words) <= most else f"{words[: most - 1]}…"
        color = "var(--muted)" if muted else "var(--ink)"
        weight = ' font-weight="600"' if bold else ""
        anchor = ' text-anchor="middle"' if centered else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" fill="{color}"{weight}{anchor}>'
            f"{escape(shown)}</text>"
        )

    def tag(self, x: float, y: float, width: float, word: str) -> None:
        """A word in a filled box."""
        color = "var(--series-1)" if word == "near" else "var(--series-2)"
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="20" rx="4" '
            f'fill="{color}"/><text x="{x + width / 2:.1f}" y="{y + 14:.1f}" font-size="12" '
            f'font-weight="600" text-anchor="middle" fill="var(--card)">{escape(word)}</text>'
        )

    def svg(self, width: float, height: float) -> str:
        """The picture; tables of the page contain the same data in accessible form."""
        size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
        shapes = "".join(self._parts)
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} aria-hidden="true">{shapes}</svg>'
