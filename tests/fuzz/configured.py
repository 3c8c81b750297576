"""Targets of files that people write, or programs of ours have left: registry, notes, Hermes' configuration."""

from __future__ import annotations

import contextlib
import json

import yaml
from tests.fuzz.stored import written
from tests.fuzz.target import Target, refused_as

from hermes_workflows import registry
from hermes_workflows.errors import InvalidInput
from hermes_workflows.hermes_plugin import config_text, install
from hermes_workflows.hermes_plugin.host import NOTE, note_of
from hermes_workflows.settings import Agents, chosen_agent
from hermes_workflows.store import liveness, texts
from hermes_workflows.store.database import DatabaseGone

REGISTRY = {
    "$schema": "x",
    "dbs": {"default": "workflows.sqlite", "other": {"path": "o.sqlite", "receipts": "o.git"}},
    "workflows": {"draft": {"workflow_ref": "flow.py:draft", "db": "other", "description": "x", "deadline": 60}},
    "agents": {
        "writer": {"preset": "claude", "model": "m", "timeout": 5.5, "budget": 1, "prices": {"input": 1, "output": 2}},
        "cmd": {
            "command": "a 'b c'",
            "args": ["{prompt_file}"],
            "stdin": "json",
            "env": {"A": "b", "C": {"from": "D"}},
        },
        "old": {"preset": "replay", "answers": "a.json"},
        "*": "codex",
    },
    "environment": {"allow": ["AWS_*"], "deny": ["X"]},
    "operator": "ana",
    "notify": {"preset": "hermes", "to": "telegram:1"},
    "redact": ["TOKEN"],
    "keep_runs": 10,
    "bursts": False,
    "pull_requests": {"repository": "acme/runs", "every": 60},
    "limits": {"bash": 2, "agent:writer": 1},
    "hermes": {"answer_tool": True, "senders": ["telegram:1"]},
}


def workspace(data: bytes) -> None:
    path = written("registry/.hermes/workflows.registry.json", data)
    with refused_as(InvalidInput):
        found = registry.load(path)
        for alias in found.dbs:
            found.database(alias, path.parent)
        Agents({}, found.agents).find("writer")
        found.environment.passes("PATH")


def chosen(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        chosen_agent(data.decode("utf-8", "surrogateescape"))


def note(data: bytes) -> None:
    path = written(f"plugin/{NOTE}", data)
    with refused_as(InvalidInput):
        found = note_of(path.parent)
        for name in (found or {}).get("files", {}):
            assert path.parent in (path.parent / name).parents or name in ("", ".")


def hermes_config(data: bytes) -> None:
    """Hermes' own file: what cannot be read is left alone; else it says what it said before, and the name."""
    parse = yaml.safe_load
    path = written("config.yaml", data)
    text = install.text_of(path, parse)
    if text is not None:
        made = config_text.with_name(text, install.NAME, parse)
        if made is not None:
            assert config_text.is_enabled(made, install.NAME, parse)
            config_text.without_name(made, install.NAME, parse, config_text.added(text, made))
        config_text.is_refused(text, install.NAME, parse)


def row(data: bytes) -> None:
    """A text in SQLite, which somebody may have changed."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(DatabaseGone):
        texts.load(text)
    with contextlib.suppress(DatabaseGone):
        liveness.Process.of_holder(text).gone()


CONFIG = b"# mine\nplugins:\n  enabled:\n  - other # it\n  disabled: []\nmodel:\n  name: x\n"

TARGETS = (
    Target("registry", workspace, lambda: [json.dumps(REGISTRY, indent=1).encode(), b"{}"]),
    Target("agent-flag", chosen, lambda: [b"writer=claude:opus", b"w=replay:a/b.json"]),
    Target("note", note, lambda: [json.dumps({"files": {"a/b.py": "1"}, "registry": "/x", "config": {}}).encode()]),
    Target("hermes-config", hermes_config, lambda: [CONFIG, CONFIG.replace(b"\n", b"\r\n"), b"plugins: {}\n"]),
    Target("row", row, lambda: [b'{"a": [1, null]}', b'${"a": {"$": "eA=="}}', b'["host", 1, "2"]']),
)
