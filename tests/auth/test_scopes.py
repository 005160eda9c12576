"""Scopes: what can be written, and which mode each set of them allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth import scopes
from auth.permissions import Cap, Layer, Mode
from auth.scopes import NotScopes, Scope

SETS = st.frozensets(st.sampled_from(Scope))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["mcp:read"], {Scope.READ}, id="one"),
        pytest.param(["mcp:read", "admin"], {Scope.READ, Scope.ADMIN}, id="several"),
        pytest.param(["mcp:read  admin\tmcp:full"], {Scope.READ, Scope.ADMIN, Scope.FULL}, id="several in one text"),
        pytest.param(["mcp:write", "mcp:write"], {Scope.WRITE}, id="the same twice"),
    ],
)
def test_scopes_are_read_from(names, expected):
    assert scopes.parse(names) == expected


KNOWN = "there are mcp:read, mcp:write, mcp:full, admin."


@pytest.mark.parametrize(
    ("names", "why"),
    [
        pytest.param([], f"At least one scope is needed; {KNOWN}", id="nothing"),
        pytest.param(["", " "], f"At least one scope is needed; {KNOWN}", id="blanks"),
        pytest.param(["mcp:all"], f"There is no scope 'mcp:all'; {KNOWN}", id="an unknown one"),
        pytest.param(["MCP:READ"], f"There is no scope 'MCP:READ'; {KNOWN}", id="the wrong case"),
        pytest.param(["mcp:read,admin"], f"There is no scope 'mcp:read,admin'; {KNOWN}", id="a comma"),
        pytest.param(["b", "admin", "a\n"], f"There is no scope 'a', 'b'; {KNOWN}", id="a known one among unknown"),
    ],
)
def test_an_error_names_what_is_wrong_and_what_there_is(names, why):
    assert scopes.parse(names) == NotScopes(why)


@pytest.mark.parametrize(
    ("held", "mode"),
    [
        pytest.param(set(), None, id="none"),
        pytest.param({Scope.ADMIN}, None, id="admin alone"),
        pytest.param({Scope.READ}, Mode.READ_ONLY, id="mcp:read"),
        pytest.param({Scope.WRITE}, Mode.WORKSPACE_WRITE, id="mcp:write"),
        pytest.param({Scope.FULL}, Mode.FULL, id="mcp:full"),
        pytest.param({Scope.READ, Scope.FULL, Scope.ADMIN}, Mode.FULL, id="the broadest of several"),
        pytest.param({Scope.READ, Scope.ADMIN}, Mode.READ_ONLY, id="mcp:read beside admin"),
    ],
)
def test_the_mode_that_scopes_allow(held, mode):
    held = frozenset(held)
    assert (scopes.mode(held), scopes.cap(held)) == (mode, None if mode is None else Cap(Layer.SCOPE, mode))


@pytest.mark.requirement("AU-13")
@given(SETS, SETS)
def test_more_scopes_never_allow_less(some, more):
    def rank(held):
        mode = scopes.mode(held)
        return -1 if mode is None else mode

    assert rank(some | more) == max(rank(some), rank(more))


@given(SETS)
def test_scopes_are_stored_and_read_back(held):
    assert scopes.stored(scopes.text(held)) == held


@given(SETS.filter(bool))
def test_what_is_shown_can_be_written(held):
    assert scopes.parse([scopes.text(held)]) == held


def test_a_stored_scope_that_is_not_known_allows_nothing():
    assert scopes.stored("admin mcp:everything mcp:read") == {Scope.ADMIN, Scope.READ}
