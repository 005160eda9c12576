"""What the commands on tokens and principals print: the secret, tables, JSON. Knows no store."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from auth.tokens import Issued, PrincipalRecord

Fields = Mapping[str, Any]

TOKEN_COLUMNS: Final = ("id", "principal", "name", "token", "scopes", "state", "expires", "last_used")
PRINCIPAL_COLUMNS: Final = ("id", "state", "created", "created_by")


def say(text: str) -> None:
    """Words for a person, on stderr."""
    from telemetry.logs import escaped

    print(f"superpi: {escaped(text)}", file=sys.stderr)  # noqa: T201 - a command's own output


def show_secret(issued: Issued) -> None:
    """The secret alone on stdout, and what it is on stderr."""
    record = issued.record
    fields = {"id": record.id, "principal": record.principal, "expires": record.expires}
    show_new(fields | {"scopes": sorted(record.scopes)}, issued.minted.secret)


def show_new(token: Fields, secret: str) -> None:
    """The same of a token as data."""
    end = "never expires" if token["expires"] is None else f"expires {moment(token['expires'])}"
    say(f"Token {token['id']} for {token['principal']}, {' '.join(token['scopes'])}, {end}. It is shown only now:")
    print(secret, flush=True)  # noqa: T201 - what the command is for


def principal_fields(principal: PrincipalRecord) -> Fields:
    """Everything about a principal, as data."""
    return {
        "id": principal.id,
        "state": "enabled" if principal.disabled is None else "disabled",
        "created": principal.created,
        "created_by": principal.created_by,
        "disabled": principal.disabled,
        "disabled_by": principal.disabled_by,
    }


def show(rows: Sequence[Fields], columns: Sequence[str], *, as_json: bool, nothing: str) -> None:
    """The rows on stdout: all their fields as JSON, or these columns as a table. `nothing` is said when none."""
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False, default=moment))  # noqa: T201
    elif rows:
        print("\n".join(_table(rows, columns)))  # noqa: T201
    else:
        say(nothing)


def moment(value: datetime | None) -> str:
    """A time in UTC to the second; a hyphen for none."""
    return "-" if value is None else value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _table(rows: Sequence[Fields], columns: Sequence[str]) -> list[str]:
    lines = [[column.upper().replace("_", " ") for column in columns]]
    lines += [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _cell(value: Any) -> str:
    from telemetry.logs import escaped

    match value:
        case None | "":
            return "-"
        case datetime():
            return moment(value)
        case list():
            return " ".join(value)
        case _:
            return escaped(str(value))
