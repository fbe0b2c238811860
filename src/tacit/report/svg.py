"""A matplotlib figure as an SVG element that can stand in a page beside others."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"

STYLE: dict[Any, object] = {
    "svg.fonttype": "none",  # real text: it can be selected, searched and read aloud
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
    "font.size": 10.0,
    "text.parse_math": False,  # a column may be called $x$
    "text.usetex": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.titlesize": 11.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.unicode_minus": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


@contextmanager
def drawing(figure_id: str) -> Iterator[None]:
    """Draw inside this: matplotlib's own defaults in our style, whatever the caller's settings are.

    Guarantees:
        The caller's matplotlib settings are as before afterwards. Names in any script are drawn without a warning: the
        reader's browser has the fonts that matplotlib lacks.
    """
    import matplotlib as mpl

    noisy = logging.getLogger("matplotlib.font_manager")
    level = noisy.level
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update({**STYLE, "svg.hashsalt": figure_id})
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        noisy.setLevel(logging.ERROR)
        try:
            yield
        finally:
            noisy.setLevel(level)


def svg_element(figure: Figure, *, figure_id: str, title: str, description: str) -> str:
    """`figure` as one `<svg>` element.

    Guarantees:
        The same figure gives the same text. Every id starts with `figure_id`. There is no XML header, no date, no style
        sheet and nothing that loads; a screen reader finds the title and the description.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(buffer.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        _prefix_ids(element, figure_id)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{figure_id}-title {figure_id}-desc")
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
    for name, words in (("desc", description), ("title", title)):
        element = ElementTree.Element(f"{{{SVG}}}{name}", {"id": f"{figure_id}-{name}"})
        element.text = words
        root.insert(0, element)
    return ElementTree.tostring(root, encoding="unicode")


def _prefix_ids(element: ElementTree.Element, figure_id: str) -> None:
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{figure_id}-{value}")
        elif name in ("href", f"{{{XLINK}}}href") and value.startswith("#"):
            element.set(name, f"#{figure_id}-{value[1:]}")
        elif "url(#" in value:
            element.set(name, value.replace("url(#", f"url(#{figure_id}-"))
