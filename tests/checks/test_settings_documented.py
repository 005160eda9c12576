"""Every setting is documented with its default, and the documentation names no setting that does not exist."""

import re
from pathlib import Path

from auth.permissions import Mode
from gateway.reach import TOKEN_VARIABLE
from gateway.settings import variables

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
NAME = re.compile(r"\bSUPERPI_[A-Z0-9_]*[A-Z0-9]\b")
ROW = re.compile(r"^\| `(SUPERPI_\w+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def shown(default):
    """A default as the reference writes it; None where it depends on the machine and is told in words."""
    match default:
        case Mode():
            return f"`{default.label}`"
        case str() | int() | float():
            return f"`{default}`"
        case None | ():
            return "none"
    return None


def test_every_setting_is_in_the_reference_with_its_default_and_its_meaning():
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    rows = {name: (default, meaning) for name, default, meaning in ROW.findall(page)}
    expected = {name: shown(default) for name, (_, default) in variables().items()}
    assert {name: expected[name] and default for name, (default, _) in rows.items() if name in expected} == expected
    assert rows.keys() == expected.keys()
    assert [name for name, (_, meaning) in rows.items() if len(meaning.split()) < 3] == []


def test_the_documentation_names_only_settings_that_exist():
    named = {name for page in PAGES if page.exists() for name in NAME.findall(page.read_text("utf-8"))}
    # The commands read that one, and no server does.
    assert named - variables().keys() == {TOKEN_VARIABLE}
