"""Two people on one server, on both databases: whatever they ask with, neither sees anything of the other.

Each has sessions, conversations and cursors, and asks with their own, with the other's and with some that never were.
What is another's must be answered as what never was. The files of the workspace are shared by intention, and carry no
mark. `tests/gateway/store/test_isolation.py` does the same on the stores alone; together they are the 10,000
operations of the promise.
"""

import asyncio
import json
import secrets
import string
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from sqlalchemy import insert

from auth.scopes import Scope
from auth.tokens import ISSUE_BYTES, Kind, issue
from gateway.store.audit import SqlAudit
from gateway.store.changes import record
from gateway.store.conversations import SqlConversations
from gateway.store.engine import Database, open_database
from gateway.store.tables import conversation as table
from gateway.store.tokens import SqlTokens
from mcp.conversations import Conversation
from mcp.resources import CONTEXT_URI, LOADOUT_URI, TRANSCRIPT_TEMPLATE, transcript_uri
from tests.support.doors import DATABASES
from tests.support.postgres import running
from tests.support.raw_http import BOTH, INITIALIZE, PING
from tests.support.server import Server, serving
from tests.support.two_principals import Person, Run, without
from tests.support.unprivileged import folder, unprivileged

OPERATIONS = 1500
#: More than a page of resources, so that there are cursors.
MANY = 130
#: Differ from answer to answer, or say how long an id is.
_UNLIKE = {"date", "x-request-id", "content-length"}
_EXPECTED = {200, 202, 400, 404, 405}


