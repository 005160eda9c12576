"""The routes of the administrative interface as they are declared: closed by default, labelled, described in full."""

import re
from pathlib import Path

import httpx
import jsonschema_rs
import pytest
from fastapi.routing import iter_route_contexts

from auth.authenticator import Anonymous
from auth.caller import Caller
from auth.scopes import Scope
from auth.tokens import Kind
from gateway import issuing
from gateway.app import create_app
from gateway.bootstrap import build
from gateway.issuing import Wanted
from gateway.routes import (
    ADMIN,
    MCP,
    OTHER,
    PROBES,
    RESOURCE_METADATA,
    RESOURCE_METADATA_ROOT,
    ROUTES,
    TOKENS,
    is_admin,
    label,
)
from gateway.settings import load
from mcp.protocol.errors import HttpRefusal
from mcp.recording import Circumstances
from mcp.router import CALLER_KEY, REQUEST_ID_KEY, SPAN_KEY
from telemetry.tracing import Tracing

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
CLI = Circumstances("cli", None, "test", None, None)


@pytest.fixture
async def services(tmp_path, monkeypatch):
    (tmp_path / "workspace").mkdir()
    monkeypatch.setenv("SUPERPI_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SUPERPI_WORKSPACE", str(tmp_path / "workspace"))
    # With an issuer, whom nobody asks here, all routes are there.
    issuer = {"oidc_issuer": "http://127.0.0.1:9", "public_url": "http://localhost"}
    built = await build(load(anonymous=Anonymous.ALWAYS, **issuer))
    await built.opening.once()
    yield built
    await built.close()


@pytest.fixture
async def app(services):
    return create_app(services)


@pytest.fixture
async def http(app):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        yield client


@pytest.fixture
async def admin(services):
    return await made(services, Kind.ADM, Scope.ADMIN)


async def made(services, kind, *scopes):
    """The headers that show a new token."""
    wanted = Wanted(kind, "local:somebody", frozenset(scopes), "", None)
    new = issuing.issued(wanted, by="cli", now=issuing.utc_now())
    assert await issuing.keep(services.tokens, new, CLI) is None
    return {"authorization": f"Bearer {new.minted.secret}"}


def served(app):
    """Every route: its template and its methods."""
    return [(route.path, route.methods or METHODS) for route in iter_route_contexts(app.routes)]


def filled(template):
    return template.replace("{id}", "anything")


async def test_only_the_endpoint_and_the_probes_are_open_to_who_has_no_admin_scope(app, services, http):
    """Routes deny by default: one that is added is closed, or it is named here."""
    callers = [{}, await made(services, Kind.PAT, Scope.READ, Scope.WRITE, Scope.FULL)]
    opened = set()
    for template, methods in served(app):
        for caller in callers:
            for method in methods:
                answer = await http.request(method, filled(template), headers=caller)
                if answer.status_code != 403:
                    opened.add(template)
                else:
                    assert answer.headers["content-type"] == "application/problem+json"
    assert opened == {MCP, *PROBES, RESOURCE_METADATA, RESOURCE_METADATA_ROOT}


async def test_below_admin_the_scope_comes_before_everything_else(app, services, http):
    """Paths that there are, methods that they take, bodies: nothing is told to who may not administer."""
    member = await made(services, Kind.PAT, Scope.FULL)
    paths = [filled(template) for template, _ in served(app) if is_admin(template)]
    for path in (*paths, "/admin/", "/admin/v1", "/admin/v1/nope", "/admin/v2/tokens", "/admin/docs"):
        for method in METHODS:
            for body in ({}, {"content": b"x" * 100_000}, {"content": b"{", "headers": {"content-encoding": "gzip"}}):
                headers = member | body.get("headers", {})
                answer = await http.request(method, path, **(body | {"headers": headers}))
                assert (method, path, answer.status_code) == (method, path, 403)


async def test_a_route_decides_by_itself_whatever_stood_before_it(app):
    """Without the edge, with a caller that came from somewhere else."""
    app.user_middleware.clear()
    stack = app.build_middleware_stack()
    around = {CALLER_KEY: Caller("local:nobody"), REQUEST_ID_KEY: "", SPAN_KEY: Tracing(None).start("x"), "app": app}

    async def bare(scope, receive, send):
        await stack(scope | around, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(bare), base_url="http://localhost") as client:
        for template, methods in served(app):
            for method in methods if is_admin(template) else ():
                assert (await client.request(method, filled(template))).status_code == 403


async def test_every_route_has_its_template_for_a_label_and_no_path_becomes_one(app):
    for template, _ in served(app):
        assert template in ROUTES
        assert label(filled(template)) == template
    assert set(ROUTES) == {template for template, _ in served(app)}
    for path in ("/admin/v1/tokens/a/b", "/admin/v1/tokens/", "/admin/v1/tokens/a/revoke/", "/admin", "", "/mcp/"):
        assert label(path) == OTHER


async def test_metrics_name_templates(http, admin):
    await http.get("/admin/v1/tokens/canary1", headers=admin)
    await http.post("/admin/v1/tokens/canary2/revoke", headers=admin)
    await http.get("/admin/v1/canary3", headers=admin)
    text = (await http.get("/metrics")).text
    assert 'route="/admin/v1/tokens/{id}",status="4xx"' in text
    assert 'route="/admin/v1/tokens/{id}/revoke",status="4xx"' in text
    assert "canary" not in text


async def document(http, admin):
    answer = await http.get(f"{ADMIN}/openapi.json", headers=admin)
    assert answer.status_code == 200
    return answer.json()


def operations(doc):
    return {
        (method, path): operation
        for path, methods in doc["paths"].items()
        for method, operation in methods.items()
        if is_admin(path)
    }


