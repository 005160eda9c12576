"""The server's own database stands apart from what the tools work on: it holds sessions, tokens and signing keys."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from auth import globs
from auth.permissions import Effect, Layer, Rule
from gateway.setting_faults import variable
from gateway.settings import Settings, SettingsError
from gateway.store import sqlite
from gateway.store.engine import parse, product_of

_log: Final = logging.getLogger("superpi.start")

_TOOLS: Final = ("read", "write", "find", "ls")


def own_rules(settings: Settings) -> tuple[Rule, ...]:
    """What keeps the data folder out of reach of the tools where it lies in the workspace or an extra root.

    Raises SettingsError where the database lies in one of these and no rule would guard it, and StoreUnavailable for
    a URL at which there can be no database.
    """
    data = settings.data_dir.resolve()
    _stand_apart(settings, data)
    workspace, *extra = settings.workspace
    matches = [data.relative_to(workspace)] if data.is_relative_to(workspace) else []
    matches += [data for root in extra if data.is_relative_to(root)]
    if matches:
        _log.warning(
            "%s lies where tools work. They are kept out of it, but a folder elsewhere is safer", variable("data_dir")
        )
    places = [f"/{globs.literal(match.as_posix().lstrip('/'))}/**" for match in matches]
    return tuple(Rule(tool, place, Effect.DENY, Layer.BUILT_IN) for place in places for tool in _TOOLS)


def _stand_apart(settings: Settings, data: Path) -> None:
    url = parse(settings.store_url)
    if product_of(url) is not sqlite:
        return
    if settings.database_url is None:
        # The rules keep the folder apart, unless it is all that there is.
        name, is_among = "data_dir", data in settings.workspace
    else:
        place = sqlite.file_of(url).resolve()
        name, is_among = "database_url", any(place.is_relative_to(root) for root in settings.workspace)
    if is_among:
        raise SettingsError(
            f"{variable(name)}: must lie outside the workspace and its extra roots: tools work there, and the database "
            f"holds sessions and keys. Set {variable('data_dir')} to a folder elsewhere, or {variable('workspace')} to "
            "one that does not hold it."
        )
