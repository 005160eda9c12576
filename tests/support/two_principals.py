"""Two principals of whom neither may see anything of the other, and what it means to see something.

Everything that one of them makes carries a mark of theirs or is known by its id. A run of random operations picks who
acts and what to ask with, and judges every answer. A failure names the seed, with which the run comes again.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

T = TypeVar("T")

#: A failure's seed goes here to see it again.
VARIABLE: Final = "TWO_PRINCIPALS_SEED"
_WORD: Final = re.compile(r"[A-Za-z0-9_-]{16,}")


class Seen(AssertionError):  # noqa: N818 - what happened
    """One of them saw something of the other, or could tell that it is there."""


@dataclass(slots=True)
class Person:
    """One of the two. `mark` is in everything they make; `ids` name what the server named."""

    principal: str
    mark: str
    ids: set[str] = field(default_factory=set)
    made: dict[str, list[str]] = field(default_factory=dict)

    def keep(self, kind: str, id: str) -> str:
        """Remember what they made or were given, to ask with it later."""
        self.made.setdefault(kind, []).append(id)
        return id

    def all(self, kind: str) -> list[str]:
        """What they made of that kind, the newest last."""
        return self.made.get(kind, [])

    def is_shown(self, text: str) -> bool:
        """Whether a text shows anything of theirs."""
        return self.mark in text or self.principal in text or not self.ids.isdisjoint(_WORD.findall(text))


class Run:
    """The dice and the judge of one run. It is over when as many answers were judged as it has `operations`."""

    def __init__(self, operations: int) -> None:
        self.operations = operations
        self.seed = int(os.environ.get(VARIABLE) or random.SystemRandom().getrandbits(32))
        self.dice = random.Random(self.seed)
        self.alice, self.bob = (Person(f"local:{name}", f"{name}{self._hex(64)}") for name in ("alice", "bob"))
        self.done: list[str] = []
        self.judged = 0
        self.own_seen = 0

    def is_over(self) -> bool:
        """Whether there were enough."""
        return self.judged >= self.operations

    def _hex(self, bits: int) -> str:
        return f"{self.dice.getrandbits(bits):0{bits // 4}x}"

    def turn(self, operations: Sequence[Callable[..., T]]) -> tuple[Callable[..., T], Person, Person]:
        """The next operation, who does it, and the other."""
        chosen = self.dice.choice(operations)
        self.done.append(chosen.__name__)
        return (chosen, *self.dice.choice([(self.alice, self.bob), (self.bob, self.alice)]))

    def name(self, person: Person, kind: str) -> str:
        """A new id with the person's mark."""
        return f"{person.mark}-{kind}-{self._hex(48)}"

    def nobodys(self) -> str:
        """An id of the same form that never was."""
        return f"nobody{self._hex(64)}-{self._hex(48)}"

    def often(self, chance: float) -> bool:
        """Yes, with that chance."""
        return self.dice.random() < chance

    def one_of(self, person: Person, *kinds: str) -> str | None:
        """One thing that they made of these kinds, most often a new one."""
        made = [id for kind in kinds for id in person.all(kind)[-8:]] if self.often(0.8) else None
        made = made or [id for kind in kinds for id in person.all(kind)]
        return self.dice.choice(made) if made else None

    def anybodys(self, me: Person, other: Person, *kinds: str) -> str | None:
        """Of these kinds one of mine, one of the other's, one that never was, or none."""
        return self.dice.choice([self.one_of(me, *kinds), self.one_of(other, *kinds), self.nobodys(), None])

    def judge(self, me: Person, other: Person, answer: object, *asked: str | None) -> None:
        """Raise Seen when an answer to `me` shows something of the other, but for what was `asked` with."""
        self.judged += 1
        text = without(str(answer), *asked)
        if other.is_shown(text):
            self.fail(f"{me.principal} saw of {other.principal}: {text[:2000]}")
        self.own_seen += me.is_shown(text)

    def alike(self, foreign: str, unknown: str) -> None:
        """Raise Seen when what is another's can be told from what never was."""
        if foreign != unknown:
            self.fail(f"another's is answered with {foreign}, what never was with {unknown}")

    def fail(self, why: str) -> None:
        """Raise Seen with all that it takes to see it again."""
        raise Seen(f"{VARIABLE}={self.seed}, operation {len(self.done)}, {self.done[-1]}: {why}")


def without(text: str, *asked: str | None) -> str:
    """The text with a placeholder for each id that it was asked with."""
    for given in filter(None, asked):
        text = text.replace(given, "<asked>")
    return text
