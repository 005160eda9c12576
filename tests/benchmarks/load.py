"""The load: one run of wrk, believed only when every answer was the expected one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.asking import Answer, Shot
from tests.support.environments import ROOT

_SCRIPT: Final = Path(__file__).with_name("post.lua")
_UNPACKED: Final = ROOT / ".venvs" / "wrk"
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run came to: requests a second, and latencies in milliseconds."""

    rate: float
    p50: float
    p99: float


class WrongAnswersError(Exception):
    """A run whose figures mean nothing, because something else was answered than expected."""


def run(shot: Shot, expected: Answer, *, connections: int, seconds: int, home: Path) -> Figures:
    """Send the same request for that long. Raises WrongAnswersError when an answer was not the expected one.

    That all answers together have as many bytes as so many expected ones is what tells them apart from others with a
    good status; the last answer of each connection may be cut off by the end of the run.
    """
    told = _told(shot, connections=connections, seconds=seconds, home=home)
    if expected.status != _OK or told["refused"] or told["broken"] or not told["requests"]:
        raise WrongAnswersError(f"{shot.url}: {told}")
    surplus = told["bytes"] - told["requests"] * expected.size
    if not 0 <= surplus <= connections * expected.size:
        raise WrongAnswersError(f"{shot.url}: answers of other lengths than {expected.size}: {told}")
    return Figures(told["requests"] / told["microseconds"] * 1e6, told["p50"] / 1000, told["p99"] / 1000)


def _told(shot: Shot, *, connections: int, seconds: int, home: Path) -> dict[str, int]:
    request = home / "request"
    lines = [f"{name}: {value}" for name, value in shot.headers.items()]
    request.write_bytes("\n".join([*lines, "", ""]).encode() + shot.body)
    program, environment = _program()
    done = subprocess.run(
        [program, "-t1", f"-c{connections}", f"-d{seconds}s", "-s", _SCRIPT, shot.url, "--", request],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise WrongAnswersError(f"wrk ended with {done.returncode}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _program() -> tuple[str, dict[str, str]]:
    """wrk and its environment: the one on PATH, else the one that `make bench` unpacked with its libraries."""
    if found := shutil.which("wrk"):
        return found, dict(os.environ)
    libraries = ":".join(str(folder) for folder in _UNPACKED.glob("usr/lib/*-linux-gnu*"))
    return str(_UNPACKED / "usr/bin/wrk"), os.environ | {"LD_LIBRARY_PATH": libraries}
