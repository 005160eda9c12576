"""Clients that call without a pause, try again as a client should, and keep count of what they were told."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import closing, contextmanager

import httpx

from tests.support.raw_http import INITIALIZE

#: Seconds in which a call that is tried again must have been answered.
PATIENCE = 60.0
#: What counts as a status where a connection ended without an answer.
CUT = "cut"
ACCEPT = {"accept": "application/json, text/event-stream"}


class Caller(threading.Thread):
    """One client with a session of its own, which writes a file a call and reads it back."""

    def __init__(self, url, workspace, number, stop):
        super().__init__()
        self.url, self.workspace, self.number, self.stop = url, workspace, number, stop
        self.done = 0
        self.statuses = Counter()
        self.faults = []
        self.cuts = []
        self.longest = 0.0
        self.http = httpx.Client(timeout=30, trust_env=False)
        self.session = self.http.post(url, json=INITIALIZE, headers=ACCEPT).headers["mcp-session-id"]

    def run(self):
        with closing(self.http):
            while not self.stop.is_set():
                name, text = f"call-{self.number}-{self.done}", f"{self.number}:{self.done}"
                try:
                    self.call("write", path=name, content=text)
                    shown = self.call("read", path=name)
                except Exception as fault:  # noqa: BLE001 - it is the test's to tell
                    self.faults.append(f"{type(fault).__name__}: {fault}")
                    return
                if text not in str(shown) or (self.workspace / name).read_text("utf-8") != text:
                    self.faults.append(f"{name} holds something else: {shown}")
                (self.workspace / name).unlink()
                self.done += 1

    def call(self, tool, **arguments):
        """Call until it is answered; what it came to."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        began = time.monotonic()
        while True:
            assert time.monotonic() - began < PATIENCE, f"{tool} was not answered in {PATIENCE} s: {self.statuses}"
            answer = self.once(body)
            if answer is not None:
                self.longest = max(self.longest, time.monotonic() - began)
                assert answer.get("id") == 1, answer
                assert not answer["result"].get("isError"), answer
                return answer["result"]

    def once(self, body):
        try:
            answer = self.http.post(self.url, json=body, headers=ACCEPT | {"mcp-session-id": self.session})
        except httpx.TransportError as error:
            self.statuses[CUT] += 1
            self.cuts.append(repr(error))
            time.sleep(0.1)
            return None
        self.statuses[answer.status_code] += 1
        if answer.status_code == 200:
            return answer.json()
        if answer.status_code == 503 and not answer.headers.get("retry-after", "").isdigit():
            self.faults.append(f"503 without Retry-After: {answer.text}")
        if answer.status_code not in (502, 503, 504):
            self.faults.append(f"{answer.status_code}: {answer.text}")
            raise AssertionError(answer.text)
        time.sleep(0.2)
        return None


@contextmanager
def load(cluster, clients=2):
    """So many clients through each balancer for as long as the block lasts; they are yielded, and done after it."""
    stop = threading.Event()
    callers = [
        Caller(balancer.url, cluster.workspace, f"{name}-{number}", stop)
        for name, balancer in cluster.balancers.items()
        for number in range(clients)
    ]
    for caller in callers:
        caller.start()
    try:
        yield callers
    finally:
        stop.set()
        for caller in callers:
            caller.join(PATIENCE)
    assert not any(caller.is_alive() for caller in callers)


def faults(callers):
    return [fault for caller in callers for fault in caller.faults]


def told(callers):
    """How often each status or failure was met, over all."""
    return sum((caller.statuses for caller in callers), Counter())


def progress(callers, calls=3, seconds=30.0):
    """Wait until every client was answered that many times more."""
    wanted = [caller.done + calls for caller in callers]
    deadline = time.monotonic() + seconds
    while any(caller.done < goal for caller, goal in zip(callers, wanted, strict=True)):
        assert not faults(callers), faults(callers)
        assert time.monotonic() < deadline, [(caller.number, caller.done, caller.statuses) for caller in callers]
        time.sleep(0.05)
