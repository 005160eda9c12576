"""A team's folder of harnesses, looked at again and again: what it holds now replaces what it held, if it is whole.

A broken file changes nothing but the log. Knows nothing of what a registry is used for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from mcp.harness.frontmatter import HarnessError
from mcp.harness.registry import Registry, load

_log: Final = logging.getLogger("superpi.harness")

#: Seconds between two looks.
LOOK_SECONDS: Final = 2.0

#: A folder's files, each as its name and what tells one content from another.
Signature = tuple[tuple[str, tuple[int, ...]], ...]


class Watch:
    """Watches `folder` for one process, which begins with the registry `current`; for use on its event loop.

    `on_change` is called on the loop with each registry that differs from the one before. A registry without the
    harness `required` counts as broken: connections that ask for none have it. `read` is what reads the folder.
    """

    def __init__(
        self,
        folder: Path,
        current: Registry,
        on_change: Callable[[Registry], None],
        *,
        required: str,
        seconds: float = LOOK_SECONDS,
        read: Callable[[Path], Registry] = load,
    ) -> None:
        self._folder = folder
        self._current = current
        self._on_change = on_change
        self._required = required
        self._seconds = seconds
        self._read = read
        self._seen: Signature | None = None

    async def run(self) -> None:
        """Look every `seconds`, until cancelled."""
        while True:
            await asyncio.sleep(self._seconds)
            try:
                await self.look()
            except Exception:  # noqa: BLE001 - a bug in one look must not end the watching; it is logged
                _log.exception("the folder of harnesses cannot be watched")

    async def look(self) -> None:
        """Look once, in a thread, because the folder may lie on a network.

        Files that change while they are read wait for the next look.
        """
        looked = await asyncio.to_thread(self._look)
        if looked is None:
            return
        self._seen, found = looked
        if isinstance(found, HarnessError):
            _log.error("SUPERPI_HARNESS_DIR: %s; the harnesses stay as they were", found)
        else:
            self._take(found)

    def _look(self) -> tuple[Signature, Registry | HarnessError] | None:
        """What the folder holds now; None when that was seen already, or changed meanwhile."""
        before = signature(self._folder)
        if before == self._seen:
            return None
        found = self._load()
        return (before, found) if signature(self._folder) == before else None

    def _load(self) -> Registry | HarnessError:
        try:
            found = self._read(self._folder)
        except HarnessError as error:
            return error
        if found.get(self._required) is None:
            return HarnessError(str(self._folder), None, f"there is no harness {self._required!r} any more")
        return found

    def _take(self, found: Registry) -> None:
        if found == self._current:
            return
        self._on_change(found)
        self._current = found
        _log.info("the harnesses have changed; there are %s", ", ".join(found.ids))


def signature(folder: Path) -> Signature:
    """What `registry.load` would read there, without reading it: alike exactly while nothing was changed.

    Links are followed, so that a ConfigMap that is mounted anew through `..data` differs.
    """
    return tuple(sorted(_files(folder)))


def _files(folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    try:
        paths = list(folder.iterdir())
    except OSError as error:
        yield "", (error.errno or 0,)
        return
    for path in paths:
        if path.suffix == ".md" and not path.name.startswith("."):
            yield path.name, _stat(path)


def _stat(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        return (error.errno or 0,)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
