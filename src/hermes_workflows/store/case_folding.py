"""Run ids that differ only in case would meet in one file on half the machines: such a second id is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..core.names import run_component

_WITH_DIGEST = re.compile(r"(.+)-[a-z]{12}")


def could_be_another_case_of(run_id: str) -> Callable[[str], bool]:
    """Whether a ref's name may belong to `run_id` or to an id that equals it except for case.

    Names of ids with capitals end in a digest and do not say the id, so this only picks the ones to look into:
    at most a handful, however many runs there are.
    """
    exact = {run_component(run_id), run_component(run_id.lower())}
    stem = _stem(run_component(run_id.upper()))
    return lambda component: component in exact or (stem is not None and _stem(component) == stem)


def _stem(component: str) -> str | None:
    found = _WITH_DIGEST.fullmatch(component)
    return found[1] if found else None