@dataclass
class World:
    """A server, its database beside it, and what two people do there. Each operation asks as `me`."""

    run: Run
    server: Server
    database: Database
    loop: asyncio.Runner
    threads: ThreadPoolExecutor
    stack: ExitStack
    connections: threading.local = field(default_factory=threading.local)
    secret: dict[str, str] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)

    def arrive(self, person: Person):
        """Give a token, and a first session with more conversations than fit on a page."""
        now = datetime.now(UTC)
        issued = issue(
            Kind.PAT,
            person.principal,
            frozenset({Scope.WRITE}),
            name=person.mark,
            by="cli",
            now=now,
            entropy=secrets.token_bytes(ISSUE_BYTES),
        )
        tokens = SqlTokens(self.database, record)
        made = tokens.create(issued.record, issued.minted.sha256, make_principal=True)
        assert self.loop.run(made) is None
        self.secret[person.principal] = issued.minted.secret
        person.ids |= {issued.record.id, issued.minted.secret}
        self.begin(person)

    def begin(self, person: Person):
        """A session to list in; those of an earlier one can be listed no more."""
        status, headers, _ = self.send(person, INITIALIZE)
        assert status == 200
        person.made["main"] = [headers["mcp-session-id"]]
        person.made["session"] = [*person.all("session"), *person.made["main"]]
        person.ids.add(headers["mcp-session-id"])
        now = datetime.now(UTC)
        ids = [person.keep("conversation", self.run.name(person, "c")) for _ in range(MANY)]
        row = {"principal": person.principal, "harness": "super-pi-code", "title": person.mark, "entries": 0}
        row |= {"session": headers["mcp-session-id"], "created_at": now, "updated_at": now}
        rows = [row | {"id": id} for id in ids]
        self.loop.run(self.database.write(lambda connection: connection.execute(insert(table), rows).rowcount))

    def send(self, me, message=None, session=None, *, method="POST", query=""):
        """What is answered: status, headers that can be compared, and the body. One connection a thread."""
        url = urlsplit(self.server.url)
        headers = {"accept": BOTH, "authorization": f"Bearer {self.secret[me.principal]}"}
        headers |= {} if session is None else {"mcp-session-id": session}
        headers |= {} if message is None else {"content-type": "application/json"}
        if not hasattr(self.connections, "own"):
            self.connections.own = HTTPConnection(url.hostname, url.port, timeout=30)
            self.stack.callback(self.connections.own.close)
        self.connections.own.request(method, url.path + query, message and json.dumps(message).encode(), headers)
        answer = self.connections.own.getresponse()
        text = answer.read().decode()
        assert answer.status in _EXPECTED, text
        kept = {name.lower(): value for name, value in answer.getheaders() if name.lower() not in _UNLIKE}
        return answer.status, kept, text

    def ask(self, me, other, question, *kinds, nobodys=None):
        """Ask with an id of mine, or with one of the other's, which must be answered as one that never was.

        The answer to mine, and mine.
        """
        mine, theirs = self.run.one_of(me, *kinds), self.run.one_of(other, *kinds)
        if mine is not None and self.run.often(0.5):
            answer = question(mine)
            self.run.judge(me, other, answer)
            return answer, mine
        if theirs is not None:
            nobodys = nobodys or self.run.nobodys()
            foreign, unknown = question(theirs), question(nobodys)
            self.run.judge(me, other, foreign, theirs)
            self.run.judge(me, other, unknown)
            self.run.alike(without(str(foreign), theirs), without(str(unknown), nobodys))
        return None, None

    def in_session(self, me, other, message, method="POST"):
        """Ask in a session of anybody's, and forget my own where it has ended; whether mine was served."""

        def asked(session):
            return self.send(me, message, session, method=method)

        nobodys = "".join(self.run.dice.choices(string.ascii_letters, k=43))
        answer, mine = self.ask(me, other, asked, "session", nobodys=nobodys)
        if answer is not None and answer[0] == 404:
            me.made["session"].remove(mine)
        return answer is not None and answer[0] == 200

    def main(self, me):
        """A session of mine that lives and has pages to list."""
        return me.all("main")[0]

    def go_on(self, me):
        """After something may have ended."""
        if self.send(me, PING, self.main(me))[0] == 404:
            self.begin(me)

    # The operations.

    def initialize(self, me, other):
        client = {"name": me.mark, "version": "1"}
        params = INITIALIZE["params"] | {"clientInfo": client}
        query = self.run.dice.choice(["", "?harness=super-pi-planner", f"?harness={me.mark}"])
        answer = self.send(me, INITIALIZE | {"params": params}, query=query)
        if id := answer[1].get("mcp-session-id"):
            me.ids.add(me.keep("session", id))
        self.run.judge(me, other, answer)
        self.go_on(me)

    def ping(self, me, other):
        self.in_session(me, other, PING)

    def list_what_there_is(self, me, other):
        method = self.run.dice.choice(["tools/list", "prompts/list", "resources/templates/list", "resources/list"])
        self.in_session(me, other, PING | {"method": method})

    def list_the_first_page(self, me, other):
        answer = self.send(me, PING | {"method": "resources/list"}, self.main(me))
        self.run.judge(me, other, answer)
        me.ids.add(me.keep("cursor", json.loads(answer[2])["result"]["nextCursor"]))

    def go_on_from_a_cursor(self, me, other):
        session = self.main(me)

        def page(cursor):
            return self.send(me, PING | {"method": "resources/list", "params": {"cursor": cursor}}, session)

        self.ask(me, other, page, "cursor")

    def read_a_transcript(self, me, other):
        session = self.main(me)

        def read(id):
            params = {"uri": transcript_uri(id)}
            return self.send(me, PING | {"method": "resources/read", "params": params}, session)

        self.ask(me, other, read, "conversation")

    def read_what_everybody_has(self, me, other):
        uri = self.run.dice.choice([CONTEXT_URI, LOADOUT_URI])
        self.in_session(me, other, PING | {"method": "resources/read", "params": {"uri": uri}})

    def complete_an_id(self, me, other):
        session = self.main(me)

        def complete(prefix):
            ref = {"type": "ref/resource", "uri": TRANSCRIPT_TEMPLATE}
            params = {"ref": ref, "argument": {"name": "id", "value": prefix}}
            return self.send(me, PING | {"method": "completion/complete", "params": params}, session)

        if self.run.often(0.7):
            self.ask(me, other, complete, "conversation")
        else:
            self.run.judge(me, other, complete(""))

    def converse(self, me, other):
        """As a run of a harness will: a conversation in a session of mine, and lines of it."""
        store, now = SqlConversations(self.database), datetime.now(UTC)
        if self.run.often(0.5) or not me.all("conversation"):
            id = me.keep("conversation", self.run.name(me, "c"))
            session = self.run.one_of(me, "session")
            self.loop.run(store.start(Conversation(id, me.principal, "super-pi-code", me.mark, session, now, now)))
        self.loop.run(store.append(self.run.one_of(me, "conversation"), now, "user", {"text": me.mark}))

    def call(self, me, other):
        """A tool; a command now and then, for they take long."""
        command = {"name": "bash", "arguments": {"command": f"echo {me.mark}"}}
        read = {"name": self.run.dice.choice(["read", "ls"]), "arguments": {"path": "."}}
        params = command if self.run.often(0.1) else read
        if self.in_session(me, other, PING | {"method": "tools/call", "params": params}):
            self.calls[me.principal] = self.calls.get(me.principal, 0) + 1

    def cancel(self, me, other):
        params = {"requestId": PING["id"]}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        self.in_session(me, other, message)

    def end_a_session(self, me, other):
        """Of the other's none may end, nor may it be told from one that never was."""
        theirs = self.run.one_of(other, "session")
        before = theirs and self.send(other, PING, theirs)[0]
        self.in_session(me, other, None, "DELETE")
        if theirs and self.send(other, PING, theirs)[0] != before:
            self.run.fail(f"{me.principal} ended a session of {other.principal}")
        self.go_on(me)

    def get(self, me, other):
        self.in_session(me, other, None, "GET")

    def both_at_once(self, me, other):
        """Answers that are made at the same time are not mixed up."""
        messages = [PING | {"method": method} for method in ("resources/list", "tools/list", "resources/list")]
        mine, theirs = self.main(me), self.main(other)
        asked = [pair for message in messages for pair in ((me, mine, message), (other, theirs, message))]
        answers = list(self.threads.map(lambda one: self.send(one[0], one[2], one[1]), asked))
        for (who, _, _), answer in zip(asked, answers, strict=True):
            self.run.judge(who, other if who is me else me, answer)


