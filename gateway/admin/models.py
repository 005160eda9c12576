"""What every resource shares in its models: strictness, the problem, the bounds of a list. Knows no resource."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict

from auth.caller import ANONYMOUS
from gateway import issuing

MOST_ITEMS: Final = 200
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _text(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold U+0000")
    return text


#: A client's words, to be looked up or compared and never kept.
Words = Annotated[str, Field(max_length=512, json_schema_extra={"pattern": r"^[^\u0000]*$"}), AfterValidator(_text)]


def _whole(value: object) -> object:
    """To JSON 7.0 is the same number as 7 (JSON Schema, section 4.2.3)."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


#: Before the bounds of a whole number in a body, which is neither text nor a truth value.
WHOLE: Final = (Strict(), BeforeValidator(_whole))


def _our_principal(id: str) -> str:
    if (why := issuing.principal_fault(id)) is not None:
        raise ValueError(why)
    return id


#: In documents alone: the sentences on what is wrong are ours.
_OUR_PATTERN: Final = "local:[A-Za-z0-9._-]{1,64}"
#: A principal of our own, which need not be there yet.
OurPrincipal = Annotated[
    str, Field(max_length=70, json_schema_extra={"pattern": f"^{_OUR_PATTERN}$"}), AfterValidator(_our_principal)
]


def _any_principal(id: str) -> str:
    # Of an issuer's no more is known than that the subject follows it.
    if id != ANONYMOUS and "#" not in id and (why := issuing.principal_fault(id)) is not None:
        raise ValueError(why)
    return id


#: A principal to look for: `anonymous`, one of ours, or an issuer's.
AnyPrincipal = Annotated[
    Words,
    Field(json_schema_extra={"pattern": f"^({ANONYMOUS}|{_OUR_PATTERN}|[^\\u0000#]*#[^\\u0000]*)$"}),
    AfterValidator(_any_principal),
]
_PLACE: Final = r"(0|[1-9][0-9]{0,15})\.[!-~]+"


def _place(text: str) -> str:
    if not re.fullmatch(_PLACE, text):
        raise ValueError("must be what the page before has as its `after`")
    return text


#: Where a page of a list that is ordered by time ended.
Place = Annotated[Words, Field(json_schema_extra={"pattern": f"^{_PLACE}$"}), AfterValidator(_place)]


def _digits(value: object) -> object:
    """Digits alone: `1_0` and `+5` are Python's numbers, and no number of anybody else's."""
    if isinstance(value, str) and not (value.isascii() and value.isdigit()):
        raise ValueError("must be a whole number")
    return value


def _rfc3339(value: object) -> object:
    """A date and a time with a zone: what else pydantic takes for a moment is not what the document says."""
    if isinstance(value, str) and not _RFC3339.fullmatch(value):
        raise ValueError("must be a date and time by RFC 3339, as in 2026-01-31T12:00:00Z")
    return value


#: A moment in the query.
Moment = Annotated[AwareDatetime, BeforeValidator(_rfc3339)]


class Input(BaseModel):
    """What a client sends: a field that is not known is a fault."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Listing(Input):
    """How much of a list is asked for."""

    limit: Annotated[int, BeforeValidator(_digits)] = Field(
        50, ge=1, le=MOST_ITEMS, description="How many items the page has at most."
    )
    after: Place | None = Field(None, description="Where the page before ended: its `after`.")


class ById(Listing):
    """The same, of a list that is ordered by ids."""

    after: Words | None = Field(None, description="Where the page before ended: its `after`.")


class ByNumber(Listing):
    """The same, of a list that is ordered by numbers."""

    after: Annotated[Words, Field(json_schema_extra={"pattern": "^[0-9]{1,18}$"})] | None = Field(
        None, description="Where the page before ended: its `after`."
    )


class Fault(BaseModel):
    """One thing that is wrong with an input."""

    pointer: str | None = Field(None, description="Where in the body, as a JSON Pointer (RFC 6901).")
    parameter: str | None = Field(None, description="Which parameter of the query or the path.")
    detail: str = Field(description="What to do about it.")


class Problem(BaseModel):
    """A refusal, by RFC 9457."""

    type: str = Field(description="Always `about:blank`: the status says what kind of problem it is.")
    title: str = Field(description="The status in words.")
    status: int = Field(description="The status.")
    detail: str = Field(description="A sentence for a person, which says what to do.")
    code: str = Field(description="A word for a program, which tells the problems of one status apart.")
    request_id: str = Field(description="The same as in the header `X-Request-Id`, the server's log and the audit log.")
    errors: list[Fault] | None = Field(None, description="What is wrong with the input, with the status 422.")
