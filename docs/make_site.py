"""Build the documentation site: `python docs/make_site.py` writes it into site/ and fails at the first warning.

1. Every page of docs/ is copied. A formula becomes MathML, which browsers show without any script. A link to a file
   beside docs/ leads to a copy of it. A picture that is dark says so.
2. The menu is made: by reader, not by subject. A page that is in no part of it is an error.
3. Zensical builds, strictly. Search is made to work without a network, and from a folder (`worker.js`).
4. The links are followed (`links.py`).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from latex2mathml.converter import convert
from links import problems
from PIL import Image

DOCS = Path(__file__).parent
ROOT = DOCS.parent

# The menu: who reads, and which pages. A star stands for all pages of a folder that are not named elsewhere.
MENU = {
    "Start": ["index.md", "tutorial.md", "choose-method.md", "choose-epsilon.md", "glossary.md"],
    "Data stewards": ["steward.md", "person.md", "limits.md"],
    "Operators": ["federation.md", "runbook.md", "web.md"],
    "Statistics": [
        "statistics.md",
        "intervals.md",
        "stopping.md",
        "forecast.md",
        "accuracy.md",
        "noise.md",
        "splits.md",
    ],
    "Methods": ["methods.md", "methods/*", "audit.md"],
    "Reference": ["study-file.md", "cli.md", "api.md", "api-reference.md", "formats.md"],
    "Inside": [
        "architecture.md",
        "threat-model.md",
        "peers.md",
        "performance.md",
        "dependencies.md",
        "*",
        "reproduce/*",
        "reproduction/*",
    ],
}
NOT_FOR_READERS = {".py", ".pyc", ".toml"}
OUTSIDE_WORKER = "https://unpkg.com/iframe-worker/shim"  # what Zensical would fetch; `worker.js` stands in its place


class SiteError(Exception):
    """The site cannot be built as it stands."""


def menu(pages: list[str]) -> dict[str, list[str]]:
    """The menu over these pages, in order: each page once."""
    named = {name for names in MENU.values() for name in names}
    left, parts = set(pages), {}
    for title, names in MENU.items():
        part: list[str] = []
        for name in names:
            folder, _, last = name.rpartition("/")
            found = [p for p in pages if p not in named and p.rpartition("/")[0] == folder] if last == "*" else [name]
            part += found
        if missing := [name for name in part if name not in left]:
            raise SiteError(f"the menu {title!r} names {missing[0]}, which is no page or stands there twice")
        left -= set(part)
        parts[title] = part
    if left:
        raise SiteError(f"{min(left)} is in no part of the menu; add it to MENU in docs/make_site.py")
    return parts


def with_formulas(text: str) -> str:
    """A page whose formulas, `$$ ... $$` on lines of their own, are MathML."""
    return re.sub(
        r"^\$\$\n(.*?)\n\$\$$",
        lambda found: f'<div class="formula">{convert(found[1].strip(), display="block")}</div>',
        text, flags=re.MULTILINE | re.DOTALL,
    )  # fmt: skip


def with_files(text: str, page: Path, files: Path) -> str:
    """A page whose links to files beside docs/ lead to copies in `files`."""

    def copied(found: re.Match[str]) -> str:
        target = (page.parent / found[1]).resolve()
        if target.is_relative_to(DOCS.resolve()) or not target.is_relative_to(ROOT.resolve()):
            return found[0]
        kept = files / "files" / target.relative_to(ROOT.resolve())
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, kept)
        up = "../" * len(page.parent.relative_to(DOCS).parts)
        return f"]({up}{kept.relative_to(files).as_posix()})"

    return re.sub(r"\]\((\.\./[^)#:]+)\)", copied, text)


def with_dark_pictures(text: str, page: Path) -> str:
    """A page whose dark pictures say so: the others are turned about on a dark page (`site.css`)."""

    def marked(found: re.Match[str]) -> str:
        picture = page.parent / found[1]
        if not picture.exists():
            return found[0]
        with Image.open(picture) as opened:
            shade = opened.convert("L").resize((1, 1)).getpixel((0, 0))
        return f"{found[0]}{{ .dark }}" if isinstance(shade, int) and shade < 110 else found[0]

    return re.sub(r"!\[[^\]]*\]\(([^)]+\.png)\)", marked, text)


def stage(folder: Path) -> list[str]:
    """Copy what readers see into `folder`; the pages' names."""
    pages = []
    for path in sorted(DOCS.rglob("*")):
        name = path.relative_to(DOCS)
        if path.is_dir() or path.suffix in NOT_FOR_READERS:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            pages.append(name.as_posix())
            text = with_dark_pictures(with_formulas(path.read_text(encoding="utf-8")), path)
            text = with_files(text, path, folder)
            (folder / name).write_text(text, encoding="utf-8")
        else:
            shutil.copyfile(path, folder / name)
    return pages


def serve_from_a_folder(site: Path) -> None:
    """Take away what only a server needs, and put our own worker in the place of the one from elsewhere."""
    (site / "404.html").unlink()
    for path in site.rglob("*.html"):
        up = "../" * len(path.parent.relative_to(site).parts)
        text = path.read_text(encoding="utf-8").replace(OUTSIDE_WORKER, f"{up}worker.js")
        path.write_text(text, encoding="utf-8")


def build(site: Path, work: Path) -> None:
    """Write the site into `site`; `work` holds what is needed on the way."""
    if site.exists() and any(site.iterdir()) and not (site / "search.json").exists():
        raise SiteError(f"{site} holds something else than a site and is not written over; name another folder")
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(site, ignore_errors=True)
    pages = stage(work / "docs")
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    parts = ", ".join(f"{{ {json.dumps(title)} = {json.dumps(part)} }}" for title, part in menu(pages).items())
    settings = settings.replace("[project]\n", f"[project]\nnav = [{parts}]\n", 1)
    (work / "zensical.toml").write_text(settings, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
        cwd=work, capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr).partition("Traceback")[0]  # no colours
    if done.returncode or "warning" in told.lower():
        raise SiteError(f"Zensical warns:\n{told}")
    serve_from_a_folder(work / "site")
    if found := problems(work / "site"):
        raise SiteError("\n".join(found))
    shutil.copytree(work / "site", site)


def main(arguments: list[str]) -> int:
    """Build the site into the folder that is named, or into site/."""
    site = Path(arguments[0]) if arguments else ROOT / "site"
    try:
        build(site, site.parent / "build" / site.name)
    except SiteError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    print(f"docs: open {site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
