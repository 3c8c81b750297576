"""When two requests are the same request."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_workflows.core.canonical import Json, dumps, parse
from hermes_workflows.core.fingerprints import fingerprint
from hermes_workflows.errors import UnstorableValue

REQUEST: Json = {
    "command": "echo ä",
    "n": [1, 1.0, 1e16, 1e-7, 2**70, None, True],
    "env": {"$$a": {"$lines": ["x", ""]}},
}
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(-3, 3), st.sampled_from(["", "1", "true", "null"])
)


def test_a_fingerprint_is_the_same_in_every_release() -> None:
    assert fingerprint("bash", REQUEST) == "fp1:sha256:854dda83d72d79dad847205935fa5b651c6a31b3d585dd9c95a5118c2a81eac8"


def test_a_fingerprint_covers_the_kind() -> None:
    assert fingerprint("bash", REQUEST) != fingerprint("agent", REQUEST)


def test_the_order_of_keys_is_not_in_a_fingerprint() -> None:
    assert fingerprint("bash", {"a": 1, "b": {"c": 2, "d": 3}}) == fingerprint("bash", {"b": {"d": 3, "c": 2}, "a": 1})


def test_the_order_of_a_list_is_in_a_fingerprint() -> None:
    assert fingerprint("bash", ["a", "b"]) != fingerprint("bash", ["b", "a"])


@settings(deadline=None)
@given(SCALARS, SCALARS)
def test_requests_share_a_fingerprint_when_they_are_written_alike(one: Json, other: Json) -> None:
    alike = dumps(one) == dumps(other)
    assert (fingerprint("step", {"x": [one]}) == fingerprint("step", {"x": [other]})) is alike
    assert alike is (type(one) is type(other) and repr(one) == repr(other))


def test_a_request_keeps_its_fingerprint_when_it_is_read_back() -> None:
    assert fingerprint("bash", parse(dumps(REQUEST))) == fingerprint("bash", REQUEST)


def test_what_no_receipt_can_hold_has_no_fingerprint() -> None:
    with pytest.raises(UnstorableValue, match="/request/x"):
        fingerprint("bash", {"x": float("nan")})


def test_names_and_fingerprints_are_light() -> None:
    # `status` imports them, and must not wait for pydantic.
    code = (
        "import sys, hermes_workflows.core.names, hermes_workflows.core.fingerprints, hermes_workflows.core.encoding;"
        "heavy = {'pydantic', 'pydantic_core', 'jsonschema', 'asyncio'};"
        "print(*sorted(heavy & {m.partition('.')[0] for m in sys.modules}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
