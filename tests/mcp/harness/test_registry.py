"""The registry: shipped harnesses, a team's folder on top, and complaints about it."""

from __future__ import annotations

import pytest

from mcp.harness.frontmatter import HarnessError
from mcp.harness.registry import MOST_BYTES, SHIPPED, load


def write(path, id, title="T"):
    path.write_text(f"---\nid: {id}\ntitle: {title}\ndescription: D\ntools: []\nmode: full\n---\nDo it.\n")


def test_without_a_folder_there_are_the_shipped_ones(tmp_path):
    registry = load(None)
    assert (registry.ids, registry.default, len(registry)) == (SHIPPED, "super-pi-code", 4)
    assert load(tmp_path) == registry


def test_those_of_a_team_follow_by_id(tmp_path):
    write(tmp_path / "1.md", "zebra")
    write(tmp_path / "2.md", "ant")
    assert load(tmp_path).ids == (*SHIPPED, "ant", "zebra")


def test_a_team_replaces_a_shipped_one_in_its_place(tmp_path):
    write(tmp_path / "mine.md", "super-pi-assistant", title="Ours")
    registry = load(tmp_path)
    assert registry.ids == SHIPPED
    assert (registry.get("super-pi-assistant").title, registry.get("super-pi-assistant").source) == ("Ours", "mine.md")


def test_only_markdown_files_directly_in_the_folder_count(tmp_path):
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub" / "deep.md", "deep")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "notes.txt").write_text("no harness")
    write(tmp_path / ".hidden.md", "hidden")
    write(tmp_path / "a.md", "ant")
    assert load(tmp_path).ids == (*SHIPPED, "ant")


def test_a_mounted_config_map_is_read_once(tmp_path):
    """Kubernetes links each key through `..data` to a folder that is named after the time of the update."""
    data = tmp_path / "..2026_11_30"
    data.mkdir()
    write(data / "ant.md", "ant")
    (tmp_path / "..data").symlink_to(data.name)
    (tmp_path / "ant.md").symlink_to("..data/ant.md")
    assert load(tmp_path).ids == (*SHIPPED, "ant")


def test_an_unknown_id_is_none():
    assert load(None).get("super-pi") is None


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        pytest.param(
            lambda folder: [write(folder / name, "ant") for name in ("a.md", "b.md")],
            "b.md: the id 'ant' is already that of a.md",
            id="an id twice",
        ),
        pytest.param(
            lambda folder: (folder / "a.md").symlink_to("nowhere"),
            "a.md: not a regular file, or a link to nothing",
            id="a broken link",
        ),
        pytest.param(
            lambda folder: (folder / "a.md").write_text("x" * (MOST_BYTES + 1)),
            "a.md: the file is larger than 1,048,576 bytes",
            id="a large file",
        ),
        pytest.param(
            lambda folder: (folder / "a.md").write_text("hello"),
            "a.md:1: no front matter; the first line must be ---",
            id="a file of another kind",
        ),
    ],
)
def test_a_broken_folder_is_an_error_that_names_the_file(tmp_path, prepare, message):
    prepare(tmp_path)
    with pytest.raises(HarnessError) as raised:
        load(tmp_path)
    assert str(raised.value) == message


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(HarnessError, match="the folder of harnesses cannot be read: No such file or directory"):
        load(tmp_path / "missing")
