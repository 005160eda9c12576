"""Draft the next revision: `python -m migrations "why"` compares the declared tables with the migrated schema."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from alembic import command
from sqlalchemy import create_engine

from gateway.store import migrate
from migrations import revisions


def main(message: str) -> None:
    """Write `versions/<next>_<message>.py`, to be read and corrected by whoever asked for it."""
    config = migrate.configuration()
    config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder, 'draft.db')}"
        migrate.migrate(url)
        engine = create_engine(url)
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.revision(config, message, autogenerate=True, rev_id=f"{int(revisions()[-1]) + 1:04}")
        engine.dispose()


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
