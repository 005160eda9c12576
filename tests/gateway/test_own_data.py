"""The server's own data stays its own, also where it lies in the workspace; and a removed harness allows nothing."""

import pytest

from tests.support.mcp_http import McpHttp
from tests.support.server import Server, serving
from tests.support.unprivileged import folder, own, unprivileged

WIDE = """---
id: wide
title: W
description: D
tools: [read, write, edit, bash, grep, find, ls]
mode: full
---
x
"""


def refused(client, tool, **arguments):
    """Whether the policy refused the call."""
    return "io.superpi/refusal" in client.call(tool, **arguments).get("_meta", {})


@pytest.mark.parametrize("data", ["data", "so[me] {odd}/data"])
def test_no_tool_reaches_the_database_inside_the_workspace(data):
    """Reading it would show sessions and keys, writing it would end them. The start warns of it."""
    with folder() as workspace, folder() as home:
        settings = {"SUPERPI_DATA_DIR": str(workspace / data)}
        with serving(unprivileged(), workspace, home, **settings) as server, McpHttp(server.url) as client:
            client.initialize()
            before = (workspace / data / "superpi.db").stat().st_ino
            assert refused(client, "read", path=f"{data}/superpi.db")
            assert refused(client, "write", path=f"{data}/superpi.db", content="x")
            assert refused(client, "write", path=f"{data}/new", content="x")
            assert client.call("bash", command=f"head -c 15 '{data}/superpi.db'").get("isError")
            assert client.call("grep", pattern="SQLite")["structuredContent"]["matches"] == []
            assert not refused(client, "write", path="mine.txt", content="x")
            assert (workspace / data / "superpi.db").stat().st_ino == before
            assert "SUPERPI_DATA_DIR lies where tools work" in server.said


@pytest.mark.parametrize("data", ["data", "so[me] {odd}/data"])
def test_no_tool_reaches_the_database_inside_an_extra_root(data):
    """Nor there, in the mode that reaches it."""
    with folder() as workspace, folder() as home, folder() as extra:
        place = extra / data
        settings = {"SUPERPI_DATA_DIR": str(place), "SUPERPI_REMOTE_MODE": "full"}
        settings |= {"SUPERPI_WORKSPACE": f"{workspace}:{extra}", "SUPERPI_HARNESS_DIR": str(home / "harnesses")}
        (home / "harnesses").mkdir()
        (home / "harnesses" / "wide.md").write_text(WIDE)
        own(home)
        with serving(unprivileged(), workspace, home, **settings) as server, McpHttp(server.url) as client:
            client.url += "?harness=wide"
            client.initialize()
            before = (place / "superpi.db").stat().st_ino
            assert refused(client, "read", path=f"{place}/superpi.db")
            assert refused(client, "write", path=f"{place}/superpi.db", content="x")
            assert refused(client, "write", path=f"{place}/new", content="x")
            assert client.call("bash", command=f"head -c 15 '{place}/superpi.db'").get("isError")
            assert client.call("grep", pattern="SQLite", path=str(extra))["structuredContent"]["matches"] == []
            assert not refused(client, "write", path=f"{extra}/mine.txt", content="x")
            assert (place / "superpi.db").stat().st_ino == before


def test_a_session_whose_harness_was_removed_may_do_nothing():
    """The default harness could allow what the removed one denied."""
    with folder() as workspace, folder() as home, folder() as harnesses:
        (workspace / "k").write_text("canary")
        own(workspace)
        ours = harnesses / "ours.md"
        ours.write_text("---\nid: ours\ntitle: O\ndescription: D\ntools: [read]\nmode: read_only\n---\nx\n")
        own(harnesses)
        server = Server(unprivileged(), workspace, home, {"SUPERPI_HARNESS_DIR": str(harnesses)})
        server.start()
        try:
            with McpHttp(server.url) as client:
                client.url += "?harness=ours"
                client.initialize()
                assert client.text("read", path="k") == "canary"
                server.stop()
                ours.unlink()
                server.restart()
                assert refused(client, "read", path="k")
                assert refused(client, "bash", command="cat k")
        finally:
            server.stop()
