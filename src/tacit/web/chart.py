"""Charts on pages: the project's SVG, with attributes in place of styles, which the sites' policy does not run."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from markupsafe import Markup

from tacit.report.svg import SVG, XLINK

_FONT = re.compile(r"(?:(\d+) )?([\d.]+(?:px|pt)?) (.+)")  # as in `700 11px 'DejaVu Sans'`


def chart(svg: str) -> Markup:
    """An `<svg>` element that `tacit.report` made, for a page: every style as attributes of the same meaning."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for name, value in _declarations(element.attrib.pop("style", "")):
            element.set(name, value)
    root.set("class", "chart")
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # text in it was escaped when it was made


def _declarations(style: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in style.split(";"):
        name, colon, value = (piece.strip() for piece in part.partition(":"))
        if not colon:
            continue
        if name == "font" and (font := _FONT.fullmatch(value)):
            weight, size, family = font.groups()
            found += [("font-size", size), ("font-family", family)]
            found += [("font-weight", weight)] if weight else []
        else:
            found.append((name, value))
    return found
