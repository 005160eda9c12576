"""Grants that tests put in, and what a store answers of them as words."""

from datetime import UTC, datetime, timedelta

from mcp.grants import Grant, OfHarness

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ALICE, BOB = "local:alice", "local:bob"
CODE = "super-pi-code"


def of_harness(id=CODE, minutes=60):
    return OfHarness(id, NOON + minutes * MINUTE)


def grant(id="g", principal=ALICE, reach=None, minute=0, tool="bash", subject="make test", rule="r", token=None):
    return Grant(id, principal, reach or of_harness(), tool, subject, rule, NOON + minute * MINUTE, token)


async def ids(grants, principal=ALICE):
    """Of all the principal's grants, newest first, as one word."""
    return " ".join([item.id for item in (await grants.list(principal)).items])


async def covering(grants, session=None, harness=CODE, principal=ALICE, minute=0):
    found = await grants.covering(principal, session, harness, NOON + minute * MINUTE)
    return " ".join(item.id for item in found)
