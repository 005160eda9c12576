"""What the audit trail loses on a real database: little to SIGKILL, nothing to a database that is away for a while."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from gateway.store.audit import SqlAudit
from gateway.store.engine import open_database
from gateway.store.faults import StoreUnavailable
from telemetry.audit import AuditRecord, AuditTrail
from tests.support.relay import relaying

ROOT = Path(__file__).parents[3]
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


async def outlast(database, begin, end):
    """Fill a trail while the database is away, from `begin` to `end`, and see it recover by itself."""
    trail = AuditTrail(SqlAudit(database), away=StoreUnavailable, capacity=30, interval=0.01)
    writer = asyncio.get_running_loop().create_task(trail.run())
    begin()
    taken = [trail.record(replace(BARE, request_id=f"r{n}")) for n in range(30)]
    assert not await trail.room(0.3)
    assert not trail.record(BARE)
    assert (all(taken), trail.written, trail.dropped) == (True, 0, 1)
    end()
    assert await trail.room(30)
    writer.cancel()
    await asyncio.gather(writer, return_exceptions=True)
    assert await trail.close(30) == 0
    await database.close()


async def test_nothing_that_was_taken_is_lost_while_another_process_keeps_sqlite_locked(sqlite_url, tmp_path):
    """Calls that change things are refused while the buffer is full, and all rows come in their order."""
    other = sqlite3.connect(tmp_path / "superpi.db", isolation_level=None)
    database = open_database(sqlite_url, patience=0.05)
    await outlast(database, lambda: other.execute("BEGIN IMMEDIATE"), lambda: other.execute("ROLLBACK"))
    other.close()
    assert await request_ids(sqlite_url) == [f"r{n}" for n in range(30)]


async def test_nothing_that_was_taken_is_lost_while_postgresql_does_not_answer(postgresql_url, postgres):
    """The same when the network carries nothing, and nothing comes twice."""
    async with relaying(postgres.port) as relay:
        database = open_database(postgresql_url.replace(f":{postgres.port}/", f":{relay.port}/"), seconds=0.5)
        assert await SqlAudit(database).page() == ()
        await outlast(database, relay.freeze, relay.thaw)
    assert await request_ids(postgresql_url) == [f"r{n}" for n in range(30)]
