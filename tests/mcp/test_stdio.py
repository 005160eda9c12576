"""The stdio transport as a real process: lines in, lines out, and an end that leaves nothing behind."""

import json
import signal
import subprocess
import threading
import time

import pytest

from tests.support.asking import harness_settings
from tests.support.eras import request as stateless
from tests.support.official import Connection
from tests.support.unprivileged import folder, own, unprivileged

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "clientInfo": {"name": "t", "version": "1"}, "capabilities": {}},
}


def ping(id):
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


def bash(id, command, timeout=20):
    arguments = {"command": command, "timeout": timeout}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "bash", "arguments": arguments}}


class Host:
    """A host that writes lines and reads lines, and nothing else."""

    def __init__(self, place, *arguments, **settings):
        launcher = unprivileged()
        home = {"HOME": str(place), "SUPERPI_WORKSPACE": str(place / "ws"), "SUPERPI_DATA_DIR": str(place / "data")}
        self.workspace = place / "ws"
        self.env = {**launcher.env, **home, **settings}
        self.process = subprocess.Popen(
            launcher.superpi("stdio", *arguments),
            env=self.env,
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.errors = []
        self._official = Connection()
        self._reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True)
        self._reader.start()

    def send(self, message):
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        if not isinstance(message, bytes):
            self._official.sent(message)
        self.process.stdin.write(raw + b"\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), self.errors
        return self._official.received(json.loads(line))

    def ask(self, message):
        self.send(message)
        return self.read()

    def close(self):
        """Close stdin; everything that still came out, and the exit status."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        rest = self.process.stdout.read().splitlines()
        code = self.process.wait(15)
        self._reader.join(5)
        self.process.stdout.close()
        self.process.stderr.close()
        return code, [self._official.received(json.loads(line)) for line in rest]

    def audit(self):
        """The rows of the audit log."""
        export = unprivileged().superpi("audit", "export")
        done = subprocess.run(export, env=self.env, cwd=self.workspace, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def place():
    with folder() as path:
        (path / "ws").mkdir()
        own(path)
        yield path


@pytest.fixture
def host(place):
    host = Host(place)
    assert host.ask(INITIALIZE)["result"]["protocolVersion"] == "2025-06-18"
    yield host
    if not host.process.stdout.closed:
        host.process.kill()
        host.close()


def wait_for(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


@pytest.mark.requirement("RPC-9", "STD-1", "STD-9", "BAT-1")
def test_requests_are_answered_and_notifications_are_not(host):
    """One line a message, in order for what needs no work."""
    host.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    host.send(b"")
    host.send(b"   ")
    host.send(ping("a"))
    host.send(b"not json")
    host.send([ping(1), ping(2)])
    assert host.read() == {"jsonrpc": "2.0", "id": "a", "result": {}}
    assert host.read()["error"]["code"] == -32700
    assert [item["id"] for item in host.read()] == [1, 2]


def test_a_line_beyond_the_limit_is_refused_and_the_next_one_read(place):
    """Memory stays bounded and the connection goes on."""
    host = Host(place, SUPERPI_HTTP__BODY_BYTES="2000")
    host.ask(INITIALIZE)
    assert host.ask(b'"' + b"x" * 1_000_000 + b'"')["error"]["code"] == -32600
    assert host.ask(ping(1))["result"] == {}
    assert host.close() == (0, [])


def test_calls_run_side_by_side(host):
    """A short one overtakes a long one."""
    host.send(bash("long", "until [ -e go ]; do sleep 0.02; done; echo long"))
    assert host.ask(bash("short", "touch go; echo short"))["id"] in ("short", "long")
    assert host.read()["id"] in ("short", "long")


@pytest.mark.requirement("CAN-2")
def test_a_cancelled_call_gets_no_answer(host):
    """CAN-2, and its processes are gone."""
    host.send(bash(1, "touch started; sleep 2; touch late"))
    wait_for((host.workspace / "started").exists)
    host.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert host.ask(bash(2, "sleep 3; echo waited"))["id"] == 2
    assert not (host.workspace / "late").exists()


@pytest.mark.requirement("STD-7", "LIFE-11")
def test_the_end_of_input_ends_the_process_and_what_it_ran(host):
    """STD-7: promptly, with nothing left behind."""
    host.send(bash(1, "touch started; sleep 60; touch late"))
    wait_for((host.workspace / "started").exists)
    began = time.monotonic()
    code, rest = host.close()
    assert (code, rest) == (0, [])
    assert time.monotonic() - began < 10


def test_what_was_piped_in_is_answered_before_the_end(place):
    """A script that writes its requests and closes gets its replies."""
    host = Host(place)
    host.send(INITIALIZE)
    host.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ls", "arguments": {}}})
    code, replies = host.close()
    assert (code, [reply["id"] for reply in replies]) == (0, [0, 1])


@pytest.mark.requirement("STD-7", "LIFE-11")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, None], ids=["SIGTERM", "SIGINT", "the end of input"])
def test_however_a_process_ends_its_calls_end_with_it_and_are_on_record(host, end):
    """Also what they left in the background. Hosts send SIGTERM, a terminal SIGINT; stdin may still be open then."""
    host.send(bash(1, "touch started; (sleep 3; touch late) & sleep 3; touch late"))
    wait_for((host.workspace / "started").exists)
    if end is not None:
        host.process.send_signal(end)
        assert host.process.wait(15) == 0
    assert host.close() == (0, [])
    (row,) = host.audit()
    assert (row["action"], row["object"], row["decision"]) == ("tools/call", "bash", "failed")
    assert row["reason"] == "cancelled or broken"
    time.sleep(3.5)  # longer than the command would have needed
    assert not (host.workspace / "late").exists()


def test_a_process_that_ends_withdraws_what_it_asked(place):
    """So that a host whose pipe is still open does not leave a form on the screen."""
    (place / "harnesses").mkdir()
    settings = harness_settings(place / "harnesses")
    own(place)
    host = Host(place, **settings)
    params = INITIALIZE["params"] | {"capabilities": {"elicitation": {}}}
    host.ask(INITIALIZE | {"params": params})
    question = host.ask(bash(1, "touch asked"))
    assert question["method"] == "elicitation/create"
    host.process.send_signal(signal.SIGINT)
    assert host.read()["params"]["requestId"] == question["id"]
    assert host.close() == (0, [])
    assert not (host.workspace / "asked").exists()


@pytest.mark.requirement("ERA-1", "ERA-19")
def test_a_connection_that_shook_hands_takes_stateless_requests_too(host):
    """Each message by itself, and neither disturbs the other."""
    assert host.ask(stateless("server/discover"))["result"]["resultType"] == "complete"
    assert host.ask(ping(2)) == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert host.ask(stateless("ping", id=3))["error"]["code"] == -32601


@pytest.mark.requirement("SUB-6", "STD-5", "STD-7")
@pytest.mark.parametrize("end", ["signal", "input"])
def test_a_listener_gets_the_result_before_the_process_ends(host, end):
    """And holds nothing up."""
    host.send(stateless("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, id="L"))
    acknowledged = host.read()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "L"}
    if end == "signal":
        host.process.send_signal(signal.SIGTERM)
    code, (last,) = host.close()
    assert (code, last["id"], last["result"]["resultType"]) == (0, "L", "complete")
    assert last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "L"


@pytest.mark.requirement("STD-2", "STD-3")
def test_everything_else_goes_to_stderr(place):
    """STD-2 (pi-mono#2388): the log, also at its loudest, and never on stdout."""
    host = Host(place, SUPERPI_LOG_LEVEL="debug")
    assert host.ask(INITIALIZE)["id"] == 0
    assert host.ask(ping(1))["id"] == 1
    assert host.close() == (0, [])
    assert any(b"agreed on 2025-06-18" in line for line in host.errors)


@pytest.mark.requirement("STD-2", "STD-3")
def test_a_stray_print_does_not_reach_the_host(place):
    """Whoever writes to fd 1 writes to stderr."""
    program = (
        "import os, sys\n"
        "from mcp.stdio import claim_stdout\n"
        "lines = claim_stdout(100)\n"
        "print('stray', flush=True); os.write(1, b'raw\\n'); os.system('echo child')\n"
        "lines.write(b'message\\n')\n"
    )
    launcher = unprivileged()
    done = subprocess.run(
        [*launcher.interpreter, "-P", "-c", program], env=launcher.env, cwd=place, capture_output=True, text=True
    )
    assert (done.stdout, sorted(done.stderr.split())) == ("message\n", ["child", "raw", "stray"])


@pytest.mark.requirement("STD-8")
def test_the_local_user_is_capped_by_the_harness_alone(place):
    """Design: over stdio the harness's own mode, whatever the cap on callers over HTTP."""
    host = Host(place, "--harness", "super-pi-code", SUPERPI_REMOTE_MODE="read_only")
    host.ask(INITIALIZE)
    loadout = host.ask(
        {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "superpi://workspace/tools"}}
    )
    described = json.loads(loadout["result"]["contents"][0]["text"])
    assert (described["harness"], described["mode"]) == ("super-pi-code", "workspace_write")
    assert host.close() == (0, [])
