"""The interface for scripts."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tacit.web.coordinator.api import description
from tests.web.conftest import STUDY, Client, Desk, make_desk
from tests.web.test_catalogue import publish

LABELS = sorted(result.ok().label for result in schemathesis.openapi.from_dict(description()).get_all_operations())


def script(desk: Desk, name: str, role: str) -> tuple[Client, dict[str, str]]:
    """A script with a token of a new account."""
    desk.site.accounts.add(name, role)
    token = desk.site.tokens.make(desk.site.accounts.get(name), role=role, label="test", days=1)
    return Client(desk.app), {"authorization": f"Bearer {token}"}


def test_a_script_writes_a_draft_and_reads_it_back(desk: Desk) -> None:
    client, token = script(desk, "ada", "researcher")
    made = client.post("/api/v1/studies", json={"text": STUDY}, headers=token)
    assert made.status_code == 201
    study = made.json()["study"]
    assert client.get(f"/api/v1/studies/{study}/text", headers=token).text == STUDY
    listed = client.get("/api/v1/studies", headers=token).json()
    assert [each["study"] for each in listed["studies"]] == [study]
    assert client.get("/api/v1/account", headers=token).json() == {"name": "ada", "role": "researcher"}
    assert desk.studies.get(study).author == "ada"
    assert "wrote a draft by a script" in [line.what for line in desk.site.audit.lines()]


def test_permissions_are_those_of_the_pages(public_desk: Desk) -> None:
    draft = public_desk.studies.create("ada", STUDY)
    seen = publish(public_desk)
    client, token = script(public_desk, "eve", "viewer")
    for headers in ({}, token):
        assert client.get(f"/api/v1/studies/{draft.study}", headers=headers).status_code == 404
        assert client.get(f"/api/v1/studies/{seen.study}", headers=headers).status_code == 200
        assert client.get("/api/v1/studies", headers=headers).json()["total"] == 1
    assert client.post("/api/v1/studies", json={"text": STUDY}).status_code == 401
    assert client.post("/api/v1/studies", json={"text": STUDY}, headers=token).status_code == 403
    _, writer = script(public_desk, "bob", "researcher")
    wish = {"text": STUDY, "builds_on": draft.study}
    assert client.post("/api/v1/studies", json=wish, headers=writer).status_code == 400


def test_a_site_for_members_tells_scripts_nothing_without_a_token(desk: Desk) -> None:
    study = publish(desk)
    for headers in (
        {},
        {"authorization": "Bearer x"},
        {"authorization": "Basic eDp5"},
        {"authorization": "Bearer tacit_a_b"},
    ):
        answer = Client(desk.app).get(f"/api/v1/studies/{study.study}", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert set(answer.json()["error"]) == {"status", "title", "message"}


def test_cookies_do_not_count_there(desk: Desk) -> None:
    """So no other site can speak for a visitor, and no form token is needed."""
    ada = desk.member("ada", "administrator")
    assert ada.client.post("/api/v1/studies", json={"text": STUDY}).status_code == 401
    assert desk.studies.all() == []


def test_results_are_files_and_nothing_else(desk: Desk) -> None:
    study = publish(desk, state="finished")
    desk.studies.attach(study, "model.json", b'{"a": 1}')
    desk.studies.attach(study, "report.html", b"<script>alert(1)</script>")
    desk.studies.attach(study, "approval", b"for the coordinator")
    client, token = script(desk, "eve", "viewer")
    path = f"/api/v1/studies/{study.study}"
    assert client.get(path, headers=token).json()["results"] == ["model.json", "report.html"]
    assert client.get(f"{path}/results/model.json", headers=token).json() == {"a": 1}
    page = client.get(f"{path}/results/report.html", headers=token)
    assert page.headers["content-type"] == "application/octet-stream"
    assert page.headers["content-disposition"].startswith("attachment")
    for name in ("approval", "nothing.json", "..%2Fmodel.json"):
        assert client.get(f"{path}/results/{name}", headers=token).status_code == 404


def test_a_script_revokes_its_own_token_and_makes_none(desk: Desk) -> None:
    client, token = script(desk, "ada", "researcher")
    (listed,) = client.get("/api/v1/tokens", headers=token).json()
    assert client.post("/api/v1/tokens", json={}, headers=token).status_code == 405
    _, other = script(desk, "eve", "viewer")
    assert client.request("DELETE", f"/api/v1/tokens/{listed['id']}", headers=other).status_code == 404
    assert client.request("DELETE", f"/api/v1/tokens/{listed['id']}", headers=token).status_code == 204
    assert client.get("/api/v1/tokens", headers=token).status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"not json", 422),
        (b"{}", 422),
        (b'{"text": 5}', 422),
        (b'{"text": "", "more": 1}', 422),
        (b'{"text": "\\ud800"}', 422),
        (b'{"text": "' + b"x" * 500_000 + b'"}', 422),
        (b'{"text": "' + b"x" * (1 << 20) + b'"}', 413),
        (b"[" * 100_000, 400),
        (b'{"text": "a = [' + b"[" * 5000 + b'"}', 201),
        (b'{"text": "\\u0000"}', 201),
    ],
)
def test_bad_bodies_get_one_form_of_error(desk: Desk, body: bytes, status: int) -> None:
    client, token = script(desk, "ada", "researcher")
    headers = {**token, "content-type": "application/json"}
    answer = client.post("/api/v1/studies", content=body, headers=headers)
    assert answer.status_code == status
    if status >= 400:
        assert answer.json()["error"]["status"] == status


@pytest.mark.parametrize("label", LABELS)
def test_no_request_that_the_description_allows_or_forbids_fails(label: str) -> None:
    """Whatever comes gets an answer that the description foretells, and never one of the class 500."""
    desk = make_desk(is_public=True, hosts=("testserver", "localhost"))
    publish(desk)
    _, token = script(desk, "ada", "researcher")
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", desk.app)
    (operation,) = [result.ok() for result in schema.get_all_operations() if result.ok().label == label]
    modes = st.sampled_from(GenerationMode).flatmap(lambda mode: operation.as_strategy(generation_mode=mode))

    @settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=modes)
    def anything(case: schemathesis.Case) -> None:
        answer = case.call(headers=token)
        case.validate_response(
            answer,
            checks=[not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance],
        )

    anything()
