"""The site builds without a warning, leads nowhere that is not there, and needs no network."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from .conftest import ROOT, script

make_site = script("make_site")
problems = script("links").problems


def test_the_site_builds_and_every_link_leads_somewhere(site: Path) -> None:
    assert problems(site) == []
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages == {path.relative_to(site) for path in site.rglob("*.html")}


def test_a_formula_is_mathml(tmp_path: Path) -> None:
    told = make_site.with_formulas("Before\n\n$$\n\\sum_i x_i\n$$\n\nafter; a price of $$5")
    assert "<math" in told
    assert "\\sum" not in told
    assert told.endswith("after; a price of $$5")


@pytest.mark.parametrize(("shade", "told"), [(20, "![x](p.png){ .dark }"), (240, "![x](p.png)")])
def test_a_dark_picture_says_so(tmp_path: Path, shade: int, told: str) -> None:
    Image.new("L", (4, 4), shade).save(tmp_path / "p.png")
    assert make_site.with_dark_pictures("![x](p.png)", tmp_path / "page.md") == told


def test_a_page_in_no_part_of_the_menu_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr(make_site, "MENU", {"Start": ["index.md"], "Inside": ["deep/*"]})
    assert make_site.menu(["index.md", "deep/a.md"]) == {"Start": ["index.md"], "Inside": ["deep/a.md"]}
    with pytest.raises(make_site.SiteError, match=r"lost\.md is in no part of the menu"):
        make_site.menu(["index.md", "lost.md"])
    with pytest.raises(make_site.SiteError, match=r"names index\.md, which is no page"):
        make_site.menu(["other.md"])


def test_a_folder_with_something_else_in_it_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(make_site.SiteError, match="holds something else than a site"):
        make_site.build(tmp_path, tmp_path / "work")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ('<a href="gone.html">', "index.html links to gone.html, which is not there"),
        ('<a href="#nowhere">', "index.html links to #nowhere, and that page has no such place"),
        ('<a href="other.html#nowhere">', "index.html links to other.html#nowhere, and that page has no such place"),
        ('<img src="gone.png">', "index.html links to gone.png, which is not there"),
        ('<a href="../../outside.html">', "index.html links to ../../outside.html, which is not there"),
        ('<script src="https://cdn.example/x.js">', "index.html fetches https://cdn.example/x.js from elsewhere"),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "index.html fetches //cdn.example/x.css from elsewhere"),
    ],
)
def test_the_checker_notices(tmp_path: Path, page: str, found: str) -> None:
    (tmp_path / "other.html").write_text('<p id="here">')
    (tmp_path / "index.html").write_text(page)
    assert problems(tmp_path) == [found]


def test_the_checker_is_content_with_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<p id="here">')
    (tmp_path / "index.html").write_text('<a href="other.html#here"><a href="https://example.org/gone"><a href="">')
    assert problems(tmp_path) == []


def test_the_site_works_from_a_folder_without_a_network(site: Path, browser) -> None:
    page = browser.page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{(site / 'index.html').as_uri()}")
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type("norm_bound")
    page.get_by_text("The study file").filter(visible=True).first.wait_for()  # found: the page itself does not show it
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    assert page.problems == []


def test_no_page_is_wider_than_a_phone_and_none_is_white_in_the_dark(site: Path, browser) -> None:
    page = browser.page(size="390", scheme="dark")
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        wide, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert wide <= window, f"{path.name} is {wide} pixels wide in a window of {window}"
        shades = page.evaluate("""() => {
            const bright = (colour) => {
                const [r, g, b, a = 1] = (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
                return a > 0.5 && r + g + b > 600;
            };
            const boxes = [document.body, ...document.querySelectorAll(".md-content *")];
            const lit = boxes.filter((box) => bright(getComputedStyle(box).backgroundColor));
            const white = lit.map((box) => box.outerHTML);
            const bare = [...document.querySelectorAll(".md-content img:not(.dark)")].filter(
                (picture) => !getComputedStyle(picture).filter.includes("invert")
            );
            return [white.slice(0, 3), bare.map((picture) => picture.src)];
        }""")
        assert shades == [[], []], f"{path.name} in the dark: {shades}"
    assert page.problems == []
