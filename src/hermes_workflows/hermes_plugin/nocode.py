"""A loader that imports nothing, for Hermes' process: its modules are called like many a project's (see `apart`)."""

from __future__ import annotations

from pathlib import Path
from typing import Never

from ..errors import InvalidInput
from ..loader import Loader


class NoCode(Loader):
    """Refuses every workflow, and says where it is loaded."""

    def load(self, ref: str, start: Path | None = None) -> Never:
        """Raises InvalidInput."""
        raise InvalidInput(
            f"{ref} is not loaded in Hermes' process, where a project's modules could take the place of Hermes'",
            hint="a process of its own does it: `hermes-workflows` has the commands",
        )

    def load_foreign(self, ref: str) -> Never:
        """Raises InvalidInput."""
        self.load(ref)
