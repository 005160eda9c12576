"""The schema's history: one file a revision in `versions/`, in a line. Knows no application code but the tables.

`python -m migrations "why"` drafts the next one from the difference to the declared tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent


def revisions() -> tuple[str, ...]:
    """Every revision this version knows, oldest first: the numbers that the files' names begin with."""
    return tuple(sorted(file.name.partition("_")[0] for file in (FOLDER / "versions").glob("[0-9]*.py")))