ALL = [
    World.initialize,
    World.ping,
    World.list_what_there_is,
    World.list_the_first_page,
    World.go_on_from_a_cursor,
    World.read_a_transcript,
    World.read_what_everybody_has,
    World.complete_an_id,
    World.converse,
    World.call,
    World.cancel,
    World.end_a_session,
    World.get,
    World.both_at_once,
]


@pytest.fixture(scope="module")
def postgres():
    with running() as server:
        yield server


@contextmanager
def serving_on(product, request):
    """A server on that product, and the URL of its database."""
    settings = {"SUPERPI_SESSIONS_PER_PRINCIPAL": "8"}
    with folder() as workspace, folder() as home:
        if product == "sqlite":
            with serving(unprivileged(), workspace, home, **settings) as server:
                yield server, f"sqlite:///{home}/data/superpi.db"
            return
        with (
            request.getfixturevalue("postgres").database() as url,
            serving(unprivileged(), workspace, home, SUPERPI_DATABASE_URL=url, **settings) as server,
        ):
            yield server, url


@pytest.fixture(params=DATABASES)
def world(request):
    with (
        serving_on(request.param, request) as (server, url),
        asyncio.Runner() as loop,
        ExitStack() as stack,
        ThreadPoolExecutor(6) as threads,
    ):
        database = open_database(url)
        world = World(Run(OPERATIONS), server, database, loop, threads, stack)
        for person in (world.run.alice, world.run.bob):
            world.arrive(person)
        yield world
        loop.run(database.close())


@pytest.mark.requirement("RS-7", "SES-7", "CP-5", "PG-4", "AU-20", "TL-19")
def test_neither_ever_sees_anything_of_the_other(world):
    """And afterwards each call is on record under the name and the token of who made it."""
    run = world.run
    while not run.is_over():
        operation, me, other = run.turn(ALL)
        operation(world, me, other)
    assert {operation.__name__ for operation in ALL} == set(run.done)
    assert run.own_seen > OPERATIONS / 10  # each sees their own, so there was something to see
    world.server.stop()
    for person, other in ((run.alice, run.bob), (run.bob, run.alice)):
        rows = world.loop.run(SqlAudit(world.database).page(principal=person.principal, limit=OPERATIONS))
        calls = [row for row in rows if row.record.action == "tools/call"]
        assert (len(calls), {row.record.token for row in calls} <= person.ids) == (world.calls[person.principal], True)
        run.judge(person, other, rows)
