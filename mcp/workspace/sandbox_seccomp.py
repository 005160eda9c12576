"""The system call filters of the sandbox, as BPF programs for seccomp. Pure: tables in, bytes out.

A filter takes away what a namespace or Landlock does not cover: kernel interfaces that are not namespaced
(keyrings, BPF, vsock), the making of new namespaces, and, where there is no PID namespace, reaching into other
processes. Everything else stays allowed, so that ordinary programs run.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Mapping
from typing import Final

_LOAD_WORD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
#: Offsets in `struct seccomp_data`: the number, the architecture, the low half of the first argument.
_NUMBER, _ARCHITECTURE, _FIRST = 0, 4, 16
#: Where the numbers of the x32 interface begin; they reach the same calls past a filter by number.
_X32: Final = 0x40000000
#: CLONE_NEW* of clone(2): mount, cgroup, UTS, IPC, user, PID and network namespaces.
_NEW_NAMESPACES: Final = 0x7E020000


#: The tables below give a call's number on each machine, in this order, with the machine's AUDIT_ARCH.
_MACHINES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

#: Judged by the first argument.
_JUDGED: Final = {
    "socket": (41, 198),
    "clone": (56, 220),
    "prlimit64": (302, 261),
}
#: Answered with ENOSYS, at which programs fall back to the older call.
_MISSING: Final = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
#: Mounts, namespaces, and kernel interfaces that no namespace holds.
_FORBIDDEN: Final = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
}
#: Ways into processes and memory of the same user, closed where commands share the server's PID namespace.
_FORBIDDEN_BESIDE_OTHERS: Final = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}

_AF_NETLINK: Final = 16
_NETWORK: Final = (socket.AF_INET, socket.AF_INET6, _AF_NETLINK)
_SOCKETS: Final = (socket.AF_UNIX, *_NETWORK)

_Table = Mapping[str, tuple[int, int]]


def namespaced_filter(machine: str) -> bytes | None:
    """The filter for a command with namespaces of its own; None on an architecture that is not known."""
    if machine not in _MACHINES:
        return None
    return _program(machine, _FORBIDDEN, _SOCKETS, [])


def shared_filter(machine: str, *, network: bool) -> bytes | None:
    """The filter for a command among the server's own processes; sockets only with `network`, and never AF_UNIX.

    AF_UNIX sockets have names that Landlock does not guard: a database or a container engine listens there.
    None on an architecture that is not known.
    """
    if machine not in _MACHINES:
        return None
    own_limits_only = _on(_number("prlimit64", _JUDGED, machine), _unless_equal(0, errno.EPERM))
    return _program(machine, _FORBIDDEN | _FORBIDDEN_BESIDE_OTHERS, _NETWORK if network else (), own_limits_only)


def _program(machine: str, forbidden: _Table, domains: tuple[int, ...], more: list[bytes]) -> bytes:
    steps = [_load(_ARCHITECTURE), *_unless_equal(_MACHINES[machine], errno.ENOSYS), _load(_NUMBER)]
    steps += [_jump(_JUMP_ABOVE, _X32, 0, 1), _fail(errno.ENOSYS)]
    for table, code in ((_MISSING, errno.ENOSYS), (forbidden, errno.EPERM)):
        for name in table:
            steps += [_jump(_JUMP_EQUAL, _number(name, table, machine), 0, 1), _fail(code)]
    steps += _on(_number("clone", _JUDGED, machine), [_jump(_JUMP_BITS, _NEW_NAMESPACES, 0, 1), _fail(errno.EPERM)])
    allowed = [step for domain in domains for step in (_jump(_JUMP_EQUAL, domain, 0, 1), _allow())]
    steps += _on(_number("socket", _JUDGED, machine), [*allowed, _fail(errno.EACCES)])
    return b"".join([*steps, *more, _allow()])


def _number(name: str, table: _Table, machine: str) -> int:
    return table[name][list(_MACHINES).index(machine)]


def _on(number: int, steps: list[bytes]) -> list[bytes]:
    """Judge one call by its first argument; the steps fall through when they have no objection."""
    body = [_load(_FIRST), *steps, _allow()]
    return [_jump(_JUMP_EQUAL, number, 0, len(body)), *body]


def _unless_equal(value: int, code: int) -> list[bytes]:
    return [_jump(_JUMP_EQUAL, value, 1, 0), _fail(code)]


def _load(offset: int) -> bytes:
    return _step(_LOAD_WORD, offset)


def _jump(kind: int, value: int, if_true: int, if_false: int) -> bytes:
    return _step(kind, value, if_true, if_false)


def _allow() -> bytes:
    return _step(_RETURN, _ALLOW)


def _fail(code: int) -> bytes:
    return _step(_RETURN, _ERRNO | code)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One `struct sock_filter`."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
