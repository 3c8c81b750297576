"""The hook of Hermes' gateway: tokens of ours are taken before any model reads them, and everything else passes."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.contract.workspaces import FLOW, Desk

from hermes_workflows.clock import SystemClock
from hermes_workflows.hermes_plugin.gateway import on_message
from hermes_workflows.hermes_plugin.offers import HOOKS
from hermes_workflows.opening import open_workspace
from hermes_workflows.registry import load
from hermes_workflows.review.chat import key_file, lines_of
from hermes_workflows.workspace import Surroundings


class Platform(Enum):
    TELEGRAM = "telegram"


@dataclass
class Adapter:
    """What Hermes speaks to a platform with."""

    said: list[tuple[Any, ...]] = field(default_factory=list)

    async def send(self, chat_id: str, content: str, reply_to: Any = None, metadata: Any = None) -> None:
        self.said.append((chat_id, content, reply_to, metadata))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A workspace on disk, in whose folder Hermes works, with a question of one choice."""
    home = tmp_path / ".hermes"
    home.mkdir()
    rules = {"hermes": {"senders": ["telegram:7"]}}
    (home / "workflows.registry.json").write_text(json.dumps(rules))
    (tmp_path / "flow.py").write_text(FLOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    registry = load(home / "workflows.registry.json")
    clock: Any = SystemClock()
    workspace = open_workspace(registry, registry.dbs["default"], Surroundings(clock, {}), create=True)
    made = Desk(workspace, clock, workspace.ledger)  # type: ignore[arg-type]  # both ledgers keep one contract
    made.start()
    made.ask("ok", returns={"enum": ["approve", "reject"]})
    yield made
    workspace.close()


def line(desk: Desk) -> str:
    return lines_of(desk.workspace, "wf", "ok")[0][0].token


def event(text: Any, user: str | None = "7") -> Any:
    source = SimpleNamespace(platform=Platform.TELEGRAM, chat_id="-1", user_id=user, user_name="Ada", thread_id=None)
    return SimpleNamespace(text=text, source=source, message_id="55", internal=False)


def hear(given: Any, adapter: Adapter | None = None) -> Any:
    """What the hook says to Hermes, once everything that it wanted to say in the chat is said."""

    async def heard() -> Any:
        said = on_message(event=given, gateway=SimpleNamespace(adapters={given.source.platform: adapter}))
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        return said

    return asyncio.run(heard())


def answer(desk: Desk) -> Any:
    return desk.workspace.review("wf", "ok").response


def test_the_hook_is_offered_by_the_name_that_hermes_calls() -> None:
    assert HOOKS["pre_gateway_dispatch"] == ("gateway", "on_message")


def test_a_token_is_taken_kept_from_the_model_and_confirmed_in_the_chat(desk: Desk) -> None:
    adapter = Adapter()
    assert hear(event(line(desk)), adapter) == {"action": "skip", "reason": "hermes-workflows: taken"}
    assert adapter.said == [("-1", "Recorded: approve, for ok of wf.", "55", None)]
    assert answer(desk).execution.provenance.origin["chat"] == "-1"


@pytest.mark.parametrize("text", ["yes", "looks good", "/workflow list", "", None, "hw1-" + "a" * 48, "hw1-approve"])
def test_talk_passes_untouched(desk: Desk, text: Any) -> None:
    line(desk)
    adapter = Adapter()
    assert (hear(event(text), adapter), adapter.said, answer(desk)) == (None, [], None)


@pytest.mark.parametrize("user", ["8", None, ""])
def test_a_token_of_a_stranger_is_dropped_without_a_word(desk: Desk, user: str | None) -> None:
    adapter = Adapter()
    assert hear(event(line(desk), user), adapter) == {"action": "skip", "reason": "hermes-workflows: ignored"}
    assert (adapter.said, answer(desk)) == ([], None)


def test_what_hermes_says_to_itself_answers_nothing(desk: Desk) -> None:
    given = event(line(desk))
    given.internal = True
    assert (hear(given), answer(desk)) == (None, None)


def test_without_a_way_to_speak_an_answer_is_taken_all_the_same(desk: Desk) -> None:
    assert on_message(event=event(line(desk))) == {"action": "skip", "reason": "hermes-workflows: taken"}
    assert answer(desk).output == "approve"


def held(desk: Desk) -> sqlite3.Connection:
    """Somebody who writes, and does not end."""
    other = sqlite3.connect(desk.workspace.paths.sqlite, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    return other


def test_hermes_goes_on_while_an_answer_waits_for_a_locked_workspace(desk: Desk) -> None:
    token, adapter = line(desk), Adapter()
    other = held(desk)

    async def heard() -> list[Any]:
        given, gateway = event(token), SimpleNamespace(adapters={Platform.TELEGRAM: adapter})
        seen = [on_message(event=given, gateway=gateway), list(adapter.said)]
        other.rollback()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        return seen

    assert asyncio.run(heard()) == [{"action": "skip", "reason": "hermes-workflows: taken"}, []]
    assert [said[1] for said in adapter.said] == ["Recorded: approve, for ok of wf."]
    other.close()


def test_of_two_lines_the_first_one_counts(desk: Desk) -> None:
    approve, reject = (each.token for each in lines_of(desk.workspace, "wf", "ok")[0])
    adapter = Adapter()

    async def heard() -> None:
        for token in (reject, approve):
            on_message(event=event(token), gateway=SimpleNamespace(adapters={Platform.TELEGRAM: adapter}))
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(heard())
    assert answer(desk).output == "reject"
    assert [said[1].split(" ")[0] for said in adapter.said] == ["Recorded:", "Not"]


def test_a_line_is_kept_from_the_model_whatever_goes_wrong_with_it(desk: Desk) -> None:
    class Broken(SimpleNamespace):
        @property
        def user_id(self) -> str:
            raise ValueError("a platform of another version")

    given = event(line(desk))
    given.source = Broken(platform=Platform.TELEGRAM)
    assert hear(given) == {"action": "skip", "reason": "hermes-workflows: ignored"}
    assert answer(desk) is None


def test_a_way_to_speak_that_fails_loses_no_answer(desk: Desk) -> None:
    class Silent:
        async def send(self, *_: Any, **__: Any) -> None:
            raise ConnectionError

    assert hear(event(line(desk)), Silent())["action"] == "skip"  # type: ignore[arg-type]  # it breaks on purpose
    assert answer(desk).output == "approve"


@pytest.mark.parametrize(("user", "told"), [("7", 1), ("8", 0)])
def test_what_cannot_be_read_is_kept_from_the_model_and_no_stranger_hears_of_it(
    desk: Desk, user: str, told: int
) -> None:
    token, adapter = line(desk), Adapter()
    key_file(desk.workspace.paths).chmod(0o644)
    assert hear(event(token, user), adapter)["action"] == "skip"
    assert (len(adapter.said), answer(desk)) == (told, None)


def test_where_no_workspace_is_everything_is_talk(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = line(desk)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert hear(event(token)) is None
