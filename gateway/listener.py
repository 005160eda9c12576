"""The listener: one socket, uvicorn on it, and a way out that loses no call.

uvicorn closes its listener as soon as it is told to stop, so draining comes first: on the first SIGTERM or SIGINT
new calls get 503 and running ones finish, then uvicorn stops. A second signal ends at once.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import math
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Final, cast

import uvicorn

from gateway.app import create_app, metrics_app
from gateway.bootstrap import Services, build
from gateway.heads import Bounded
from gateway.lifecycle import Lifecycle
from gateway.settings import Settings, SettingsError
from gateway.tls import Tls

_log: Final = logging.getLogger("superpi.listener")

_BACKLOG: Final = 2048
#: What uvicorn may still take for open connections once no call runs any more, in seconds.
_CLOSE_SECONDS: Final = 2
#: Objects, and looks at younger ones, before the cyclic collector looks.
_COLLECT_AFTER: Final = (50_000, 20, 50)


class _Server(uvicorn.Server):
    """uvicorn, without its own signal handlers: signals belong to the drain."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Capture none."""
        return nullcontext()


async def serve(settings: Settings, build: Callable[[Settings], Awaitable[Services]] = build) -> None:
    """Serve until a signal, also while the database is away; `build` makes what is served.

    Raises SettingsError and StoreUnavailable for what an operator has to mend.
    """
    tls = Tls.of(settings)
    sock = _bind(settings.host, settings.port, "SUPERPI_PORT")
    port = settings.metrics_port
    apart = None if port is None else _bind(settings.host, port, "SUPERPI_METRICS_PORT")
    services = await build(settings)
    server = _Server(_config(services, tls))
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"{'http' if tls is None else 'https'}://{host}:{sock.getsockname()[1]}/mcp"
    opening = asyncio.create_task(_open(services, server, url))
    renewing = None if tls is None else asyncio.create_task(tls.keep_current())
    _drain_on_signal(server, services.lifecycle, settings, opening)
    try:
        async with _metrics(services, apart):
            await server.serve(sockets=[sock])
    finally:
        if renewing is not None:
            renewing.cancel()
        opening.cancel()
        await asyncio.wait((opening,))
        # The application's lifespan has done so, unless the end came before its begin.
        await services.close()
    if not opening.cancelled():
        opening.result()


@asynccontextmanager
async def _metrics(services: Services, sock: socket.socket | None) -> AsyncIterator[None]:
    """The metrics on a port of their own, if they have one, for as long as the rest is served."""
    if sock is None:
        yield
        return
    server = _Server(_metrics_config(services))
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait((serving,))


async def _open(services: Services, server: uvicorn.Server, url: str) -> None:
    """Open the database while the probes are answered already; the server ends with what waiting cannot mend."""
    try:
        await services.opening.keep_trying(lambda: _announce(services.settings, url))
    except BaseException:
        server.should_exit = True
        raise
    _calm_collector()


def _calm_collector() -> None:
    """Have the cyclic collector look only at what requests leave, and seldom: what started stays for good.

    Its looks at everything are what the slowest answers wait for.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def _bind(host: str, port: int, variable: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise SettingsError(
                f"SUPERPI_HOST: {host} is no address of this machine. Set SUPERPI_HOST=127.0.0.1."
            ) from None
        raise SettingsError(
            f"{variable}: cannot listen on {host}:{port}: {error.strerror}. Set {variable} to a free port"
            f"{', or to 0 for any' if variable == 'SUPERPI_PORT' else ''}."
        ) from None
    sock.listen(_BACKLOG)
    sock.setblocking(False)  # noqa: FBT003 - the standard library's own signature
    return sock


def _config(services: Services, tls: Tls | None) -> uvicorn.Config:
    proxies = list(services.settings.trusted_proxies)
    return uvicorn.Config(
        create_app(services, is_secure=tls is not None),
        http=_protocol(services.settings),
        lifespan="on",
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        ssl_context_factory=None if tls is None else lambda _config, _default: tls.context,
        timeout_keep_alive=math.ceil(services.settings.http.idle_seconds),
        **_COMMON,
    )


def _metrics_config(services: Services) -> uvicorn.Config:
    return uvicorn.Config(
        metrics_app(services), http=_protocol(services.settings), lifespan="off", proxy_headers=False, **_COMMON
    )


def _protocol(settings: Settings) -> type[asyncio.Protocol]:
    return cast("type[asyncio.Protocol]", partial(Bounded, settings.http))


#: What all listeners have in common.
_COMMON: Final[dict[str, Any]] = {
    "ws": "none",
    "log_config": None,
    "access_log": False,
    "server_header": False,
    "timeout_graceful_shutdown": _CLOSE_SECONDS,
}


def _drain_on_signal(
    server: uvicorn.Server, lifecycle: Lifecycle, settings: Settings, opening: asyncio.Task[None]
) -> None:
    loop = asyncio.get_running_loop()
    draining: list[asyncio.Task[None]] = []

    async def drain() -> None:
        opening.cancel()
        await lifecycle.drain(delay=settings.drain_delay_seconds, deadline=settings.drain_seconds)
        server.should_exit = True

    def on_signal(name: str) -> None:
        if draining:
            _log.warning("%s again: ending at once", name)
            server.should_exit = server.force_exit = True
            return
        _log.info("%s: finishing running calls", name)
        draining.append(loop.create_task(drain()))

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number.name)


def _announce(settings: Settings, url: str) -> None:
    print(f"Super-Pi serves {url}", flush=True)  # noqa: T201 - the answer to the person who started it
    print(f"Workspace: {settings.workspace[0]}", flush=True)  # noqa: T201
    print(f"Connect a host: claude mcp add --transport http superpi {url}", flush=True)  # noqa: T201
