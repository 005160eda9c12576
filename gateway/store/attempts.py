"""One job on its way through a thread, and how it is given up from outside. Knows no SQL and no database product."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class GivenUpError(Exception):
    """Nobody waits for the job any more, so it does not go on. Seen by no caller."""


class Attempt:
    """What the event loop and the thread tell each other about one job.

    A connection is severed only while the job holds it: afterwards it may serve another one.
    """

    __slots__ = ("_connection", "_lock", "_sever", "begun", "given_up")

    def __init__(self, sever: Callable[[Any], None]) -> None:
        self._sever = sever
        self._lock = threading.Lock()
        self._connection: Any = None
        self.begun = False
        self.given_up = False

    def begin(self) -> None:
        """Called by the thread when the job's turn has come. Raises GivenUpError."""
        with self._lock:
            self._require()
            self.begun = True

    def hold(self, connection: Any) -> None:
        """The job works on this driver connection from now on. Raises GivenUpError."""
        with self._lock:
            self._require()
            self._connection = connection

    def release(self) -> None:
        """The job does not need its connection any more."""
        with self._lock:
            self._connection = None

    def withdraw(self) -> bool:
        """Give the job up unless its turn has come; whether that was in time."""
        with self._lock:
            self.given_up = self.given_up or not self.begun
            return not self.begun

    def end(self) -> None:
        """Give the job up wherever it is; a thread that waits for the database comes back."""
        with self._lock:
            self.given_up = True
            if self._connection is not None:
                self._sever(self._connection)

    def _require(self) -> None:
        if self.given_up:
            raise GivenUpError
