"""A setting that cannot be used is told in words of ours, and a secret in it is not told at all."""

import os
import re
from dataclasses import fields

import pytest
from pydantic import SecretStr
from pydantic_core._pydantic_core import list_all_errors

from gateway.setting_faults import MUST_BE, PREFIX, sentence, unknown
from gateway.settings import Settings, SettingsError, load, variables


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """No setting but those of the test."""
    for name in [name for name in os.environ if name.upper().startswith(PREFIX)]:
        monkeypatch.delenv(name)


def fault(monkeypatch, **environment):
    """What is said of that environment."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as raised:
        load()
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("SUPERPI_MIGRATE", "later", "must be 'auto', 'check' or 'off', got 'later'"),
        ("SUPERPI_ANONYMOUS", "", "must be 'auto', 'always' or 'never', got ''"),
        ("SUPERPI_DATABASE_SECONDS", "0", "must be above 0, got '0'"),
        ("SUPERPI_DATABASE_SECONDS", "five", "must be a number, got 'five'"),
        ("SUPERPI_DATABASE_READERS", "101", "must be at most 100, got '101'"),
        ("SUPERPI_DATABASE_READERS", "2.5", "must be a whole number, got '2.5'"),
        ("SUPERPI_DRAIN_SECONDS", "-0.5", "must be at least 0, got '-0.5'"),
        ("SUPERPI_HARNESS_DIR", "nowhere", "must be a folder that there is, got 'nowhere'"),
        ("SUPERPI_LIMITS__SHELLS", "0", "must be above 0, got 0"),
        ("SUPERPI_LIMITS__SHELLS", "all", "must be a whole number, got 'all'"),
        ("SUPERPI_PORT", "8\x1b[2J\n0", "must be a whole number, got '8\\x1b[2J\\n0'"),
        ("SUPERPI_PORT", "9" * 100 + "x", f"must be a whole number, got '{'9' * 80}...'"),
        ("SUPERPI_PORT", "postgresql://u:hunter2@h/x", "must be a whole number, got 'postgresql://u:***@h/x'"),
        ("SUPERPI_PORT", "spi_pat_" + "a" * 49, "must be a whole number, got 'spi_pat_***'"),
    ],
)
def test_a_bad_value_is_named_with_what_it_must_be_and_what_it_is(monkeypatch, name, value, words):
    """On one line, without what has the form of a secret."""
    assert fault(monkeypatch, **{name: value}) == f"{name}: {words}"


def test_the_value_of_a_secret_setting_is_not_shown():
    """Whatever is wrong with it."""
    with pytest.raises(SettingsError) as raised:
        load(database_url=4711)
    assert str(raised.value) == "SUPERPI_DATABASE_URL: must be text, got a value that is not shown"


def test_every_url_of_a_database_is_a_secret_setting():
    """So a new one is not shown either."""
    urls = {name: field for name, field in Settings.model_fields.items() if re.fullmatch(r"database_.*url", name)}
    assert urls.keys() == {"database_url", "database_listen_url"}
    assert all(field.annotation == SecretStr | None for field in urls.values())


@pytest.mark.parametrize("known", list_all_errors(), ids=lambda known: known["type"])
def test_no_fault_that_the_library_knows_is_told_in_its_words(known):
    """Those that no setting has come to yet are told in general."""
    context = known.get("example_context") or {}
    told = sentence({"type": known["type"], "loc": ("port",), "msg": "LIBRARY", "ctx": context}, secret=())
    assert told.startswith("SUPERPI_PORT: must be ")
    assert "{" not in told
    assert known["type"] in MUST_BE or told == "SUPERPI_PORT: must be what docs/settings.md says"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("SUPERPI_LIMITS__GREP_MATCH", "did you mean SUPERPI_LIMITS__GREP_MATCHES?"),
        ("SUPERPI_LIMITS", "did you mean SUPERPI_LIMITS__SHELLS?"),
        ("superpi_prot", "did you mean SUPERPI_PORT?"),
        ("SUPERPI_QQQQQQ", "docs/settings.md lists those there are"),
    ],
)
def test_a_variable_that_is_no_setting_is_told_with_the_nearest_that_is(name, line):
    """Among those that are, which are not told."""
    environment = [*variables(), name, "PATH", "NOT_SUPERPI_PORT"]
    assert unknown(environment, variables()) == [f"{name} is not a setting and has no effect; {line}"]


@pytest.mark.parametrize("name", ["SUPERPI_LIMITS__NO", "SUPERPI_LIMITS", "SUPERPI_LIMITS__SHELLS__X", "SUPERPI_NO"])
def test_a_variable_that_is_no_setting_changes_nothing(monkeypatch, name):
    before = load()
    monkeypatch.setenv(name, "{")
    assert load() == before


def test_every_setting_is_read_from_its_variable(monkeypatch):
    """Of the groups too, and in small letters."""
    numbers = {name: default + 1 for name, (_, default) in variables().items() if type(default) in (int, float)}
    for name, number in numbers.items():
        monkeypatch.setenv(name.lower(), str(number))
    found = load()
    for name, number in numbers.items():
        group, _, member = name.removeprefix(PREFIX).lower().partition("__")
        value = getattr(found, group)
        assert (getattr(value, member) if member else value) == number
    assert len(numbers) > len(fields(found.limits)) + len(fields(found.http))


@pytest.mark.parametrize("name", ["SUPERPI_HARNESS_DIR", "SUPERPI_OTLP_ENDPOINT", "SUPERPI_DATABASE_URL"])
def test_a_variable_that_is_set_to_nothing_is_not_set(monkeypatch, name):
    """As templates set those that nobody gave; the folder would otherwise be the current one."""
    monkeypatch.setenv(name, "")
    assert getattr(load(), name.removeprefix(PREFIX).lower()) is None
