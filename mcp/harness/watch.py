"""A team's folder of harnesses, looked at again and again: what it holds now replaces what it held, if it is whole.

A broken file changes nothing but the log. Knows nothing of what a registry is used for.
"""

from __future__ import annotations

import asyncio
import logging
import os
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
    harness `required` counts as broken: connections that ask for none have it.
    """

    def __init__(
        self, folder: Path, current: Registry, on_change: Callable[[Registry], None], *, required: str
    ) -> None:
        self._folder = folder
        self._current = current
        self._on_change = on_change
        self._required = required
        self._seen: Signature | None = None

    async def run(self) -> None:
        """Look every two seconds, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except Exception:  # noqa: BLE001 - a bug in one look must not end the watching; it is logged
                _log.exception("the folder of harnesses cannot be watched")

    async def look(self) -> None:
        """Look once, in a thread: the folder may lie on a network. Files that change meanwhile wait for the next look."""
        before = await asyncio.to_thread(signature, self._folder)
        if before == self._seen:
            return
        try:
            found = await asyncio.to_thread(self._load)
        except HarnessError as error:
            if await asyncio.to_thread(signature, self._folder) == before:
                self._seen = before
                _log.error("SUPERPI_HARNESS_DIR: %s; the harnesses stay as they were", error)  # noqa: TRY400 - no bug
            return
        if await asyncio.to_thread(signature, self._folder) == before:
            self._seen = before
            self._take(found)

    def _load(self) -> Registry:
        found = load(self._folder)
        if found.get(self._required) is None:
            raise HarnessError(str(self._folder), None, f"there is no harness {self._required!r} any more")
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
        names = os.listdir(folder)
    except OSError as error:
        yield "", (error.errno or 0,)
        return
    for name in names:
        if name.endswith(".md") and not name.startswith("."):
            yield name, _stat(folder / name)


def _stat(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        return (error.errno or 0,)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
