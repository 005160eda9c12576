"""Validating a call's arguments against the tool's schema, with faults in words that a model can act on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs

from mcp.protocol.offer import Accepted, ArgumentCheck, Rejected
from mcp.protocol.places import place
from mcp.tools.base import Tool

_MOST_FAULTS: Final = 10


def argument_check(tool: Tool) -> ArgumentCheck:
    """The validator of one tool: tolerated shapes are normalized first, then the schema decides.

    Raises ValueError when the tool's own schema is not valid JSON Schema 2020-12.
    """
    # The mask keeps a caller's values out of the sentences: they may be secrets, or megabytes.
    validator = jsonschema_rs.Draft202012Validator(dict(tool.spec.input_schema), mask="the value")
    normalize = tool.normalize

    def check(arguments: Mapping[str, Any]) -> Accepted | Rejected:
        normal = normalize(arguments)
        try:
            if validator.is_valid(normal):
                return Accepted(normal)
            faults = [_sentence(error) for error in validator.iter_errors(normal)]
        except ValueError:
            # The validator's own bound on depth; nothing that any schema here describes comes near it.
            return Rejected(("the arguments are nested too deeply",))
        return Rejected(tuple(faults[:_MOST_FAULTS]))

    return check


def _sentence(error: jsonschema_rs.ValidationError) -> str:
    where = place(error.instance_path)
    return f"{where}: {error.message}" if where else error.message
