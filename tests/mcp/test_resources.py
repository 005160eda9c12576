"""Resources: exact URIs, transcripts of one's own conversations only, and completion."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.store.memory import MemoryConversations
from mcp.conversations import Conversation
from mcp.harness.registry import load
from mcp.limits import Limits
from mcp.protocol.content import TextContents
from mcp.protocol.offer import ResourceSpec
from mcp.resources import (
    CONTEXT_URI,
    LOADOUT_URI,
    RESOURCES,
    TEMPLATES,
    ContextUri,
    LoadoutUri,
    Sources,
    TranscriptUri,
    complete_conversation,
    conversation_spec,
    list_conversations,
    parse_uri,
    read_resource,
    transcript_uri,
)
from mcp.workspace.paths import Workspace
from mcp.workspace.shell import unavailable

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def conversation(id: str, principal: str = "local:alice", session: str | None = None, minute: int = 0) -> Conversation:
    at = START + timedelta(minutes=minute)
    return Conversation(id, principal, "super-pi-code", f"Title of {id}", session, at, at)


async def store_with(*conversations: Conversation) -> MemoryConversations:
    store = MemoryConversations()
    for one in conversations:
        await store.start(one)
    return store


@pytest.fixture
def sources(tmp_path):
    def make(store: MemoryConversations, principal: str = "local:alice") -> Sources:
        return Sources(
            workspace=Workspace(tmp_path),
            workspace_name="shop",
            policy=load(None).get("super-pi-code").policy(),
            tools=(),
            shell=unavailable("Tested without one."),
            limits=Limits(),
            conversations=store,
            principal=principal,
        )

    return make


@pytest.mark.requirement("RS-6", "RS-8")
@pytest.mark.parametrize(
    ("uri", "named"),
    [
        pytest.param("superpi://workspace/context", ContextUri(), id="the context"),
        pytest.param("superpi://workspace/tools", LoadoutUri(), id="the loadout"),
        pytest.param("superpi://conversation/a-B_9/transcript", TranscriptUri("a-B_9"), id="a transcript"),
        pytest.param(f"superpi://conversation/{'a' * 64}/transcript", TranscriptUri("a" * 64), id="a long id"),
        pytest.param(f"superpi://conversation/{'a' * 65}/transcript", None, id="too long an id"),
        pytest.param("superpi://conversation//transcript", None, id="no id"),
        pytest.param("superpi://conversation/a/../b/transcript", None, id="a way up"),
        pytest.param("superpi://conversation/a%2fb/transcript", None, id="an escape"),
        pytest.param("superpi://conversation/ä/transcript", None, id="another letter"),
        pytest.param("superpi://conversation/a/transcript\n", None, id="a line end"),
        pytest.param("superpi://conversation/a/transcript?x", None, id="a query"),
        pytest.param("superpi://conversation/{id}/transcript", None, id="the template itself"),
        pytest.param("superpi://workspace/context/", None, id="a slash too many"),
        pytest.param("SUPERPI://workspace/context", None, id="another case"),
        pytest.param("file:///etc/hostname", None, id="another scheme"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_parse_uri(uri, named):
    assert parse_uri(uri) == named


@given(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True))
def test_the_uri_of_a_transcript_names_it(id):
    assert parse_uri(transcript_uri(id)) == TranscriptUri(id)


@pytest.mark.requirement("RS-6")
@given(st.text(max_size=80))
def test_any_other_text_names_nothing(text):
    assert parse_uri(f"superpi://x{text}") is None


@pytest.mark.requirement("RS-3", "RS-8")
def test_what_is_offered():
    assert [(one.uri, one.mime_type) for one in RESOURCES] == [
        ("superpi://workspace/context", "text/markdown"),
        ("superpi://workspace/tools", "application/json"),
    ]
    assert [(one.uri_template, one.mime_type) for one in TEMPLATES] == [
        ("superpi://conversation/{id}/transcript", "application/jsonl")
    ]


async def test_the_context_is_markdown(sources):
    (contents,) = await read_resource(CONTEXT_URI, sources(await store_with()))
    assert (contents.uri, contents.mime_type) == (CONTEXT_URI, "text/markdown")
    assert contents.text.startswith("# Workspace\n")


async def test_the_loadout_is_json(sources):
    (contents,) = await read_resource(LOADOUT_URI, sources(await store_with()))
    assert (contents.uri, contents.mime_type) == (LOADOUT_URI, "application/json")
    assert json.loads(contents.text)["workspace"] == "shop"


async def test_a_transcript_has_every_entry(sources):
    store = await store_with(conversation("one"))
    for number in range(2500):
        await store.append("one", START, "user", {"text": str(number)})
    (contents,) = await read_resource(transcript_uri("one"), sources(store))
    read = [json.loads(line) for line in contents.text.splitlines()]
    assert [(line["seq"], line["text"]) for line in read] == [(n + 1, str(n)) for n in range(2500)]


async def test_a_conversation_without_entries_is_an_empty_transcript(sources):
    store = await store_with(conversation("one"))
    assert await read_resource(transcript_uri("one"), sources(store)) == (
        TextContents(transcript_uri("one"), "", "application/jsonl"),
    )


async def test_a_transcript_that_is_too_long_says_where_it_goes_on(sources):
    store = await store_with(conversation("one"))
    for _ in range(3):
        await store.append("one", START, "user", {"text": "x" * 80})
    short = replace(sources(store), transcript_characters=200)
    (contents,) = await read_resource(transcript_uri("one"), short)
    kinds = [(line["seq"], line["kind"]) for line in map(json.loads, contents.text.splitlines())]
    assert kinds == [(1, "user"), (2, "truncated")]


@pytest.mark.requirement("RS-7", "AU-20", "TL-19")
async def test_anothers_conversation_is_as_unknown_as_one_that_never_was(sources):
    store = await store_with(conversation("theirs", principal="local:bob"))
    mine = sources(store)
    assert await read_resource(transcript_uri("theirs"), mine) is None
    assert await read_resource(transcript_uri("never"), mine) is None
    assert await read_resource("superpi://nothing", mine) is None
    assert await read_resource(transcript_uri("theirs"), sources(store, "local:bob")) is not None


@pytest.mark.requirement("RS-7")
async def test_conversations_are_listed_by_principal_and_session():
    store = await store_with(
        conversation("a", session="s", minute=1),
        conversation("b", session="t", minute=2),
        conversation("c", principal="local:bob", session="s"),
    )

    async def listed(session: str | None) -> list[str]:
        page = await list_conversations(store, "local:alice", session=session, after=None, limit=10)
        return [one.name for one in page.items]

    assert [await listed(session) for session in (None, "s", "x")] == [
        ["conversation-b", "conversation-a"],
        ["conversation-a"],
        [],
    ]


async def test_a_list_goes_on_from_its_position_and_from_no_other():
    store = await store_with(*(conversation(f"c{n}", minute=n) for n in range(3)))
    first = await list_conversations(store, "local:alice", session=None, after=None, limit=2)
    rest = await list_conversations(store, "local:alice", session=None, after=first.after, limit=2)
    assert [one.name for one in (*first.items, *rest.items)] == [
        "conversation-c2",
        "conversation-c1",
        "conversation-c0",
    ]
    assert await list_conversations(store, "local:alice", session=None, after="made up", limit=2) is None


def test_a_conversation_as_a_resource():
    assert conversation_spec(conversation("one")) == ResourceSpec(
        uri="superpi://conversation/one/transcript",
        name="conversation-one",
        title="Title of one",
        description="super-pi-code, 2026-11-30T12:00:00.000Z, 0 entries.",
        mime_type="application/jsonl",
    )


@pytest.mark.requirement("CP-5", "CP-3")
async def test_ids_are_completed_from_the_principals_own_conversations():
    store = await store_with(
        conversation("Ab1", minute=1),
        conversation("ab2", minute=2),
        conversation("b"),
        conversation("ab3", "local:bob"),
    )
    assert await complete_conversation(store, "local:alice", "aB") == ("ab2", "Ab1")
    assert await complete_conversation(store, "local:alice", "x") == ()


@pytest.mark.requirement("CP-2")
async def test_at_most_a_hundred_values_are_offered():
    store = await store_with(*(conversation(f"c{n}") for n in range(150)), *(conversation(f"d{n}") for n in range(5)))
    assert len(await complete_conversation(store, "local:alice", "")) == 100
    assert len(await complete_conversation(store, "local:alice", "d")) == 5
