"""What pages load is here, and nothing comes from elsewhere."""

from __future__ import annotations

import re

from tacit.web.site import STATIC

TEMPLATES = STATIC.parent / "templates"


def test_pages_load_nothing_from_other_hosts_and_have_no_inline_script_or_style() -> None:
    pages = list(TEMPLATES.rglob("*.j2"))
    assert pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"""(?:src|href|action)=["']?(?:https?:)?//""", text), page
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", text), page
        assert not re.search(r"\|\s*safe\b", text), page
        for form in re.findall(r"<form[^>]*method=\"post\".*?</form>", text, flags=re.DOTALL):
            assert "csrf" in form, f"{page}: {form[:80]}"


def test_our_own_files_name_no_other_host() -> None:
    for file in STATIC.glob("*"):
        if file.suffix in (".css", ".js"):
            assert "//" not in re.sub(r"^\s*//.*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE), file


def test_what_others_wrote_comes_with_its_licence() -> None:
    vendor = STATIC / "vendor"
    scripts = sorted(vendor.glob("*.js"))
    assert [each.name for each in scripts] == ["htmx.min.js", "sse.min.js"]
    for script in scripts:
        assert "Permission to use, copy, modify" in (vendor / f"{script.name.split('.')[0]}.LICENSE").read_text()
