"""Landlock for one start of a program: what it starts can open nothing outside the folder that it searches.

A search follows names below an open folder, and a name can become a link to somewhere else between two system
calls. The kernel's access rules (Landlock, Linux 5.13) close that: the program fails to open what lies elsewhere.
The rules bind a thread and its children, so they are put on a thread that starts the program and ends.

It knows nothing of search. It must never be used on a thread that lives on.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache
from typing import Any, Final, TypeVar

#: System calls with the same numbers on every architecture.
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38

_READ_FILE: Final = 1 << 2
_READ_FOLDER: Final = 1 << 3
#: Every right of the first version but to execute: the program must be started, and starts nothing itself.
_HANDLED: Final = (1 << 13) - 1 - (1 << 0)

T = TypeVar("T")


@cache
def _library() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _system_call(number: int, *arguments: Any) -> int:
    """One system call; raises OSError."""
    numbers = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    answer: int = _library().syscall(ctypes.c_long(number), *numbers)
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def _restrict_this_thread(readable: Sequence[int]) -> None:
    """Let the calling thread and its children only read what lies at or below `readable`. Raises OSError."""
    attributes = struct.pack("=Q", _HANDLED)
    ruleset = _system_call(_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for fd in readable:
            folder = stat.S_ISDIR(os.fstat(fd).st_mode)
            beneath = struct.pack("=Qi", _READ_FILE | (_READ_FOLDER if folder else 0), fd)
            _system_call(_ADD_RULE, ruleset, _PATH_BENEATH, beneath, 0)
        if _library().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        _system_call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def confined(action: Callable[[], T], readable: Sequence[int]) -> T:
    """Run a short action on a thread of its own that can read only what lies at or below the descriptors.

    Returns and raises what the action does, and OSError when the kernel has no such rules.
    """
    answer: Future[T] = Future()

    def body() -> None:
        try:
            _restrict_this_thread(readable)
            answer.set_result(action())
        except Exception as error:  # noqa: BLE001 - handed to the caller as it is
            answer.set_exception(error)

    thread = threading.Thread(target=body, name="confined start")
    thread.start()
    thread.join()
    return answer.result()


@cache
def can_confine() -> bool:
    """Whether the kernel has these rules; asked once a process."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return confined(lambda: True, ())
    except OSError:
        return False
