"""A day's work through the server: find, read, mend and try a real repository, over HTTP and over stdio alike.

The server runs as an ordinary user on a workspace that this user owns, in a process of its own.
"""

import re
import subprocess

import pytest

from tests.support.mcp_client import McpClient
from tests.support.mcp_http import McpHttp
from tests.support.mcp_stdio import McpStdio
from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

FILES = {
    "greet.sh": 'greet() {\n  echo "Hello, $1"\n}\n',
    "test.sh": (
        ". ./greet.sh\n"
        'if [ "$(greet World)" = "Hello, World!" ]; then echo "1 passed"; else echo "1 failed"; exit 1; fi\n'
    ),
    "docs/usage.md": "Call `greet NAME`.\n",
}
#: Times differ from run to run; everything else must not.
SECONDS = re.compile(r"\d+(\.\d+)? ?m?s\b")


@pytest.fixture(scope="module")
def home():
    with folder() as path:
        yield path


def repository(path):
    """A small project under git, with one failing test, that the server's user owns."""
    for name, content in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content)
    git = ["git", "-c", "user.name=Alice", "-c", "user.email=alice@example.org", "-c", "init.defaultBranch=main"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "Greet"]):
        subprocess.run([*git, *arguments], cwd=path, check=True, env={"PATH": "/usr/bin:/bin", "HOME": str(path)})
    own(path)
    return path


def text_of(result):
    return "".join(block["text"] for block in result["content"])


def days_work(client: McpClient) -> list[tuple[str, bool]]:
    """What each step of the work said, and whether it was an error."""
    edit = {"old_text": '"Hello, $1"', "new_text": '"Hello, $1!"'}
    steps = [
        client.call("find", pattern="*.sh"),
        client.call("grep", pattern="Hello"),
        client.call("read", path="greet.sh"),
        client.call("bash", command="sh test.sh"),
        client.call("edit", path="greet.sh", edits=[edit]),
        client.call("bash", command="sh test.sh"),
        client.call("bash", command="git diff"),
        client.call("write", path="docs/changes.md", content="Greet with an exclamation mark.\n"),
        client.call("ls", path="docs"),
    ]
    return [(SECONDS.sub("N s", text_of(step)), step.get("isError", False)) for step in steps]


@pytest.fixture(scope="module")
def http(home):
    """A server, a client with a session on it, and what the work came to."""
    workspace = repository(home / "http")
    with serving(unprivileged(), workspace, home) as server, McpHttp(server.url) as client:
        client.initialize()
        yield server, client, days_work(client)


@pytest.fixture
def stdio(home):
    launcher = unprivileged()
    workspace = repository(home / "stdio")
    own_data = {"SUPERPI_WORKSPACE": str(workspace), "SUPERPI_DATA_DIR": str(home / "data-stdio")}
    env = {**launcher.env, "HOME": str(home), **own_data}
    with McpStdio(launcher.superpi("stdio"), env, workspace, home / "stdio.log") as client:
        client.initialize()
        yield client


def test_the_work_gets_done_over_http(http):
    found, matched, read, failing, edited, passing, diff, written, listed = http[2]
    assert found == ("greet.sh\ntest.sh", False)
    assert "greet.sh:2:" in matched[0]
    assert read == (FILES["greet.sh"], False)
    assert ("1 failed" in failing[0], failing[1]) == (True, True)
    assert not edited[1]
    assert ("1 passed" in passing[0], passing[1]) == (True, False)
    assert '-  echo "Hello, $1"\n+  echo "Hello, $1!"\n' in diff[0]
    assert not written[1]
    assert listed == ("changes.md\nusage.md", False)


def test_the_same_work_says_the_same_over_stdio(http, stdio):
    assert days_work(stdio) == http[2]


def test_a_client_goes_on_with_its_session_after_the_server_was_killed_and_started_again(http):
    server, client, _ = http
    session = client.session
    server.kill9()
    server.restart()
    assert server.url == client.url
    assert client.text("read", path="docs/changes.md") == "Greet with an exclamation mark.\n"
    assert client.session == session
    with McpHttp(server.url, session=session) as later:
        assert later.text("read", path="docs/usage.md") == FILES["docs/usage.md"]
