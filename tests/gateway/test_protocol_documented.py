"""The examples of docs/protocol.md run as they stand, one after the other, and are answered as the page says."""

import re
import selectors
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.server import serving
from tests.support.unprivileged import folder, own, unprivileged

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What the reader copies from an answer: by the name of the variable, what it stands behind there.
COPIED = {
    "SESSION": r"mcp-session-id: (\S+)",
    "QUESTION": r'"id":"([^"]+)","method":"elicitation/create"',
    "KEY": r'"(permission-[^"]+)"',
    "STATE": r'"requestState":"([^"]+)"',
}
SECONDS = 20


def pattern(answer):
    """What the page shows, wherever its lines end; three dots are anything."""
    squeezed = re.sub(r"\s", "", answer)
    squeezed = re.sub(r"(mcp-session-id:)[\w-]{43}", r"\1...", squeezed)
    return re.compile(".*".join(map(re.escape, squeezed.split("..."))))


class Terminal:
    """A reader's shells: variables that were set, commands that run, and all that they printed."""

    def __init__(self, url):
        self.variables = ""
        self.url = url
        self.running = []
        self.said = ""

    def run(self, script):
        """Set variables, to what was copied from an answer where that is so; or start a command."""
        if re.match(r"[A-Z]+=", script):
            for line in re.findall(r"^[A-Z]+=(?:'[^']*'(?:\"[^\"]*\")?|.*)", script, re.MULTILINE):
                name = line.partition("=")[0]
                value = re.findall(COPIED[name], self.said)[-1] if name in COPIED else None
                self.variables += f"{line}\n" if value is None else f"{name}='{value}'\n"
            self.variables = re.sub(r"(?m)^URL=.*$", f"URL={self.url}", self.variables)
            return
        command = ["bash", "-c", f"{self.variables}{script}"]
        self.running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))

    def expect(self, process, answer):
        """Read what it prints until that is the answer."""
        expected, printed, deadline = pattern(answer), "", time.monotonic() + SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not expected.search(re.sub(r"\s", "", printed)):
                assert selector.select(max(0.0, deadline - time.monotonic())), (answer, printed)
                chunk = process.stdout.read1(65536).decode()
                assert chunk, (answer, printed)
                printed += chunk
        self.said += printed

    def end(self):
        """End what still listens."""
        for process in self.running:
            process.kill()
            process.wait()
            process.stdout.close()


@pytest.fixture
def harnesses():
    with folder() as place:
        yield place


@pytest.fixture
def terminal(harnesses):
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    (harnesses / "careful.md").write_text(next(body for kind, body in blocks if kind == "markdown"), "utf-8")
    own(harnesses)
    settings = {"SUPERPI_HARNESS_DIR": str(harnesses)}
    with folder() as workspace, folder() as home:
        (workspace / "notes.txt").write_text("hello\n")
        own(workspace)
        with serving(unprivileged(), workspace, home, **settings) as server:
            terminal = Terminal(server.url)
            try:
                yield terminal
            finally:
                terminal.end()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are curl's")
def test_every_example_is_answered_as_the_page_says(terminal, harnesses):
    """A block of shell, then its answer; a block of text is what a command that still runs says next."""
    answers = 0
    for kind, body in BLOCK.findall(PAGE.read_text("utf-8")):
        if kind == "sh":
            terminal.run(body)
        elif kind == "http":
            terminal.expect(terminal.running[-1], body)
            answers += 1
        elif kind == "text":
            if "list_changed" in body:
                further = (harnesses / "careful.md").read_text("utf-8").replace("id: careful", "id: further")
                (harnesses / "further.md").write_text(further, "utf-8")
                own(harnesses)
            streaming = [process for process in terminal.running if "curl -sN" in process.args[-1]]
            terminal.expect(streaming[-1], body)
            answers += 1
    assert answers == 14
