"""Run ids that differ only in case would meet in one file on half the machines: such a second id is refused."""

from __future__ import annotations

import re
from collections.abc import Collection

from ..core.names import run_component

_DIGEST = re.compile(r"-[a-z]{12}\Z")


def could_be_in_another_case(run_id: str, names: Collection[str]) -> list[str]:
    """Those of `names` (of refs) that belong to `run_id` or may belong to an id that equals it except for case.

    Names of ids with capitals end in a digest and do not say the id, so this only picks the ones to look into:
    at most a handful, however many runs there are.
    """
    found = {name for name in (run_component(run_id), run_component(run_id.lower())) if name in names}
    with_digest = run_component(run_id.upper())
    if _DIGEST.search(with_digest):
        stem = _DIGEST.sub("-", with_digest)
        found.update(name for name in names if name.startswith(stem) and _DIGEST.sub("-", name) == stem)
    return sorted(found)
