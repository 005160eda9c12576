"""A folder of harnesses that is watched: what is taken, what is not, and what is said about it."""

import asyncio
import os

import pytest

from mcp.harness.registry import SHIPPED, load
from mcp.harness.watch import Watch, signature
from mcp.prompts import prompt_specs, render_prompt


def write(path, id, title="T"):
    path.write_text(f"---\nid: {id}\ntitle: {title}\ndescription: D\ntools: []\nmode: full\n---\nDo it.\n")


def mount(folder, name, **harnesses):
    """Mount a ConfigMap anew, as Kubernetes does: a new folder, and `..data` moved to it in one step."""
    (folder / name).mkdir()
    for file, title in harnesses.items():
        write(folder / name / f"{file}.md", file, title)
        if not (folder / f"{file}.md").is_symlink():
            (folder / f"{file}.md").symlink_to(f"..data/{file}.md")
    (folder / "..data_tmp").symlink_to(name)
    (folder / "..data_tmp").rename(folder / "..data")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "ant.md", "ant")
    return tmp_path


@pytest.fixture
def watching(folder):
    """A watch on the folder, and the titles of the team's harnesses in each registry that it gave."""
    given = []

    def note(registry):
        given.append({harness.id: harness.title for harness in registry if harness.id not in SHIPPED})

    return Watch(folder, load(folder), note, required="super-pi-code"), given


async def test_what_is_as_it_was_at_the_start_is_not_given(watching):
    looking, given = watching
    await looking.look()
    await looking.look()
    assert given == []


async def test_another_body_alone_is_given_and_leaves_the_list_of_prompts_as_it_was(folder):
    """So nobody is told of another list (server/prompts), and whoever gets the prompt has the new text."""
    before, given = load(folder), []
    watch = Watch(folder, before, given.append, required="super-pi-code")
    file = folder / "ant.md"
    file.write_text(file.read_text().replace("Do it.", "Do it well."))
    await watch.look()
    (after,) = given
    assert prompt_specs(after) == prompt_specs(before)
    assert [render_prompt(registry, "ant", {})[1][0].content.text for registry in (before, after)] == [
        "Do it.",
        "Do it well.",
    ]


async def test_what_changed_between_the_start_and_the_first_look_is_given(watching, folder):
    looking, given = watching
    write(folder / "bee.md", "bee")
    await looking.look()
    assert given == [{"ant": "T", "bee": "T"}]


@pytest.mark.parametrize(
    ("change", "becomes"),
    [
        pytest.param(lambda folder: write(folder / "bee.md", "bee"), {"ant": "T", "bee": "T"}, id="a new file"),
        pytest.param(lambda folder: write(folder / "ant.md", "ant", "U"), {"ant": "U"}, id="the same size"),
        pytest.param(lambda folder: (folder / "ant.md").unlink(), {}, id="a file less"),
        pytest.param(lambda folder: write(folder / "ant.md", "bee"), {"bee": "T"}, id="another id in the same file"),
    ],
)
async def test_a_change_is_given_once(watching, folder, change, becomes):
    looking, given = watching
    await looking.look()
    change(folder)
    await looking.look()
    await looking.look()
    assert given == [becomes]


async def test_a_file_that_is_replaced_by_one_of_the_same_size_and_time_is_seen(watching, folder, tmp_path_factory):
    looking, given = watching
    await looking.look()
    other = tmp_path_factory.mktemp("other") / "ant.md"
    write(other, "ant", "U")
    times = (folder / "ant.md").stat().st_mtime_ns
    os.utime(other, ns=(times, times))
    other.rename(folder / "ant.md")
    await looking.look()
    assert given == [{"ant": "U"}]


async def test_what_is_no_harness_is_not_looked_at(watching, folder):
    before = signature(folder)
    (folder / "notes.txt").write_text("x")
    (folder / ".bee.md.swp").write_text("x")
    write(folder / ".bee.md", "bee")
    assert signature(folder) == before


async def test_a_config_map_that_is_mounted_anew_is_given(tmp_path):
    mount(tmp_path, "..1", ant="T", bee="T")
    given = []
    looking = Watch(tmp_path, load(tmp_path), given.append, required="super-pi-code")
    await looking.look()
    mount(tmp_path, "..2", ant="T", bee="U")
    await looking.look()
    assert [[harness.title for harness in registry][len(SHIPPED) :] for registry in given] == [["T", "U"]]


async def test_a_broken_file_is_named_once_and_changes_nothing(watching, folder, caplog):
    looking, given = watching
    (folder / "bee.md").write_text("---\nid: bee\ntitle: T\ndescription: D\ntools: [fly]\nmode: full\n---\nDo it.\n")
    for _ in range(3):
        await looking.look()
    known = "read, write, edit, bash, grep, find, ls"
    assert ([record.getMessage() for record in caplog.records], given) == (
        [f"SUPERPI_HARNESS_DIR: bee.md:5: unknown tool 'fly'; known are {known}; the harnesses stay as they were"],
        [],
    )


async def test_a_file_that_is_broken_in_another_way_is_named_again_until_it_is_whole(watching, folder, caplog):
    looking, given = watching
    for content in ("hello", "---\n"):
        (folder / "bee.md").write_text(content)
        await looking.look()
    write(folder / "bee.md", "bee")
    await looking.look()
    assert (len(caplog.records), given) == (2, [{"ant": "T", "bee": "T"}])


async def test_the_harness_that_connections_get_by_default_may_not_go(folder, caplog):
    given = []
    looking = Watch(folder, load(folder), given.append, required="ant")
    (folder / "ant.md").unlink()
    await looking.look()
    assert ("there is no harness 'ant' any more" in caplog.text, given) == (True, [])


async def test_a_folder_that_is_away_changes_nothing_and_is_read_again_when_it_is_back(watching, folder, caplog):
    looking, given = watching
    away = folder.with_name("away")
    folder.rename(away)
    for _ in range(2):
        await looking.look()
    write(away / "bee.md", "bee")
    away.rename(folder)
    await looking.look()
    assert ("the folder of harnesses cannot be read" in caplog.text, len(caplog.records)) == (True, 1)
    assert given == [{"ant": "T", "bee": "T"}]


async def test_files_that_change_while_they_are_read_wait_for_the_next_look(folder):
    """So that no half of a change is taken for the whole."""
    changes = iter([lambda: write(folder / "bee.md", "bee")])
    given = []

    def read_during_a_change(folder):
        found = load(folder)
        next(changes, lambda: None)()
        return found

    looking = Watch(folder, load(None), given.append, required="super-pi-code", read=read_during_a_change)
    await looking.look()
    assert given == []
    await looking.look()
    assert given == [load(folder)]


async def test_it_goes_on_looking_whatever_becomes_of_a_change(folder, caplog):
    taken = asyncio.Event()

    def fail_first(registry):
        if registry.get("bee") is None:
            raise ZeroDivisionError
        taken.set()

    looking = Watch(folder, load(None), fail_first, required="super-pi-code", seconds=0.01)
    running = asyncio.create_task(looking.run())
    async with asyncio.timeout(30):
        while "ZeroDivisionError" not in caplog.text:
            await asyncio.sleep(0.01)
        write(folder / "bee.md", "bee")
        await taken.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
