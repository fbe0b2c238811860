"""Whatever a form can carry, no page fails: it is taken, or refused in words."""

from __future__ import annotations

import re

import pytest
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.web.coordinator.application import ROUTERS
from tests.web.conftest import PASSWORD, STUDY, Desk, Visitor
from tests.web.test_catalogue import publish

ROUTES = sorted(
    (method, route.path)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and not route.path.startswith("/api/") and "event" not in route.path
    for method in route.methods
)
ODD = (
    *("", "0", "-1", "1e999", "nan", "9" * 400, "<script>alert(1)</script>", "\x00", "\x1b[2K", "\u202e", "'; --"),
    *("../..", "{{ 7 * 7 }}", "%00", "a" * 5000, STUDY, "[study]\nname = "),
)
TEXT = st.sampled_from(ODD) | st.text(max_size=40)
NAMES = (
    *("name", "role", "email", "password", "new_password", "again_password", "next", "label", "days", "nonce"),
    *("text", "builds_on", "revision", "version", "state", "search", "page", "why", "file", "epsilon"),
)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_no_page_fails_whatever_comes(desk: Desk, method: str, path: str) -> None:
    root = desk.member("root", "administrator")
    known = publish(desk).study

    @settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def anything(data: st.DataObject) -> None:
        known_parts = [known, "root", "1", "\x00", "..", "%2e%2e", "é", "x" * 300]
        part = st.sampled_from(known_parts) | st.text(min_size=1, max_size=9)
        where = re.sub(r"\{[^}]*\}", lambda _: _quoted(data.draw(part)), path)
        form = data.draw(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), TEXT, max_size=6))
        if root.get("/tokens").status_code != 200:  # it logged itself out, or took its own password
            desk.site.accounts.set_password("root", PASSWORD)
            assert root.log_in("root").status_code == 303
        answer = _send(root, method, where, form, root.token("/tokens"), is_upload=data.draw(st.booleans()))
        assert answer.status_code < 500, (where, form)
        assert "<script>alert" not in answer.text
        assert "\x1b" not in answer.text or "attachment" in answer.headers.get("content-disposition", "")

    anything()


def _send(visitor: Visitor, method: str, where: str, form: dict[str, str], token: str, *, is_upload: bool):
    if method == "GET":
        return visitor.client.request(method, where, params=form)
    if is_upload:
        files = {name or "x": (text[:20] or "f", text.encode("utf-8", "replace")) for name, text in form.items()}
        return visitor.client.request(method, where, files=files, headers={"x-csrf-token": token})
    return visitor.client.request(method, where, data=form, headers={"x-csrf-token": token})


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="") if text not in (".", "..") else "%2e%2e"
