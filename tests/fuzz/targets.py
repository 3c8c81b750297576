"""Every target, by its name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fuzz import configured, people, runs, said, stored
from tests.fuzz.target import Target

TARGETS: Mapping[str, Target] = {
    target.name: target for module in (stored, runs, said, people, configured) for target in module.TARGETS
}
