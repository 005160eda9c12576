"""What the product itself offers, held to what the protocol asks of tools, schemas, icons and metadata."""

import ast
import base64
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import mcp
from auth import refusals
from gateway.identity import server_info
from gateway.settings import Settings
from mcp.catalogue import offer_of, standard_catalogue
from mcp.harness.registry import load
from mcp.limits import Limits
from mcp.protocol import results, stateless, telling
from mcp.protocol.encode import server_info as encoded
from mcp.protocol.revisions import EVERY, Revision
from mcp.tools import bash

OFFER = offer_of(standard_catalogue(load(None), Limits()), server_info())
SCHEMAS = {
    f"{tool.name} {kind}": schema
    for tool in OFFER.tools
    for kind, schema in (("input", tool.input_schema), ("output", tool.output_schema))
    if schema is not None
}


def keys(value):
    """Every key of every object in a schema."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from keys(item)


@pytest.mark.requirement("JS-3", "JS-4", "TL-4", "TL-8", "HDR-9")
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_is_an_object_that_points_nowhere_and_repeats_nothing_in_headers(schema):
    """So nothing is ever fetched for one, and no argument is shown to whoever sees headers."""
    assert schema["type"] == "object"
    assert not {"$ref", "$dynamicRef", "$id", "$schema", "x-mcp-header"}.intersection(keys(schema))
    assert set(OFFER.mirrored.values()) == {()}


@pytest.mark.requirement("TL-5")
def test_names_are_unique():
    names = [tool.name for tool in OFFER.tools]
    assert len(set(names)) == len(names)


@pytest.mark.requirement("CT-3")
@pytest.mark.parametrize("revision", EVERY)
def test_the_picture_of_the_server_is_a_data_url_that_holds_one(revision):
    icons = encoded(server_info(), revision).get("icons", ())
    assert bool(icons) is (revision >= Revision.R2025_11_25)
    for icon in icons:
        kind, _, content = icon["src"].removeprefix("data:").partition(";base64,")
        assert (kind, icon["mimeType"]) == ("image/svg+xml",) * 2
        assert isinstance(icon["sizes"], tuple)
        assert ET.fromstring(base64.b64decode(content, validate=True)).tag.endswith("svg")


KEYS = [
    refusals.META_KEY,
    bash.META_KEY,
    results.SERVER_KEY,
    telling.SUBSCRIPTION_KEY,
    stateless.VERSION_KEY,
    stateless.CAPABILITIES_KEY,
    stateless.CLIENT_KEY,
    stateless.LOG_LEVEL_KEY,
]


@pytest.mark.requirement("CT-4")
@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_metadata_has_a_prefix_of_ours_or_the_specifications(key):
    """Labels, and a name that begins and ends with a letter or digit; what is reserved is used as it is defined."""
    label = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
    assert re.fullmatch(rf"(?:{label}\.)+{label}/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", key)
    assert key.startswith(("io.superpi/", "io.modelcontextprotocol/"))


@pytest.mark.requirement("HL-3", "AU-25")
def test_a_server_listens_on_loopback_unless_it_is_told_otherwise():
    assert Settings.model_fields["host"].default == "127.0.0.1"


@pytest.mark.requirement("DEP-1", "EL-2", "EL-3")
def test_the_product_asks_for_nothing_but_a_choice():
    """Models, roots and URLs are asked for by fixtures alone; the one form is that of a permission."""
    asked = {"Elicit": [], "ElicitUrl": [], "Sample": [], "ListRoots": []}
    root = Path(mcp.__file__).parent
    for path in root.rglob("*.py"):
        named = {node.id for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Name)}
        if "protocol" not in path.parts:
            for name in named.intersection(asked):
                asked[name].append(path.relative_to(root).as_posix())
    assert asked == {"Elicit": ["consent.py"], "ElicitUrl": [], "Sample": [], "ListRoots": []}
