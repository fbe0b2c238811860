"""Follow the links of a built site: each leads to a page and a place on it. Nothing is fetched from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"img", "script", "iframe", "source", "video", "audio", "embed"}  # by `src`; a link by `rel`


@dataclass
class Page(HTMLParser):
    """What a page links to, what it fetches, and which places it has."""

    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what the tag names."""
        told = {name: value or "" for name, value in attributes}
        self.places |= {told[name] for name in ("id", "name") if told.get(name)}
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        if tag in FETCHED and "src" in told:
            self.fetched.append(told["src"])
        if tag == "link" and told.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.fetched.append(told["href"])


def problems(site: Path) -> list[str]:
    """What is wrong with the links of a site, a line each; a link to another site is not followed."""
    site = site.resolve()
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for link in page.fetched:
            if urlsplit(link).netloc:
                found.append(f"{name} fetches {link} from elsewhere")
        for link in page.links + page.fetched:
            wanted = urlsplit(link)
            if wanted.scheme or wanted.netloc:
                continue
            target = (path.parent / unquote(wanted.path)).resolve() if wanted.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_relative_to(site) or not target.exists():
                found.append(f"{name} links to {link}, which is not there")
            elif wanted.fragment and target in pages and unquote(wanted.fragment) not in pages[target].places:
                found.append(f"{name} links to {link}, and that page has no such place")
    return found


def _read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page
