"""What a record becomes: one line, redacted in every part, whatever logger it came from."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.logs import JsonLines, TextLines, escaped
from telemetry.redaction import Redactor

ROOT = Path(__file__).parents[2]
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"
#: One secret of each kind, by the text that must not come out.
PLANTED = {
    "Zq9TokenZq9TokenZq9": "spi_pat_Zq9TokenZq9TokenZq9",
    "Zq9Bearer": "Bearer Zq9Bearer",
    "c2lnbmF0dXJl": JWT,
    "Zq9UrlPassword": "postgresql://user:Zq9UrlPassword@db.example/superpi",
    "Zq9Query": "https://app.example/callback?code=Zq9Query",
    "Zq9Setting": "Zq9Setting",
    "Zq9 with a space": "Zq9 with a space",
}
SETTINGS = ("Zq9Setting", "Zq9 with a space")
FORMS = pytest.mark.parametrize("form", [pytest.param(TextLines, id="text"), pytest.param(JsonLines, id="json")])


class Unprintable:
    def __str__(self):
        raise RuntimeError(PLANTED["Zq9Bearer"])

    __repr__ = __str__


def record(message, *args, extra=None, error=None, **attributes):
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.getLogger("superpi.test").makeRecord(
        "superpi.test", logging.INFO, __file__, 1, message, args, info, extra=extra
    )
    made.created = 0.0
    vars(made).update(attributes)
    return made


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_a_record_is_one_line_of_text():
    line = TextLines().format(record("done %s", "now", extra={"request_id": "r1", "n": 2}))
    assert line == "1970-01-01T00:00:00.000Z INFO superpi.test done now request_id=r1 n=2"


def test_a_record_is_one_object_of_json():
    line = JsonLines().format(record("done %s", "now", extra={"request_id": "r1", "nested": {"a": [1, None, True]}}))
    assert json.loads(line) == {
        "ts": "1970-01-01T00:00:00.000Z",
        "level": "info",
        "logger": "superpi.test",
        "message": "done now",
        "request_id": "r1",
        "nested": {"a": [1, None, True]},
    }


def test_an_extra_cannot_pass_for_the_time_or_the_level():
    assert json.loads(JsonLines().format(record("m", extra={"ts": "x", "level": "y"})))["level"] == "info"


@FORMS
@pytest.mark.parametrize(("secret", "text"), PLANTED.items())
def test_a_planted_secret_is_in_no_part_of_a_record(form, secret, text):
    error = raised(ValueError(f"failed with {text}"))
    planted = record(
        f"{text} %s %r", text, {"k": text}, extra={"a": text, text: 1, "b": [{"c": (text,)}], "d": text.encode()},
        error=error, stack_info=f"Stack:\n  {text}",
    )  # fmt: skip
    line = form(Redactor(SETTINGS)).format(planted)
    assert secret not in line
    assert "failed with" in line


@FORMS
def test_a_key_that_names_a_secret_hides_its_value(form):
    line = form().format(record("m", extra={"password": "Zq9", "headers": {"Authorization": "Zq9", "accept": "all"}}))
    assert ("Zq9" in line, "all" in line) == (False, True)


@FORMS
def test_arguments_that_do_not_fit_are_left_out(form):
    assert "Zq9" not in form().format(record("%d of %d", "spi_pat_Zq9"))
    assert "(its arguments do not fit)" in form().format(record("%d", "x"))


@FORMS
def test_what_cannot_be_written_is_named_by_its_type(form):
    assert "<Unprintable>" in form().format(record("m", extra={"a": Unprintable(), "b": [Unprintable()]}))
    assert "(its arguments do not fit)" in form().format(record("%s", Unprintable()))


@FORMS
def test_a_value_that_holds_itself_ends(form):
    knot = []
    knot.append(knot)
    assert form().format(record("m", extra={"a": knot})).count("\n") == 0


@FORMS
@given(st.text(), st.text(), st.dictionaries(st.text(min_size=1), st.text()))
def test_no_words_make_a_second_line(form, message, name, extra):
    line = form().format(record("%s", message, name=name, extra={"x": extra}))
    assert (line.splitlines(), line.isprintable()) == ([line], True)


def test_no_line_of_a_traceback_passes_for_a_record():
    forged = "1970-01-01T00:00:00.000Z INFO superpi.audit all is well"
    lines = TextLines().format(record("failed", error=raised(ValueError(f"x\n{forged}\r\x1b[2J")))).splitlines()
    assert [line for line in lines if "all is well" in line] == [f"  | {forged}"]
    assert all(line.startswith("  | ") and line.isprintable() for line in lines[1:])


def test_escaped_text_keeps_what_can_be_read():
    assert escaped("é 漢 \n\t\x1b\u202e") == "é 漢 \\n\\t\\x1b\\u202e"


SCRIPT = """
import logging, sys, threading, warnings
from telemetry.logs import configure
configure("debug", sys.argv[1], ["Zq9Setting"])
handed = logging.getLogger("third.party")
handed.debug("Authorization: Bearer %s", "Zq9Bearer", extra={"url": "/x?code=Zq9Query"})
handed.debug("%d", "Zq9Setting")
logging.getLogger("urllib3.connectionpool").debug("chatter")
warnings.warn("warned of Zq9Setting")
def die():
    raise RuntimeError("thread Zq9Setting")
thread = threading.Thread(target=die)
thread.start()
thread.join()
raise RuntimeError("process Zq9Setting")
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_process_at_debug_shows_no_planted_secret_on_any_way_out(form):
    """Third-party loggers, arguments that do not fit, warnings, and tracebacks of threads and of the process."""
    ran = subprocess.run([sys.executable, "-P", "-c", SCRIPT, form], cwd=ROOT, env={"PYTHONPATH": str(ROOT)},
                         capture_output=True, text=True)  # fmt: skip
    said = [word for word in ("Bearer ***", "warned of ***", "thread ***", "process ***") if word in ran.stderr]
    assert said == ["Bearer ***", "warned of ***", "thread ***", "process ***"]
    assert ("Zq9" in ran.stderr, "chatter" in ran.stderr, "Logging error" in ran.stderr) == (False, False, False)
    assert (ran.returncode, ran.stdout) == (1, "")
