"""A tool call that found the store away before its tool had begun: what is known is said, and put on record."""

import pytest
from sqlalchemy import text

from auth.caller import Caller, Transport
from auth.ports import StoreAway
from gateway.bootstrap import build
from gateway.settings import load
from mcp.calls import Connection
from mcp.exchange import Silent
from mcp.protocol.content import Text, ToolResult
from mcp.protocol.effects import CallTool
from mcp.protocol.state import State
from tests.support.asking import harness_settings

WRITE = CallTool(0, 1, "write", {"path": "f", "content": "x"})


class Unreachable(Silent):
    """A client that can be asked only with the help of the store."""

    def can_ask(self, question):
        return True

    async def ask(self, questions, *, volunteered):
        raise StoreAway("away")


@pytest.fixture
async def services(tmp_path):
    for name in ("workspace", "harnesses"):
        (tmp_path / name).mkdir()
    harness_settings(tmp_path / "harnesses")
    services = await build(
        load(
            workspace=(tmp_path / "workspace",),
            data_dir=tmp_path / "data",
            harness_dir=tmp_path / "harnesses",
            harness="careful",
            sandbox="off",
        )
    )
    await services.opening.once()
    yield services
    await services.close()


async def test_a_call_whose_question_could_not_be_asked_has_changed_nothing_and_says_so(services, tmp_path):
    """A model that was told to look what had been done would look for nothing."""
    connection = Connection(Caller(transport=Transport.HTTP), State())
    value = await services.offering.current.performer.perform(WRITE, connection, Unreachable())
    said = "The server's database is away, so write was not run. Nothing was changed: try again later."
    assert value == ToolResult((Text(said),), is_error=True)
    assert list((tmp_path / "workspace").iterdir()) == []
    await services.lifecycle.trail.close()
    rows = await services.database.read(lambda c: c.execute(text("SELECT action, object, decision FROM audit")).all())
    assert [tuple(row) for row in rows] == [("tools/call", "write", "failed")]
