"""The server's own database stands apart from what the tools work on: it holds sessions, tokens and signing keys."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from auth import globs
from auth.permissions import Effect, Layer, Rule
from gateway.setting_faults import variable
from gateway.settings import Settings, SettingsError
from gateway.store import sqlite
from gateway.store.engine import parse, product_of

_TOOLS: Final = ("read", "write", "find", "ls")


def own_rules(settings: Settings) -> tuple[Rule, ...]:
    """What keeps the data folder out of reach of the tools where it lies in an extra root.

    Raises SettingsError where the database lies in the workspace, or where no rule would guard it, and
    StoreUnavailable for a URL at which there can be no database.
    """
    data = settings.data_dir.resolve()
    _stand_apart(settings, data)
    around = [root for root in settings.workspace[1:] if data.is_relative_to(root)]
    match = f"/{globs.literal(data.as_posix().lstrip('/'))}/**"
    return tuple(Rule(tool, match, Effect.DENY, Layer.BUILT_IN) for tool in _TOOLS) if around else ()


def _stand_apart(settings: Settings, data: Path) -> None:
    url = parse(settings.store_url)
    if product_of(url) is not sqlite:
        return
    workspace, *extra = settings.workspace
    if settings.database_url is None:
        # In an extra root the rules keep the folder apart, unless it is all that there is.
        name, place, guarded = "data_dir", data, data not in extra
    else:
        name, place, guarded = "database_url", sqlite.file_of(url).resolve(), False
    roots = (workspace,) if guarded else settings.workspace
    if any(place.is_relative_to(root) for root in roots):
        raise SettingsError(
            f"{variable(name)}: must lie outside the workspace and its extra roots: tools work there, and the database "
            f"holds sessions and keys. Set {variable('data_dir')} to a folder elsewhere, or {variable('workspace')} to "
            "one that does not hold it."
        )
