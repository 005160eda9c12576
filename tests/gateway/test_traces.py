"""Which trace a request belongs to, on a real server with a collector: its own metadata counts more than the header."""

import asyncio
import json
import subprocess

import httpx
import pytest

from gateway.store.audit import SqlAudit
from gateway.store.engine import open_database
from tests.support.collector import attributes, collector, spans
from tests.support.eras import VERSION, meta
from tests.support.raw_http import BOTH, INITIALIZE
from tests.support.server import serving
from tests.support.unprivileged import folder, unprivileged

HEADER, BODY, NEXT = "1" * 32, "2" * 32, "3" * 32
SPAN = "b7ad6b7169203331"
#: The kind of a request's span, as OTLP numbers them.
SERVER = 2


def traceparent(trace, flags="01"):
    return f"00-{trace}-{SPAN}-{flags}"


def ls(id, metadata=None):
    """A call, which has a row in the audit log beside its span."""
    params = {"name": "ls", "arguments": {}} | ({} if metadata is None else {"_meta": metadata})
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def audit(home):
    """The traces of the calls by their request, read beside the server."""

    async def read():
        database = open_database(f"sqlite:///{home / 'data' / 'superpi.db'}", readers=1, writers=1)
        try:
            return [row.plain() for row in await SqlAudit(database).page(principal=None, limit=100)]
        finally:
            await database.close()

    return asyncio.run(read())


#: What is sent (`_meta` of a call, or of several in a batch), under which header, and the trace that it belongs to;
#: None for one that the server begins itself.
CASES = {
    "neither": ([{}], None, None),
    "header-alone": ([{}], HEADER, HEADER),
    "metadata-alone": ([{"traceparent": traceparent(BODY), "tracestate": "a=b", "baggage": "c=d"}], None, BODY),
    "both": ([{"traceparent": traceparent(BODY)}], HEADER, BODY),
    "no-metadata": ([None], HEADER, HEADER),
    "malformed": ([{"traceparent": "rubbish", "tracestate": "=", "baggage": ";;"}], HEADER, HEADER),
    "malformed-alone": ([{"traceparent": f"00-{'0' * 32}-{SPAN}-01"}], None, None),
    "no-text": ([{"traceparent": {"a": [1]}, "tracestate": 5, "baggage": None}], HEADER, HEADER),
    "batch": ([{"traceparent": traceparent(BODY)}, {"traceparent": traceparent(NEXT)}], HEADER, HEADER),
    "batch-without": ([{"traceparent": traceparent(BODY)}], None, None),
}
ALONE = [name for name in CASES if not name.startswith("batch")]


@pytest.fixture(scope="module")
def told():
    """What the collector and the audit log were told of each request, and its answer, by the request's id."""
    answers = {}
    with collector() as found, folder() as workspace, folder() as home, httpx.Client(trust_env=False) as http:
        settings = {"SUPERPI_OTLP_ENDPOINT": found.url, "NO_PROXY": "*"}
        with serving(unprivileged(), workspace, home, **settings) as server:

            def post(body, id, trace=None, **headers):
                headers |= {"accept": BOTH, "x-request-id": id}
                headers |= {} if trace is None else {"traceparent": traceparent(trace)}
                answers[id] = http.post(server.url, json=body, headers=headers)
                return answers[id]

            params = INITIALIZE["params"] | {"protocolVersion": "2025-03-26"}
            session = post(INITIALIZE | {"params": params}, "begin").headers["mcp-session-id"]
            for name, (metadata, trace, _) in CASES.items():
                calls = [ls(n, one) for n, one in enumerate(metadata)]
                body = calls if name.startswith("batch") else calls[0]
                post(body, f"handshake.{name}", trace, **{"mcp-session-id": session})
            modern = {"mcp-protocol-version": VERSION, "mcp-method": "tools/call", "mcp-name": "ls"}
            for name in ALONE:
                metadata, trace, _ = CASES[name]
                post(ls(1, meta() | (metadata[0] or {})), f"stateless.{name}", trace, **modern)
            unsampled = {"traceparent": traceparent(BODY, "00")}
            post(ls(1, unsampled), "unsampled", HEADER, **{"mcp-session-id": session})
            post(ls(1, {"traceparent": traceparent(BODY)}), "lost", HEADER, **{"mcp-session-id": "x" * 43})
            note = {"jsonrpc": "2.0", "method": "no/such", "params": {"_meta": {"traceparent": traceparent(BODY)}}}
            post(note, "note", HEADER, **{"mcp-session-id": session})
        rows = audit(home)
    by_id = {attributes(span)["superpi.request_id"]: span for span, _ in spans(found) if span.kind == SERVER}
    return answers, by_id, {row["request_id"]: row["trace_id"] for row in rows}


@pytest.mark.requirement("CT-5")
@pytest.mark.parametrize("id", [*(f"handshake.{name}" for name in CASES), *(f"stateless.{name}" for name in ALONE)])
def test_a_call_belongs_to_the_trace_that_it_names(told, id):
    """In every revision; over a batch the header counts. The audit log has the same trace."""
    answers, by_id, audited = told
    assert answers[id].status_code == 200, answers[id].text
    span, trace = by_id[id], CASES[id.partition(".")[2]][2]
    assert (span.trace_id.hex() == audited[id], len(audited[id])) == (True, 32)
    if trace is None:
        assert (span.parent_span_id, audited[id] in {HEADER, BODY, NEXT}) == (b"", False)
    else:
        assert (span.parent_span_id.hex(), audited[id]) == (SPAN, trace)
    assert attributes(span)["http.route"] == "/mcp"


@pytest.mark.requirement("CT-5")
def test_whoever_names_the_trace_decides_whether_it_is_sampled(told):
    answers, by_id, audited = told
    assert (answers["unsampled"].status_code, "unsampled" in by_id, audited["unsampled"]) == (200, False, BODY)


@pytest.mark.parametrize(("id", "status"), [("lost", 404), ("note", 202)])
def test_what_is_refused_or_owed_nothing_belongs_there_too(told, id, status):
    answers, by_id, _ = told
    assert (answers[id].status_code, by_id[id].trace_id.hex()) == (status, BODY)


@pytest.mark.requirement("CT-5")
def test_over_stdio_the_audit_log_has_the_trace():
    """There are no spans over stdio, and no headers."""
    named = [{"traceparent": traceparent(BODY)}, {}, None, {"traceparent": "rubbish"}, {"traceparent": 5}]
    lines = [INITIALIZE, *(ls(n, one) for n, one in enumerate(named, 1))]
    lines += [ls(9, meta() | {"traceparent": traceparent(NEXT)})]
    with folder() as workspace, folder() as home:
        settings = {"SUPERPI_WORKSPACE": str(workspace), "SUPERPI_DATA_DIR": str(home / "data"), "HOME": str(home)}
        ran = subprocess.run(
            unprivileged().superpi("stdio"),
            cwd=workspace,
            env={**unprivileged().env, **settings},
            input="".join(json.dumps(line) + "\n" for line in lines).encode(),
            capture_output=True,
            timeout=60,
        )
        replies = [json.loads(line) for line in ran.stdout.splitlines()]
        assert sorted(reply["id"] for reply in replies if "result" in reply) == [0, 1, 2, 3, 4, 5, 9], ran.stderr
        assert sorted(row["trace_id"] or "" for row in audit(home)) == ["", "", "", "", BODY, NEXT]
