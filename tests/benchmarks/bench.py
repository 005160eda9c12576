"""`make bench`: requests a second of every call at every subject, in interleaved rounds, as ratios to the floors.

Rounds go through all subjects one run at a time, so that what disturbs the machine disturbs all of them. A ratio is
the median of the ratios of the rounds, and a figure the median of its rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.benchmarks.asking import ask
from tests.benchmarks.calls import CALLS, Call
from tests.benchmarks.load import run
from tests.benchmarks.receiver import receiving
from tests.benchmarks.report import Key, Results, machine, spans, table, write
from tests.benchmarks.subjects import SUBJECTS, Cores, Subject, Surroundings, Target, pinned
from tests.support.environments import ROOT
from tests.support.unprivileged import folder

CONNECTIONS: Final = (1, 16)


def main(arguments: Sequence[str]) -> None:
    """Measure, print the table and write the JSON."""
    options = _options(arguments)
    calls = [call for call in CALLS if _chosen(call.name, options.calls)]
    subjects = [subject for subject in SUBJECTS if _chosen(subject.name, options.subjects)]
    results = Results({}, {})
    with ExitStack() as stack:
        cores = Cores.here()
        stack.enter_context(pinned(cores.others))
        around = Surroundings(cores, stack.enter_context(receiving()))
        targets = [(subject, stack.enter_context(subject.start(around))) for subject in subjects]
        home = stack.enter_context(folder())
        for number in range(options.rounds + 1):
            # The round before the first is the warm-up, and counts for nothing.
            into = results if number else Results({}, {})
            seconds = options.seconds if number else 1
            sys.stderr.write(f"round {number} of {options.rounds}\n")
            for call in calls:
                for connections in options.connections:
                    _once(into, call, connections, targets, seconds, home)
        results.spans.update(around.receiver.spans)
    text = table(results, calls, subjects, options.connections)
    write(ROOT / "build" / "bench.json", results, calls, subjects, vars(options))
    sys.stdout.write(f"{machine()}\n\n{text}\n{spans(results)}\n")


def _once(
    results: Results,
    call: Call,
    connections: int,
    targets: Sequence[tuple[Subject, Target]],
    seconds: int,
    home: Path,
) -> None:
    """One run at every subject; what they answer has to be the same, before and after."""
    bodies = set()
    for subject, target in targets:
        shot = target.shot(call)
        expected = ask(shot)
        figures = run(shot, expected, connections=connections, seconds=seconds, home=home)
        results.add(Key(call.name, connections, subject.name), figures)
        bodies |= {expected.body, ask(shot).body}
    if len(bodies) != 1:
        raise SystemExit(f"{call.name} was answered in {len(bodies)} ways: {[body[:200] for body in bodies]}")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='make bench ARGS="..."', description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count, after one to warm up")
    parser.add_argument("--seconds", type=int, default=2, help="seconds of one run")
    parser.add_argument("--connections", type=int, nargs="+", default=list(CONNECTIONS))
    parser.add_argument("--calls", nargs="+", default=[], help="words in the names of the calls to measure")
    parser.add_argument("--subjects", nargs="+", default=[], help="words in the names of the subjects to measure")
    return parser.parse_args(arguments)


def _chosen(name: str, words: Sequence[str]) -> bool:
    return not words or any(word.lower() in name.lower() for word in words)


if __name__ == "__main__":
    main(sys.argv[1:])
