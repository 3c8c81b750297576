"""The reader of workflow bodies: what it warns of, with the line, and what it leaves alone."""

from __future__ import annotations

import ast

import pytest

from hermes_workflows.core.impurities import impurities
from hermes_workflows.core.source_names import SourceModule

BODY = """
import os, random, secrets, time, uuid
import datetime as dt
import urllib.request
from datetime import datetime
from time import time as clock
from pathlib import Path
from hermes_workflows import workflow
from hermes_workflows.authoring import now, step, uuid4

SEEN = []

def remember(name):
    SEEN.append(name)

@workflow
async def flow(inputs):
    {code}
"""


def module(text: str, name: str = "flow") -> SourceModule:
    return SourceModule(name, f"{name}.py", ast.parse(text))


def told(code: str, before: str = "") -> list[str]:
    """What is said of a body of one line."""
    found = impurities([module(before + BODY.format(code=code))])
    return [each.what.removesuffix(" in a workflow's body") for each in found]


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("time.time()", "time.time"),
        ("clock()", "time.time"),
        ("time.sleep(1)", "time.sleep"),
        ("datetime.now()", "datetime.datetime.now"),
        ("dt.date.today()", "datetime.date.today"),
        ("random.choice([1, 2])", "random.choice"),
        ("secrets.token_hex()", "secrets.token_hex"),
        ("uuid.uuid4()", "uuid.uuid4"),
        ("os.environ['HOME']", "os.environ"),
        ("os.environ.get('HOME')", "os.environ.get"),
        ("os.getenv('HOME')", "os.getenv"),
        ("open('a')", "open"),
        ("Path('a').read_text()", ".read_text()"),
        ("inputs.write_bytes(b'')", ".write_bytes()"),
        ("urllib.request.urlopen('x')", "urllib.request.urlopen"),
        ("import httpx; httpx.get('x')", "httpx.get"),
        ("import subprocess; subprocess.run('x')", "subprocess.run"),
        ("import asyncio; await asyncio.to_thread(print)", "asyncio.to_thread"),
        ("sorted(inputs, key=id)", "id"),
        ("len(SEEN)", "the global SEEN, which changes,"),
        ("SEEN.append(1)", "the global SEEN, which changes,"),
        ("[x for x in {1, 2}]", "iterating over a set"),
        ("for x in {1, 2}: pass", "iterating over a set"),
        ("list({x for x in inputs} | set(inputs))", "iterating over a set"),
        ("names = set(inputs); [x for x in names]", "iterating over a set"),
        ("import hermes_workflows.authoring as a; a.prompt_file(inputs)", "prompt_file() of a computed name"),
    ],
)
def test_what_would_decide_otherwise_is_named(code: str, what: str) -> None:
    assert told(code) == [what]


@pytest.mark.parametrize(
    "code",
    [
        "now(), uuid4(), dt.datetime(2026, 1, 1), uuid.uuid5(uuid.NAMESPACE_DNS, 'x'), random.Random(5).random()",
        "time = inputs; time.time(); open = inputs; open('a')",
        "sorted({1, 2}), sum(x for x in {1, 2}), {x for x in set(inputs)}, 1 in {1, 2}",
        "[x for x in (1, 2)]; list(inputs)",
        "Path('a').name, os.path.join('a', 'b'), os.sep",
        "import hermes_workflows.authoring as a; a.prompt_file('x.md').render()",
    ],
)
def test_what_decides_the_same_is_left_alone(code: str) -> None:
    assert told(code) == []


def test_a_constant_table_of_the_module_is_no_state() -> None:
    assert told("LIMITS['a'], WORDS[0]", "LIMITS = {'a': 1}\nWORDS = ['x']\n") == []


def test_steps_do_what_they_like_and_plain_helpers_are_part_of_the_body() -> None:
    text = """
import random
from hermes_workflows import workflow
from hermes_workflows.authoring import step
from other import away, unused

@step
def pick():
    return random.random()

def helper():
    return deeper

def deeper():
    return random.random()

def never():
    return random.random()

@workflow
async def flow():
    @step
    def inner():
        return random.random()
    async def branch():
        return random.random()
    return pick(), inner(), branch(), helper(), away()
"""
    other = "import time\ndef away():\n    return time.time()\ndef unused():\n    return time.time()\n"
    found = impurities([module(text), module(other, "other")])
    assert [(each.path, each.line) for each in found] == [("flow.py", 15), ("flow.py", 26), ("other.py", 3)]


def test_modules_without_a_workflow_are_nobodys_body() -> None:
    assert impurities([module("import time\ndef f():\n    return time.time()\n")]) == []


def test_what_two_bodies_call_is_told_once() -> None:
    text = """
import random
from hermes_workflows import workflow

def helper():
    return random.random()

@workflow
async def first():
    return helper()

@workflow
async def second():
    return helper()
"""
    assert [each.line for each in impurities([module(text)])] == [6]


def test_names_are_followed_into_the_package_around_a_module() -> None:
    package = SourceModule("flows", "flows/__init__.py", ast.parse("from .parts import helper\n" + FLOW))
    inside = SourceModule("flows.one", "flows/one.py", ast.parse("from .parts import helper\n" + FLOW))
    above = SourceModule("flows.deep.two", "flows/deep/two.py", ast.parse("from ..parts import helper\n" + FLOW))
    parts = module("import time\ndef helper():\n    return time.time()\n", "flows.parts")
    for each in (package, inside, above):
        assert [(found.path, found.line) for found in impurities([each, parts])] == [("flows.parts.py", 3)]


FLOW = """
from hermes_workflows import workflow
@workflow
async def flow():
    return helper()
"""


@pytest.mark.parametrize(
    ("before", "code"),
    [
        ("NAMES = list()\ndef fill():\n    NAMES.append(1)\n", "NAMES"),
        ("NAMES: dict = {}\ndef fill():\n    NAMES[1] = 2\n", "NAMES"),
        ("NAMES = [1 for _ in ()]\ndef fill():\n    global NAMES\n    NAMES = []\n", "NAMES"),
        ("NAMES = {1}\ndef fill():\n    del NAMES[1]\n", "NAMES"),
    ],
)
def test_a_global_that_some_function_changes_is_told_however_it_is_changed(before: str, code: str) -> None:
    (what,) = told(code, before)
    assert "NAMES" in what


@pytest.mark.parametrize(
    "before",
    [
        "NAMES, OTHER = [], []\ndef fill():\n    OTHER[0] = 1\n",
        "NAMES = (1,)\ndef fill():\n    NAMES[0]\n",
        "NAMES: list\ndef fill():\n    NAMES.sort\n",
        "NAMES = []\ndef fill(NAMES):\n    NAMES.append(1)\n",
        "NAMES = []\ndef fill():\n    made().NAMES.append(1)\n",
    ],
)
def test_a_global_that_nobody_changes_is_left_alone(before: str) -> None:
    assert told("NAMES", before) == []
