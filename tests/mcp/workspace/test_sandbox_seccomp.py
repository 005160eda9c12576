"""The system call filters, run through an interpreter of their own instructions, for every machine."""

from __future__ import annotations

import errno
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp.workspace.sandbox_seccomp import namespaced_filter, shared_filter

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
ARCHITECTURES = {"x86_64": X86_64, "aarch64": AARCH64}
ALLOWED = 0
CLONE_NEWUSER, CLONE_THREAD = 0x10000000, 0x00010000


def verdict(program: bytes | None, number: int, first: int = 0, architecture: int = X86_64) -> int:
    """The errno that a call gets, `ALLOWED` for none, by classic BPF (linux/filter.h) on `struct seccomp_data`."""
    assert program is not None
    data = struct.pack("=iIQ6Q", number, architecture, 0, first, 0, 0, 0, 0, 0)
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x20:
            [accumulator] = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return ALLOWED if value == 0x7FFF0000 else value & 0xFFFF
        else:
            truth = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            at += if_true if truth else if_false


def alone(machine: str = "x86_64") -> bytes | None:
    return namespaced_filter(machine)


def shared(machine: str = "x86_64", *, abi: int = 7, network: bool = False, read_only: bool = False) -> bytes | None:
    return shared_filter(machine, abi=abi, network=network, read_only=read_only)


UNIX, INET, PACKET, VSOCK = socket.AF_UNIX, socket.AF_INET, 17, 40


@pytest.mark.parametrize(
    ("program", "number", "first", "expected"),
    [
        pytest.param(alone(), 0, 0, ALLOWED, id="read is allowed"),
        pytest.param(shared(), 0, 0, ALLOWED, id="also beside others"),
        pytest.param(alone(), 250, 0, errno.EPERM, id="keyctl is not"),
        pytest.param(alone(), 101, 0, ALLOWED, id="ptrace in a PID namespace is"),
        pytest.param(shared(), 101, 0, errno.EPERM, id="ptrace beside others is not"),
        pytest.param(alone(), 272, 0, errno.EPERM, id="unshare is not"),
        pytest.param(alone(), 56, CLONE_THREAD, ALLOWED, id="a new thread is"),
        pytest.param(alone(), 56, CLONE_NEWUSER | 17, errno.EPERM, id="a new user namespace is not"),
        pytest.param(alone(), 435, 0, errno.ENOSYS, id="clone3 seems missing, so that clone is used"),
        pytest.param(alone(), 425, 0, errno.ENOSYS, id="io_uring seems missing"),
        pytest.param(alone(), 41, UNIX, ALLOWED, id="a Unix socket among namespaces is allowed"),
        pytest.param(alone(), 41, INET, ALLOWED, id="so is one of a network namespace"),
        pytest.param(alone(), 41, VSOCK, errno.EACCES, id="vsock has no namespace and is not"),
        pytest.param(shared(), 41, INET, errno.EACCES, id="no internet socket beside others"),
        pytest.param(shared(network=True), 41, INET, ALLOWED, id="but with network"),
        pytest.param(shared(network=True), 41, PACKET, errno.EACCES, id="and then no packet socket"),
        pytest.param(shared(network=True), 41, UNIX, errno.EACCES, id="nor a Unix socket"),
        pytest.param(shared(), 302, 0, ALLOWED, id="its own limits may be set"),
        pytest.param(shared(), 302, 1234, errno.EPERM, id="those of others may not"),
        pytest.param(shared(), 90, 0, ALLOWED, id="chmod is allowed"),
        pytest.param(shared(read_only=True), 90, 0, errno.EPERM, id="but not where nothing may change"),
        pytest.param(shared(abi=2), 76, 0, errno.EPERM, id="truncate is not where Landlock cannot hold it"),
        pytest.param(shared(abi=3), 76, 0, ALLOWED, id="and is where it can"),
        pytest.param(alone(), 0x40000000 | 250, 0, errno.ENOSYS, id="x32 is no way around"),
    ],
)
def test_a_call_gets(program: bytes, number: int, first: int, expected: int):
    assert verdict(program, number, first) == expected


@pytest.mark.parametrize(
    ("number", "first", "expected"),
    [
        pytest.param(63, 0, ALLOWED, id="read"),
        pytest.param(219, 0, errno.EPERM, id="keyctl"),
        pytest.param(117, 0, errno.EPERM, id="ptrace"),
        pytest.param(198, INET, errno.EACCES, id="socket"),
        pytest.param(220, CLONE_NEWUSER, errno.EPERM, id="clone of a user namespace"),
    ],
)
def test_on_aarch64_a_call_gets(number: int, first: int, expected: int):
    assert verdict(shared("aarch64"), number, first, AARCH64) == expected


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**64 - 1), st.sampled_from(["x86_64", "aarch64"]))
def test_every_call_of_another_architecture_seems_missing(number: int, first: int, machine: str):
    for program in (alone(machine), shared(machine, network=True)):
        for architecture in (0x40000003, 0x40000028, *(set(ARCHITECTURES.values()) - {ARCHITECTURES[machine]})):
            assert verdict(program, number, first, architecture) == errno.ENOSYS


@given(st.integers(0, 600), st.integers(0, 2**64 - 1), st.booleans(), st.booleans())
def test_less_is_never_more(number: int, first: int, network: bool, read_only: bool):
    """What is allowed without network, or read-only, is allowed with more too."""
    if verdict(shared(network=network, read_only=read_only), number, first) == ALLOWED:
        assert verdict(shared(network=True), number, first) == ALLOWED


def test_an_unknown_architecture_has_no_filter():
    assert (namespaced_filter("riscv64"), shared("riscv64")) == (None, None)