async def test_the_document_is_there_and_nowhere_else(http, admin):
    doc = await document(http, admin)
    assert (doc["openapi"][:2], doc["info"]["title"]) == ("3.", "Super-Pi")
    assert set(operations(doc)) == {
        ("get", "/admin/v1/tokens"),
        ("post", "/admin/v1/tokens"),
        ("get", "/admin/v1/tokens/{id}"),
        ("post", "/admin/v1/tokens/{id}/revoke"),
        ("post", "/admin/v1/tokens/{id}/rotate"),
        ("get", "/admin/v1/principals"),
        ("post", "/admin/v1/principals"),
        ("get", "/admin/v1/principals/{key}"),
        ("post", "/admin/v1/principals/{key}/disable"),
        ("post", "/admin/v1/principals/{key}/enable"),
        ("get", "/admin/v1/principals/{key}/permissions"),
        ("get", "/admin/v1/sessions"),
        ("get", "/admin/v1/sessions/{label}"),
        ("delete", "/admin/v1/sessions/{label}"),
        ("get", "/admin/v1/audit"),
        ("get", "/admin/v1/audit/export"),
        ("get", "/admin/v1/harnesses"),
        ("get", "/admin/v1/harnesses/{id}"),
        ("get", "/admin/v1/grants"),
        ("delete", "/admin/v1/grants/{id}"),
    }
    for path in ("/openapi.json", "/docs", "/redoc", "/admin/openapi.json", "/admin/v1/docs"):
        assert (await http.get(path, headers=admin)).status_code == 404


async def test_every_field_and_parameter_is_described(http, admin):
    doc = await document(http, admin)
    bare = [
        f"{name}.{field}"
        for name, schema in doc["components"]["schemas"].items()
        for field, about in schema.get("properties", {}).items()
        if not about.get("description")
    ]
    bare += [name for name, schema in doc["components"]["schemas"].items() if not schema.get("description")]
    bare += [
        f"{operation['operationId']}({parameter['name']})"
        for operation in operations(doc).values()
        for parameter in operation.get("parameters", [])
        if not parameter.get("description")
    ]
    assert bare == []


async def test_every_answer_is_declared_with_its_codes_and_needs_the_token(http, admin):
    """What may happen to any request, and more for those with a body."""
    for (method, path), operation in operations(await document(http, admin)).items():
        assert operation["security"] == [{"token": []}]
        assert operation["summary"]
        assert operation["description"]
        statuses = {int(status) for status in operation["responses"]}
        assert statuses >= {400, 401, 403, 404, 421, 422, 500, 503}, path
        if "requestBody" in operation:
            assert statuses >= {201, 408, 413, 415, 429}, (method, path)
        for status, answer in operation["responses"].items():
            assert answer["description"]
            if int(status) >= 400:
                assert answer["content"] == {
                    "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                }
        assert operation["responses"]["401"]["headers"].keys() == {"WWW-Authenticate"}
        assert operation["responses"]["503"]["headers"].keys() == {"Retry-After"}


async def test_every_reference_of_the_document_leads_somewhere(http, admin):
    doc = await document(http, admin)

    def references(value):
        if isinstance(value, dict):
            yield from (value["$ref"],) if isinstance(value.get("$ref"), str) else ()
            for part in value.values():
                yield from references(part)
        elif isinstance(value, list):
            for part in value:
                yield from references(part)

    for reference in set(references(doc)):
        target = doc
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]


async def test_the_documentation_has_a_row_for_every_route_and_every_status(app, http, admin):
    page = (Path(__file__).resolve().parents[2] / "docs" / "admin.md").read_text("utf-8")
    named = re.findall(r"^\| `([A-Z]+) (/admin\S+)` \|", page, re.MULTILINE)
    routes = {(method, path) for path, methods in served(app) if is_admin(path) for method in methods}
    assert sorted(named) == sorted(routes)
    rows = re.findall(r"^\| (\d{3}(?:, \d{3})*) \|", page, re.MULTILINE)
    statuses = {status for row in rows for status in row.split(", ")}
    declared = {
        status for operation in operations(await document(http, admin)).values() for status in operation["responses"]
    }
    assert statuses - {"405"} == {status for status in declared if "400" <= status != "500"}


async def test_a_database_that_is_away_is_503_and_comes_back(services, http, admin):
    """With the same words as on `/mcp`; nothing was changed, so it may be asked again."""
    assert (await http.get(TOKENS, headers=admin)).status_code == 200
    services.database.shut()
    for method in ("GET", "POST"):
        answer = await http.request(method, TOKENS, headers=admin, json={"principal": "local:alice"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert (answer.headers["content-type"], answer.json()["code"]) == ("application/problem+json", "unavailable")
        assert answer.json()["detail"] == HttpRefusal.UNAVAILABLE.message
    services.database.admit()
    assert (await http.post(TOKENS, headers=admin, json={"principal": "local:alice"})).status_code == 201


async def test_answers_are_what_the_document_says(http, admin):
    """Each field and nothing else, with the types it declares."""
    doc = await document(http, admin)
    created = (await http.post(TOKENS, headers=admin, json={"principal": "local:alice"})).json()
    path = f"{TOKENS}/{created['id']}"
    answers = {
        "CreatedToken": created,
        "TokenPage": (await http.get(TOKENS, headers=admin)).json(),
        "Token": (await http.post(f"{path}/revoke", headers=admin)).json(),
        "Problem": (await http.post(TOKENS, headers=admin, json={"x": 1})).json(),
    }
    for name, answer in answers.items():
        schema = doc | {"$ref": f"#/components/schemas/{name}"}
        jsonschema_rs.validator_for(schema).validate(answer)
        assert answer.keys() <= doc["components"]["schemas"][name]["properties"].keys()
