"""What came out, as a Markdown table and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.benchmarks.calls import Call
from tests.benchmarks.load import Figures
from tests.benchmarks.subjects import Subject

_NONE: Final = ""


@dataclass(frozen=True, slots=True)
class Key:
    """One cell: a call, how many connections asked at once, and a subject."""

    call: str
    connections: int
    subject: str


@dataclass(frozen=True, slots=True)
class Results:
    """The figures of every round by cell, and the spans that the collector got by sender."""

    cells: dict[Key, list[Figures]]
    spans: dict[str, int]

    def add(self, key: Key, figures: Figures) -> None:
        """One more round."""
        self.cells.setdefault(key, []).append(figures)

    def ratio(self, key: Key, floor: str) -> float | None:
        """The rate by that of a floor in the same round, in the median; None where the floor was not measured."""
        floors = self.cells.get(Key(key.call, key.connections, floor))
        if floors is None:
            return None
        return median(own.rate / other.rate for own, other in zip(self.cells[key], floors, strict=True))


def table(results: Results, calls: Sequence[Call], subjects: Sequence[Subject], connections: Sequence[int]) -> str:
    """A row for each cell."""
    floors = [subject.name for subject in subjects if subject.floor]
    head = ["call", "connections", "subject", "requests/s", *(f"of {name}" for name in floors), "p50 ms", "p99 ms"]
    rows = [head, ["---" if index in (0, 2) else "---:" for index in range(len(head))]]
    for call in calls:
        for count in connections:
            for subject in subjects:
                key = Key(call.name, count, subject.name)
                figures = results.cells[key]
                rows.append(
                    [
                        call.name,
                        str(count),
                        subject.name,
                        f"{median(row.rate for row in figures):,.0f}",
                        *(_ratio(results, key, floor) for floor in floors),
                        f"{median(row.p50 for row in figures):.2f}",
                        f"{median(row.p99 for row in figures):.2f}",
                    ]
                )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def write(
    path: Path, results: Results, calls: Sequence[Call], subjects: Sequence[Subject], options: Mapping[str, Any]
) -> None:
    """The same and every round as JSON."""
    floors = [subject.name for subject in subjects if subject.floor]
    cells = [
        asdict(key)
        | {"rate": median(row.rate for row in figures)}
        | {"ratios": {floor: results.ratio(key, floor) for floor in floors}}
        | {"rounds": [asdict(row) for row in figures]}
        for key, figures in results.cells.items()
    ]
    path.parent.mkdir(exist_ok=True)
    document = {"machine": machine(), "options": dict(options), "spans_received": results.spans, "cells": cells}
    path.write_text(json.dumps(document, indent=1) + "\n")


def spans(results: Results) -> str:
    """How many spans came to the collector, in a sentence: what a server cannot send in time it drops."""
    counted = ", ".join(f"{count:,} of {name}" for name, count in results.spans.items())
    return f"Spans that the collector got, warm-up included: {counted or 'none'}."


def machine() -> str:
    """The machine in general words."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def _ratio(results: Results, key: Key, floor: str) -> str:
    ratio = results.ratio(key, floor)
    return _NONE if ratio is None else f"{ratio:.2f}"
