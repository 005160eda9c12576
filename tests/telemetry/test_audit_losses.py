"""What the audit trail loses on a real database: little to SIGKILL, nothing to a database that is away for a while."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.store.audit import SqlAudit
from gateway.store.engine import open_database
from gateway.store.faults import StoreUnavailable
from gateway.store.migrate import migrate
from telemetry.audit import AuditRecord, AuditTrail

ROOT = Path(__file__).parents[2]
BARE = AuditRecord("r", "local:alice", "tools/call", "read", "allowed")

#: Records a row about every millisecond and says which and when, on the clock of the machine, until it is killed.
SCRIPT = """
import asyncio, sys, time
from gateway.store.audit import SqlAudit
from gateway.store.engine import open_database
from telemetry.audit import AuditRecord, AuditTrail

async def main():
    trail = AuditTrail(SqlAudit(open_database(sys.argv[1])))
    writer = asyncio.get_running_loop().create_task(trail.run())
    n = 0
    while True:
        trail.record(AuditRecord(str(n), "local:alice", "tools/call", "read", "allowed"))
        print(n, time.monotonic(), flush=True)
        n += 1
        await asyncio.sleep(0.001)

asyncio.run(main())
"""


@pytest.fixture
def url(tmp_path):
    url = f"sqlite:///{tmp_path / 'superpi.db'}"
    migrate(url)
    return url


async def request_ids(url):
    database = open_database(url)
    rows = await SqlAudit(database).page(limit=1_000_000)
    await database.close()
    return [row.record.request_id for row in rows]


async def test_a_process_that_is_killed_loses_at_most_the_rows_of_its_last_second(url, record_property):
    """The rows that are there are the first ones, each once; the first that is missing is under a second old."""
    started = subprocess.Popen(
        [sys.executable, "-P", "-c", SCRIPT, url],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    said = [started.stdout.readline() for _ in range(1500)]
    started.send_signal(signal.SIGKILL)
    said += started.communicate(timeout=30)[0].splitlines()
    assert started.returncode == -signal.SIGKILL
    times = [float(line.split()[1]) for line in said if len(line.split()) == 2]
    kept = await request_ids(url)
    assert kept == [str(n) for n in range(len(kept))]
    lost = times[len(kept) :]
    record_property("rows lost", f"{len(lost)} of {len(times)}")
    assert len(kept) > 0
    assert lost == [] or times[-1] - lost[0] < 1


async def test_nothing_is_lost_while_another_process_keeps_the_database(url, tmp_path):
    """Reads go on, calls that change things are refused when the buffer is full, and all rows come in order."""
    database = open_database(url, patience=0.05)
    trail = AuditTrail(SqlAudit(database), away=StoreUnavailable, capacity=30, interval=0.01)
    writer = asyncio.get_running_loop().create_task(trail.run())
    other = sqlite3.connect(tmp_path / "superpi.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    taken = [trail.record(replace(BARE, request_id=f"r{n}")) for n in range(30)]
    assert not await trail.room(0.3)
    assert (all(taken), trail.is_away, trail.written) == (True, True, 0)
    other.execute("ROLLBACK")
    assert await trail.room(30)
    other.close()
    writer.cancel()
    await asyncio.gather(writer, return_exceptions=True)
    assert await trail.close() == 0
    await database.close()
    assert await request_ids(url) == [f"r{n}" for n in range(30)]
