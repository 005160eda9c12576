"""The in-memory twins tell of the changes that the database would record."""

from datetime import UTC, datetime

from auth.changes import Change, Subject
from gateway.store.memory import MemoryConversations, MemorySessions
from gateway.store.memory_questions import MemoryQuestions
from gateway.store.memory_subscriptions import MemorySubscriptions
from mcp.conversations import Conversation
from mcp.pending import Asked
from mcp.protocol.state import State
from mcp.sessions import Session

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


async def session_of_alice():
    sessions = MemorySessions()
    await sessions.open(Session("s", State(principal="local:alice"), NOON, NOON), most=10)
    return sessions


async def test_conversations_tell_of_their_principals_list_and_of_each_entry():
    told = []
    conversations = MemoryConversations(told.append)
    await conversations.start(Conversation("c", "local:alice", "h", "t", None, NOON, NOON))
    await conversations.append("c", NOON, "user", {})
    assert told == [Change(Subject.CONVERSATIONS, "local:alice"), Change(Subject.CONVERSATION, "c")]


async def test_questions_tell_of_the_answer_that_counts():
    told = []
    questions = MemoryQuestions(await session_of_alice(), told.append)
    await questions.ask(Asked("q", "s", "local:alice", NOON), most=9, since=NOON)
    for _ in range(2):
        await questions.answer("s", "local:alice", "q", {"result": {}})
    await questions.take("q")
    assert told == [Change(Subject.QUESTION, "q")]


async def test_subscriptions_tell_of_what_changed():
    told = []
    subscriptions = MemorySubscriptions(await session_of_alice(), told.append)
    for uri in ("x:1", "x:1", "x:2"):
        await subscriptions.add("s", uri, most=1)
    for _ in range(2):
        await subscriptions.remove("s", "x:1")
    assert told == 2 * [Change(Subject.SUBSCRIPTION, "s")]
