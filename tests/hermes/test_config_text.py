"""One name goes into Hermes' configuration and out of it, and every other byte stays where it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_workflows.hermes_plugin.config_text import added, is_enabled, is_refused, with_name, without_name

yaml = pytest.importorskip("yaml", reason="no PyYAML: Hermes' configuration is not changed here")

NAME = "hermes-workflows"
SHAPES = {
    "nothing": "",
    "another section": "model:\n  default: x  # mine\n",
    "no last line end": "model: x",
    "an empty list": "plugins:\n  enabled: []\nmodel: x\n",
    "a list": "plugins:\n  enabled:\n    - web  # mine\n    - 'pets'\n  disabled: [old]\nmodel: x\n",
    "a list without depth": "plugins:\n  enabled:\n  - web\n  entries:\n    web: {enabled: true}\n",
    "a list in one line": "plugins:\n  enabled: [web, 'pets']  # mine\n",
    "a section without a list": "# head\nplugins:  # mine\n    disabled:\n      - old\nmodel: x\n",
    "a list of another section": "tools:\n  enabled:\n    - a\nplugins:\n  disabled: []\nmore:\n  enabled: [b]\n",
    "a list that is behind": "plugins:\n  disabled:\n  - a\n\n  # these\n  enabled:\n\n  - b\n",
    "lines of another system": "model: x\r\nplugins:\r\n  enabled:\r\n  - web\r\n",
    "a document's head": "---\nmodel: x\n",
}
STRANGE = {
    "a section in one line": "plugins: {enabled: [web]}\n",
    "no list": "plugins:\n  enabled: web\n",
    "a list over lines": "plugins:\n  enabled: [web,\n    pets]\n",
    "no section": "plugins: null\n",
    "a text for a section": "plugins: web\n",
    "a list for a document": "- web\n",
}


def _parse(text: str) -> Any:
    return yaml.safe_load(text)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_name_goes_in_and_nothing_else_changes(shape: str) -> None:
    before = SHAPES[shape]
    after = with_name(before, NAME, _parse)
    assert after is not None
    assert is_enabled(after, NAME, _parse)
    said, says = _parse(before) or {}, _parse(after)
    assert {key: value for key, value in says.items() if key != "plugins"} == {
        key: value for key, value in said.items() if key != "plugins"
    }
    # What is new is one piece: without it, every byte is as it was.
    assert after.replace(added(before, after), "", 1) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_taken_out_everything_is_as_it_was_to_the_byte(shape: str) -> None:
    before = SHAPES[shape]
    after = with_name(before, NAME, _parse)
    assert after is not None
    assert without_name(after, NAME, _parse, added(before, after)) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_after_others_have_written_the_file_anew_the_name_goes_out_and_the_rest_stays(shape: str) -> None:
    after = with_name(SHAPES[shape], NAME, _parse)
    assert after is not None
    anew = yaml.safe_dump({**_parse(after), "theirs": 1})
    left = without_name(anew, NAME, _parse, added(SHAPES[shape], after))
    assert left is not None
    assert not is_enabled(left, NAME, _parse)
    assert _parse(left)["theirs"] == 1


@pytest.mark.parametrize("shape", STRANGE)
def test_what_cannot_be_changed_alone_is_left_to_its_owner(shape: str) -> None:
    assert with_name(STRANGE[shape], NAME, _parse) is None


def test_a_name_that_is_there_is_not_put_in_twice_and_one_that_is_not_is_not_taken_out() -> None:
    there = "plugins:\n  enabled: [hermes-workflows]\n"
    assert with_name(there, NAME, _parse) == there
    assert without_name("plugins:\n  enabled: [web]\n", NAME, _parse) == "plugins:\n  enabled: [web]\n"


def test_a_name_that_begins_alike_is_another_one() -> None:
    text = "plugins:\n  enabled:\n  - hermes-workflows-extra\n  - hermes-workflows\n"
    assert without_name(text, NAME, _parse) == "plugins:\n  enabled:\n  - hermes-workflows-extra\n"


def test_what_was_disabled_is_known_as_such() -> None:
    assert is_refused("plugins:\n  disabled: [hermes-workflows]\n", NAME, _parse)


_names = st.lists(st.sampled_from(["a", "b", "web", "x y", "hermes"]), max_size=4, unique=True)
_plugins = st.fixed_dictionaries({}, optional={"enabled": _names, "disabled": _names, "entries": st.just({"web": {}})})
_configs = st.fixed_dictionaries({}, optional={"plugins": _plugins, "model": st.text(max_size=8), "z": st.integers()})


@settings(max_examples=200, deadline=None)
@given(_configs, st.booleans())
def test_whatever_yaml_writes_the_name_goes_in_and_out_or_nothing_is_done(config: Any, flow: bool) -> None:
    before = yaml.safe_dump(config, default_flow_style=flow, sort_keys=False)
    if (after := with_name(before, NAME, _parse)) is not None:
        assert is_enabled(after, NAME, _parse)
        assert without_name(after, NAME, _parse, added(before, after)) == before
