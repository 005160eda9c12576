"""Real load balancers before several servers, with the configurations that the documentation gives to a team.

`make test` unpacks both below `.venvs/balancers` where PATH has none. Stopped by their pid.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.unprivileged import folder

ROOT: Final = Path(__file__).resolve().parents[2]
_UNPACKED: Final = ROOT / ".venvs" / "balancers"
_EXAMPLES: Final = ROOT / "docs" / "examples"
_START_SECONDS: Final = 20.0
#: The lines that name the replicas; the first is the pattern of the others.
_REPLICA: Final = re.compile(r"^( *server )(.*?)10\.0\.0\.\d+:8000(.*)\n", re.MULTILINE)

BALANCERS: Final = ("haproxy", "nginx")


@dataclass(frozen=True, slots=True)
class Balancer:
    """One that runs; `url` is the endpoint through it."""

    name: str
    url: str
    pid: int


@contextmanager
def balancing(name: str, ports: Sequence[int]) -> Iterator[Balancer]:
    """A load balancer before servers on these ports of loopback."""
    with folder() as place:
        port = _free_port()
        config = place / f"{name}.conf"
        config.write_text(_configured(name, ports, port, place), "utf-8")
        with (place / "said").open("wb") as said:
            process = subprocess.Popen(
                [_program(name), *_arguments(name, config, place)], env=_environment(), stdout=said, stderr=said
            )
        try:
            _wait(process, port, place / "said")
            yield Balancer(name, f"http://127.0.0.1:{port}/mcp", process.pid)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _configured(name: str, ports: Sequence[int], port: int, place: Path) -> str:
    """The documented configuration with other addresses, and nothing else changed but where files go."""
    file = {"haproxy": "haproxy.cfg", "nginx": "nginx.conf"}[name]
    text = (_EXAMPLES / file).read_text("utf-8")
    found = list(_REPLICA.finditer(text))
    assert len(found) == 3, f"{file} names {len(found)} replicas"
    label = re.compile(r"superpi-\d")
    lines = [
        f"{found[0][1]}{label.sub(f'superpi-{number}', found[0][2])}127.0.0.1:{one}{found[0][3]}\n"
        for number, one in enumerate(ports, 1)
    ]
    text = text[: found[0].start()] + "".join(lines) + text[found[-1].end() :]
    for here, there in ((" :8080", f" 127.0.0.1:{port}"), ("listen 8080", f"listen 127.0.0.1:{port}")):
        text = text.replace(here, there)
    if name == "nginx":
        paths = "".join(f"    {kind}_temp_path {place}/{kind};\n" for kind in _NGINX_TEMPORARY)
        text = f"daemon off;\nmaster_process off;\npid {place}/pid;\nerror_log stderr;\n" + text.replace(
            "http {\n", f"http {{\n    access_log off;\n{paths}", 1
        )
    return text


_NGINX_TEMPORARY: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def _arguments(name: str, config: Path, place: Path) -> list[str]:
    return ["-db", "-f", str(config)] if name == "haproxy" else ["-p", str(place), "-c", str(config), "-e", "stderr"]


def _program(name: str) -> str:
    unpacked = _UNPACKED / "usr" / "sbin" / name
    found = str(unpacked) if unpacked.is_file() else shutil.which(name)
    assert found, f"There is no {name}. make test unpacks it; or install the package {name}."
    return found


def _environment() -> dict[str, str]:
    libraries = [str(place) for place in (_UNPACKED / "usr" / "lib").glob("*-linux-*")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)} if libraries else dict(os.environ)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], port: int, said: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, said.read_text("utf-8", errors="replace")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"it does not listen:\n{said.read_text('utf-8', errors='replace')}")
