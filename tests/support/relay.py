"""A TCP relay between a client and a server, to be frozen, cut and closed: what a network does to a database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

_SECONDS: Final = 30.0


@dataclass(slots=True)
class Relay:
    """Carries bytes to `target` on loopback as long as it `flows`; new connections are taken even when it does not.

    `asked` counts what clients sent: one for each round trip, since they wait for the answer. It freezes by itself
    once that is more than `most`.
    """

    target: int
    port: int = 0
    flows: asyncio.Event = field(default_factory=asyncio.Event)
    asked: int = 0
    most: int | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def freeze(self) -> None:
        """Carry nothing any more, and keep every connection open."""
        self.flows.clear()

    def thaw(self) -> None:
        """Carry what came meanwhile, and what comes."""
        self.most = None
        self.flows.set()

    def cut(self) -> None:
        """Break every connection that there is; new ones work."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, there_writer}
        self._writers |= ends
        try:
            await asyncio.gather(self._carry(reader, there_writer, asks=1), self._carry(there_reader, writer, asks=0))
        finally:
            self._writers -= ends

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, asks: int) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                self.asked += asks
                if self.most is not None and self.asked > self.most:
                    self.freeze()
                await self.flows.wait()
                sink.write(data)
                await sink.drain()
        sink.transport.abort()


@asynccontextmanager
async def relaying(target: int) -> AsyncIterator[Relay]:
    """A relay that flows, on the running event loop; closed with all its connections at the end."""
    relay = Relay(target)
    relay.thaw()
    server = await asyncio.start_server(relay._take, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        relay.thaw()
        relay.cut()
        await server.wait_closed()


@dataclass(frozen=True, slots=True)
class Link:
    """A relay on an event loop in a thread of its own. Every method has taken effect when it returns."""

    relay: Relay
    loop: asyncio.AbstractEventLoop

    def freeze(self) -> None:
        """Carry nothing any more, and keep every connection open."""
        self._call(self.relay.freeze)

    def freeze_after(self, most: int) -> None:
        """Freeze at the first thing that clients ask after that many."""
        self._call(lambda: setattr(self.relay, "most", most))

    def thaw(self) -> None:
        """Carry what came meanwhile, and what comes."""
        self._call(self.relay.thaw)

    def _call(self, act: Callable[[], None]) -> None:
        async def acting() -> None:
            act()

        asyncio.run_coroutine_threadsafe(acting(), self.loop).result(_SECONDS)


@contextmanager
def linked(target: int) -> Iterator[Link]:
    """A relay for tests that do not run on an event loop themselves."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="relay")
    thread.start()
    context = relaying(target)
    try:
        relay = asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(_SECONDS)
        try:
            yield Link(relay, loop)
        finally:
            asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
