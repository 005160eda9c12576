"""Fire mutated requests at a server for as long as you like: by hand, beyond what `make test` has time for.

`PYTHONPATH=. .venv/bin/python -P tests/fuzz/mutate.py [SECONDS] [SEED]` starts a server of its own and sends it
requests that began as valid ones of both eras; tests/support/fuzz_requests.py says how they are changed. It judges each
answer: no 5xx, none that takes more than 5 s, none without the id of a request that has one, none that is not of the
official wire types, and a ping answered after each. It prints each fault once with the seed that leads to it, what was
answered how often, what the server's log complains of, and how the server's memory and open files have grown. Exit
status 1 if there was a fault. A seed is `RUN:NUMBER`; giving it as SEED sends that one request again.
"""

import sys
import time
from collections import Counter
from random import Random

import httpx
import psutil

from tests.support.fuzz_requests import mutated
from tests.support.fuzz_target import AnswerError, Target
from tests.support.raw_http import BOTH
from tests.support.server import serving
from tests.support.unprivileged import folder, remove_copies, unprivileged

SETTINGS = {"SUPERPI_HTTP__BODY_SECONDS": "1", "SUPERPI_HTTP__BODY_BYTES": "100000", "SUPERPI_LOG_LEVEL": "warning"}
SECONDS = 600.0


class Run:
    """One run: a target, and what was found."""

    def __init__(self, target: Target, process: psutil.Process, run: str) -> None:
        self.target = target
        self.process = process
        self.run = run
        self.faults: dict[str, str] = {}
        self.answers: Counter[int] = Counter()

    def once(self, number: int) -> None:
        """Send the request of that number."""
        seed = f"{self.run}:{number}"
        try:
            self.answers[self.target.fire(mutated(Random(seed), self.target.session())).status] += 1
        except AnswerError as fault:
            first = str(fault).splitlines()[0][:300]
            if first not in self.faults:
                self.faults[first] = seed
                sys.stdout.write(f"{seed} {fault}\n\n")

    def weight(self) -> str:
        """What the server takes of the machine."""
        memory = self.process.memory_info().rss // 2**20
        return f"{memory} MiB, {self.process.num_fds()} open files, {self.process.num_threads()} threads"


def asker(http: httpx.Client, url: str):
    """How the target's own messages are sent."""

    def ask(message, session=None):
        headers = {"accept": BOTH} | ({"mcp-session-id": session} if session else {})
        return http.post(url, json=message, headers=headers)

    return ask


def main(arguments: list[str]) -> int:
    """Run; the exit status."""
    seconds = float(arguments[0]) if arguments else SECONDS
    name, _, one = (arguments[1] if len(arguments) > 1 else str(time.time_ns())).partition(":")
    with (
        folder() as workspace,
        folder() as home,
        serving(unprivileged(), workspace, home, **SETTINGS) as server,
        httpx.Client(timeout=30, trust_env=False) as http,
    ):
        run = Run(Target(server.url, asker(http, server.url)), psutil.Process(server.pid), name)
        run.once(int(one or 0))
        before, began, number = run.weight(), time.monotonic(), 1
        while not one and time.monotonic() - began < seconds:
            run.once(number)
            number += 1
        sys.stdout.write(f"run {name}: {number} requests, answers {dict(sorted(run.answers.items()))}\n")
        sys.stdout.write(f"faults {len(run.faults)}; at first {before}; at last {run.weight()}\n")
        said = Counter(line.partition("Z ")[2][:160] for line in server.said.splitlines() if "Z " in line[:40])
        sys.stdout.write("".join(f"{count} x {line}\n" for line, count in said.most_common(10)))
        sys.stdout.write(f"tracebacks in the log: {server.said.count('Traceback')}\n")
    remove_copies()
    return 1 if run.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
