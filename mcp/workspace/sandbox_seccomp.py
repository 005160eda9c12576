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

_Table = Mapping[str, tuple[int | None, int | None]]

#: The tables below give a call's number on each machine, in this order, with the machine's AUDIT_ARCH; None
#: where it never had the call.
_MACHINES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

#: Judged by the first argument.
_JUDGED: Final = {
    "socket": (41, 198),
    "clone": (56, 220),
    "prlimit64": (302, 261),
}
#: Answered with ENOSYS, at which programs fall back to the older call.
_MISSING: Final[_Table] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
#: Mounts, namespaces, and kernel interfaces that no namespace holds.
_FORBIDDEN: Final[_Table] = {
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
_FORBIDDEN_BESIDE_OTHERS: Final[_Table] = {
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

#: Changes to a file that Landlock knows no right for; no command may make them where it must change nothing.
_FORBIDDEN_WHEN_READ_ONLY: Final[_Table] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
#: Landlock before version 3 has no right for truncating a file by its name.
_FORBIDDEN_BEFORE_3: Final[_Table] = {"truncate": (76, 45)}

_AF_NETLINK: Final = 16
_NETWORK: Final = (socket.AF_INET, socket.AF_INET6, _AF_NETLINK)
_SOCKETS: Final = (socket.AF_UNIX, *_NETWORK)


def namespaced_filter(machine: str) -> bytes | None:
    """The filter for a command with namespaces of its own; None on an architecture that is not known."""
    if machine not in _MACHINES:
        return None
    return _program(machine, _FORBIDDEN, _SOCKETS, [])


def shared_filter(machine: str, *, abi: int, network: bool, read_only: bool) -> bytes | None:
    """The filter for a command under Landlock of version `abi`, among the server's own processes.

    Sockets only with `network`, and never AF_UNIX: those have names that Landlock does not guard, and a database or
    a container engine may listen there. None on an architecture that is not known.
    """
    if machine not in _MACHINES:
        return None
    forbidden: dict[str, tuple[int | None, int | None]] = {**_FORBIDDEN, **_FORBIDDEN_BESIDE_OTHERS}
    forbidden |= _FORBIDDEN_WHEN_READ_ONLY if read_only else {}
    forbidden |= _FORBIDDEN_BEFORE_3 if abi < 3 else {}
    own_limits_only = _on(_number("prlimit64", _JUDGED, machine), _unless_equal(0, errno.EPERM))
    return _program(machine, forbidden, _NETWORK if network else (), own_limits_only)


def _program(machine: str, forbidden: _Table, domains: tuple[int, ...], more: list[bytes]) -> bytes:
    at = list(_MACHINES).index(machine)
    steps = [_load(_ARCHITECTURE), *_unless_equal(_MACHINES[machine], errno.ENOSYS), _load(_NUMBER)]
    steps += [_jump(_JUMP_ABOVE, _X32, 0, 1), _fail(errno.ENOSYS)]
    for table, code in ((_MISSING, errno.ENOSYS), (forbidden, errno.EPERM)):
        for number in (numbers[at] for numbers in table.values()):
            steps += [] if number is None else [_jump(_JUMP_EQUAL, number, 0, 1), _fail(code)]
    steps += _on(_number("clone", _JUDGED, machine), [_jump(_JUMP_BITS, _NEW_NAMESPACES, 0, 1), _fail(errno.EPERM)])
    allowed = [step for domain in domains for step in (_jump(_JUMP_EQUAL, domain, 0, 1), _allow())]
    steps += _on(_number("socket", _JUDGED, machine), [*allowed, _fail(errno.EACCES)])
    return b"".join([*steps, *more, _allow()])


def _number(name: str, table: Mapping[str, tuple[int, int]], machine: str) -> int:
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
