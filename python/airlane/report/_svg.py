"""A figure embedded in a page: small, with ids that are unique there, in the page's colours."""

from __future__ import annotations

import io
import re

import matplotlib.style
from matplotlib.figure import Figure

from airlane._figure import house_style
from airlane._style import shown_unit
from airlane.figures._draw import render
from airlane.figures._outcome import Curves, Drawing
from airlane.figures._over_time import read_points, render_curves


def inline(shown: Drawing | Curves, prefix: str) -> str:
    """Draw for one column, as an `svg` element.

    Args:
        shown: Names, numbers and units; for curves, their file as well.
        prefix: Prefix of every id in it; unique on the page.

    Returns:
        The element. Text stays text; black and white become the page's own colours.
    """
    if isinstance(shown, Curves):
        figure, alt = render_curves(shown, read_points(shown.path), "single"), over_time(shown)
    else:
        figure, alt = render(shown, "single"), description(shown)
    buffer = io.StringIO()
    with house_style(), matplotlib.style.context({"svg.fonttype": "none"}):
        # Unlike in a file of its own, letters are not outlines here.
        Figure.savefig(
            figure,
            buffer,
            format="svg",
            transparent=True,
            metadata={"Date": None},
        )
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    # The page has this style once; here it would apply to the whole page.
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    text = _ids(text, prefix)
    text = re.sub(r"-?\d+\.\d{3,}", _rounded, text)
    for colour, ours in (("#000000", "currentColor"), ("#ffffff", "var(--paper)")):
        text = text.replace(colour, ours)
    # The page sets the font: one of the same width that every machine has.
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", text)
    text = re.sub(r"\s*\n\s*", " ", text)
    text = re.sub(r">\s+<", "><", text)
    width = re.search(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', text)
    if width is None:
        raise ValueError("Matplotlib wrote no viewBox")
    head = f'<svg viewBox="{width[1]}" role="img" aria-label="{_escaped(alt)}">'
    return head + text[width.end() :].strip()


def description(drawing: Drawing) -> str:
    """Describe the figure in a sentence for readers who cannot see it."""
    shown = []
    for panel in drawing.panels:
        cells = (cell for row in panel.values for cell in row if cell is not None)
        unit, _ = shown_unit(panel.unit, (cell.value for cell in cells))
        part = panel.y_label + (f" in {unit}" if unit else "")
        shown.append(part + (f" ({panel.title})" if panel.title else ""))
    kind = "Bars" if drawing.kind == "bars" else "Lines"
    names = ", ".join(line.label for line in drawing.lines if line.label)
    places = ", ".join(place.replace("\n", " ") for place in drawing.x)
    return (
        f"{kind}: {'; '.join(shown)}, by {drawing.x_label} ({places})"
        + (f", for {names}" if names else "")
        + ". The table below has the numbers."
    )


def over_time(curves: Curves) -> str:
    """Describe curves over time in a sentence for readers who cannot see them."""
    labels = list(dict.fromkeys(panel.y_label for panel in curves.panels))
    titles = list(dict.fromkeys(panel.title for panel in curves.panels if panel.title))
    names = ", ".join(line.label.replace("\n", " ") for line in curves.lines if line.label)
    return (
        f"Curves over the time of one run: {'; '.join(labels)}"
        + (f", for {names}" if names else "")
        + (f" ({'; '.join(titles)})" if titles else "")
        + f". {curves.path.name} has the numbers."
    )


def _ids(text: str, prefix: str) -> str:
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))

    def named(match: re.Match[str]) -> str:
        return f' id="{prefix}-{match[1]}"' if match[1] in used else ""

    text = re.sub(r' id="([^"]*)"', named, text)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}-", text)


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


def _escaped(text: str) -> str:
    for plain, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(plain, entity)
    return text
