"""Every fault that an input can have is told in a sentence of ours: no word of a library reaches a client."""

import re
from typing import Annotated, Any

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import BaseModel, TypeAdapter
from pydantic_core._pydantic_core import list_all_errors

from gateway.admin.faults import OTHERWISE, SENTENCES, described
from gateway.app import create_app
from gateway.bootstrap import build
from gateway.routes import is_admin
from gateway.settings import load

#: The faults of a part of a model by its kind, and by the bounds that it has. What is not here has to be added.
OF_KIND = {
    "str": {"string_type", "string_unicode"},
    "int": {"int_type", "int_parsing", "int_from_float", "int_parsing_size", "finite_number"},
    "float": {"float_type", "float_parsing", "finite_number"},
    "bool": {"bool_type", "bool_parsing"},
    "datetime": {"datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"},
    "list": {"list_type"},
    "dict": {"dict_type"},
    "enum": {"enum"},
    "literal": {"literal_error"},
    "model": {"model_type", "model_attributes_type"},
    "model-fields": {"missing", "extra_forbidden"},
    "function-after": {"value_error"},
    "function-before": {"value_error"},
    "nullable": set(),
    "default": set(),
    "model-field": set(),
}
OF_BOUND = {
    ("str", "min_length"): "string_too_short",
    ("str", "max_length"): "string_too_long",
    ("str", "pattern"): "string_pattern_mismatch",
    ("list", "min_length"): "too_short",
    ("list", "max_length"): "too_long",
    ("dict", "min_length"): "too_short",
    ("dict", "max_length"): "too_long",
    **{
        (number, bound): fault
        for number in ("int", "float")
        for bound, fault in {
            "gt": "greater_than",
            "ge": "greater_than_equal",
            "lt": "less_than",
            "le": "less_than_equal",
            "multiple_of": "multiple_of",
        }.items()
    },
    ("datetime", "tz_constraint"): "timezone_aware",
}
#: Keys of a part that hold no further part.
LEAVES = {"metadata", "serialization", "ref", "cls", "members", "expected", "function", "default", "default_factory"}


@pytest.fixture
async def app(tmp_path):
    (tmp_path / "workspace").mkdir()
    services = await build(load(workspace=(tmp_path / "workspace",), data_dir=tmp_path / "data"))
    yield create_app(services)
    await services.close()


def inputs(dependant: Dependant) -> list[Any]:
    """What a route takes: each as an annotated type."""
    own = [*dependant.path_params, *dependant.query_params, *dependant.header_params, *dependant.body_params]
    found = [Annotated[field.field_info.annotation, field.field_info] for field in own]
    return found + [type for inner in dependant.dependencies for type in inputs(inner)]


def faults(part: Any) -> set[str]:
    """The types of faults that a part of a schema of pydantic's, and all in it, can come to."""
    if isinstance(part, (list, tuple)):
        return set().union(*map(faults, part))
    if not isinstance(part, dict):
        return set()
    kind = part.get("type")
    found = set(OF_KIND[kind]) if isinstance(kind, str) else set()
    found |= {fault for (owner, bound), fault in OF_BOUND.items() if owner == kind and part.get(bound) is not None}
    return found.union(*(faults(inner) for key, inner in part.items() if key not in LEAVES))


async def test_every_fault_that_a_route_can_find_has_a_sentence_of_its_own(app):
    """From the models themselves, so that a field of a new kind cannot come without one."""
    dependants = [
        route.dependant
        for route in iter_route_contexts(app.routes)
        if isinstance(route.original_route, APIRoute) and is_admin(route.path)
    ]
    types = [type for dependant in dependants for type in inputs(dependant)]
    reachable = set().union(*(faults(TypeAdapter(type).core_schema) for type in types))
    assert {"missing", "extra_forbidden", "too_short", "enum", "int_parsing", "string_too_long"} <= reachable
    assert reachable - SENTENCES.keys() == set()


@pytest.mark.parametrize("known", list_all_errors(), ids=lambda known: known["type"])
def test_no_fault_that_the_library_knows_is_told_in_its_words(known):
    """A type without a sentence gets the general one; the braces of the others are all filled."""
    fault = {"type": known["type"], "loc": ("body", "x"), "msg": "LIBRARY", "ctx": known.get("example_context") or {}}
    (told,) = described([fault])
    assert told["pointer"] == "/x"
    assert re.fullmatch(r"[A-Z][^{}]*[.]", told["detail"])
    assert "LIBRARY" not in told["detail"]
    assert known["type"] in SENTENCES or told["detail"] == OTHERWISE


def test_the_table_names_only_types_that_there_are():
    assert SENTENCES.keys() - {known["type"] for known in list_all_errors()} == set()


def test_the_walk_finds_what_a_model_can_come_to():
    """Or the test above would hold of anything."""

    class Inner(BaseModel):
        numbers: list[int]

    assert (
        faults(TypeAdapter(Inner).core_schema)
        == OF_KIND["model"] | OF_KIND["model-fields"] | OF_KIND["list"] | OF_KIND["int"]
    )
