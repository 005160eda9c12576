"""Shell commands as rules see them: which programs a command line runs."""

from __future__ import annotations


def parse(command: str) -> str:
    """Not built yet: the command as it is."""
    return command


def denies(pattern: str, script: str) -> bool:
    """Not built yet: every rule denies every command, so nothing runs that a rule was to stop."""
    return bool(pattern) or bool(script)
