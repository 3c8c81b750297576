"""A chat answers with whole tokens that were issued here, from listed senders; everything else stays talk."""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk

from hermes_workflows.errors import Conflict, InvalidInput
from hermes_workflows.registry import parse
from hermes_workflows.review.chat import LASTING, Message, Said, key_file, lines_of, take
from hermes_workflows.review.telling import harmless
from hermes_workflows.review.tokens import options_of, written
from hermes_workflows.settings import Notify
from hermes_workflows.store.secret_key import secret_key

ADA = Message("telegram", "-100", "7", "55", "Ada")
RULES = '{"hermes": {"senders": ["telegram:7"]}}'
ASKS = """
@workflow
async def flow() -> str:
    return await ask("Ship it?", key="ship", returns=Literal["approve", "reject"]{more})
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, registry=RULES)


def line(desk: Desk, label: str = "approve") -> str:
    return next(each.token for each in lines_of(desk.workspace, "wf", "ship")[0] if each.label == label)


def asked(desk: Desk, more: str = "") -> str:
    desk.run(ASKS.format(more=more))
    return line(desk)


def send(desk: Desk, text: str, message: Message | None = ADA) -> Said:
    token = written(text)
    return take([desk.workspace], token, message) if token else Said("talk")


def test_a_line_sent_back_answers_and_the_receipt_says_who_said_it_where(desk: Desk) -> None:
    assert send(desk, asked(desk)).outcome == "recorded"
    desk.work()
    by = desk.receipt("reviews/ship/response.json").execution.provenance
    assert by is not None
    assert (by.kind, by.by, by.channel, by.verified) == ("human", "telegram:7", "hermes-chat", "signature")
    told = {"platform": "telegram", "chat": "-100", "message": "55", "sender": "7", "name": "Ada"}
    assert (by.message_id, by.origin) == ("telegram/-100/55", told)
    assert desk.summary().result == "approve"


@pytest.mark.parametrize("form", ["\n{} ", "`{}`"])
def test_what_a_phone_does_to_a_line_does_not_matter(desk: Desk, form: str) -> None:
    assert send(desk, form.format(asked(desk).capitalize())).outcome == "recorded"


@pytest.mark.parametrize("form", ["yes", "looks good", "approve", "", "yes {}", "{} please", "{}\n{}", "hw1-{}", "{}a"])
def test_everything_that_is_no_whole_token_stays_talk(desk: Desk, form: str) -> None:
    token = asked(desk)
    assert send(desk, form.format(token, token)) == Said("talk")
    assert "reviews/ship/response.json" not in desk.paths()


def test_no_letter_of_a_token_can_be_another(desk: Desk) -> None:
    token = asked(desk)
    for place in range(len("hw1-"), len(token)):
        other = "a" if token[place] != "a" else "b"
        assert send(desk, token[:place] + other + token[place + 1 :]) == Said("talk")


def test_a_token_of_another_workspace_is_talk(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = Desk(tmp_path_factory.mktemp("other"), registry=RULES)
    asked(desk)
    assert send(desk, asked(other)) == Said("talk")


@pytest.mark.parametrize(
    "message",
    [
        None,
        replace(ADA, sender="8"),
        replace(ADA, platform="discord"),
        replace(ADA, sender="8", name="telegram:7"),
        replace(ADA, sender="77"),
    ],
)
def test_who_is_not_listed_answers_nothing_and_hears_nothing(desk: Desk, message: Message | None) -> None:
    token = asked(desk)
    assert send(desk, token, message) == Said("ignored")
    assert send(desk, token).outcome == "recorded"


def test_a_line_is_good_once_and_the_second_sender_hears_who_was_first(desk: Desk) -> None:
    token = asked(desk)
    other = line(desk, "reject")
    assert send(desk, token).outcome == "recorded"
    for late in (token, other):
        said = send(desk, late, replace(ADA, message_id="56"))
        assert (said.outcome, "was answered by telegram:7 (human, hermes-chat)" in said.reply) == ("refused", True)


def test_no_line_is_made_for_what_is_answered(desk: Desk) -> None:
    send(desk, asked(desk))
    with pytest.raises(Conflict, match="is answered"):
        line(desk)


def test_a_message_that_its_platform_delivers_twice_is_one_answer(desk: Desk) -> None:
    token = asked(desk)
    assert send(desk, token) == send(desk, token)


def test_a_line_expires(desk: Desk) -> None:
    token = asked(desk)
    desk.clock.advance(LASTING.total_seconds())
    assert send(desk, token).reply.startswith("This line expired on ")
    assert send(desk, line(desk)).outcome == "recorded"


def test_a_line_expires_with_its_question(desk: Desk) -> None:
    token = asked(desk, ', expires=60, on_expiry="reject"')
    desk.clock.advance(60)
    assert send(desk, token).outcome == "refused"
    desk.work()
    assert desk.summary().result == "reject"


def test_a_line_for_a_run_that_is_another_now_answers_nothing(desk: Desk, tmp_path: Path) -> None:
    token = asked(desk)
    again = Desk(tmp_path, registry=RULES)
    again.run(ASKS.format(more=', input="another draft"'))
    said = send(again, token)
    assert (said.outcome, "reviews/ship/response.json" in again.paths()) == ("refused", False)


def test_what_a_bot_or_a_program_sends_is_no_persons_answer(desk: Desk) -> None:
    assert send(desk, asked(desk), replace(ADA, bot=True)).outcome == "recorded"
    by = desk.receipt("reviews/ship/response.json").execution.provenance
    assert by is not None
    assert by.kind == "manual"


@pytest.mark.parametrize("platform", ["webhook", "api_server", "local", "email", "ntfy"])
def test_where_an_account_proves_nobody_no_persons_answer_is_given(platform: str) -> None:
    assert replace(ADA, platform=platform).provenance.kind == "manual"


ACTION: dict[str, Any] = {"enum": ["approve", "revise"]}


@pytest.mark.parametrize(
    ("schema", "labels"),
    [
        (ACTION, ["approve", "revise"]),
        ({"type": "boolean"}, ["yes", "no"]),
        ({"type": "string"}, []),
        ({"enum": list(range(9))}, []),
        ({"type": "object", "properties": {"action": ACTION, "why": {"type": "string"}}, "required": ["action"]}, 2),
        ({"type": "object", "properties": {"action": ACTION}, "required": ["action", "why"]}, []),
        ({"type": "object", "properties": {"action": ACTION}}, []),
        ({"type": 7}, []),
    ],
)
def test_only_what_one_choice_answers_has_lines(schema: dict[str, Any], labels: list[str] | int) -> None:
    found = [each.label for each in options_of(schema)]
    assert found == (["approve", "revise"] if labels == 2 else labels)


def test_the_key_is_its_owners_alone_and_no_commit_takes_it_along(desk: Desk) -> None:
    asked(desk)
    file = key_file(desk.workspace.paths)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (file.parent / ".gitignore").read_text() == "*\n"
    assert [each.name for each in file.parent.iterdir() if each.name != ".gitignore"] == [file.name]


def test_a_key_that_others_may_have_read_signs_nothing(desk: Desk) -> None:
    token = asked(desk)
    os.chmod(key_file(desk.workspace.paths), 0o640)
    with pytest.raises(InvalidInput, match="others may have read this key"):
        send(desk, token)


def test_a_key_is_made_once(tmp_path: Path) -> None:
    assert secret_key(tmp_path / "a" / "key") == secret_key(tmp_path / "a" / "key")
    assert secret_key(tmp_path / "b" / "key") != secret_key(tmp_path / "a" / "key")


def notified(tmp_path: Path, more: str = "", **rules: Any) -> str:
    """What `hermes send` would read of a question, and with which words."""
    hermes = tmp_path / "hermes"
    hermes.write_text('#!/bin/sh\necho "$@" > "${0%/*}/words"\ncat > "${0%/*}/text"\n')
    hermes.chmod(0o755)
    notify = {"preset": "hermes", "to": "telegram:-100", "command": [str(hermes)]}
    desk = Desk(tmp_path, registry=json.dumps({"notify": notify, **rules}))
    desk.run(ASKS.format(more=more))
    assert (tmp_path / "words").read_text().split() == ["send", "--to=telegram:-100", "--file=-"]
    return (tmp_path / "text").read_text()


def test_the_preset_tells_a_chat_with_lines_that_answer(tmp_path: Path) -> None:
    text = notified(tmp_path, hermes={"senders": ["telegram:7"]})
    assert text.startswith("A question waits: flow.py:flow, run wf, ship\n\nShip it?\n")
    assert "in a browser: Workflows, in Hermes' dashboard\n\nOr in a terminal: hermes-workflows review" in text
    approve, reject = re.findall(r"^`(hw1-.*)`$", text, re.MULTILINE)
    assert text.index("approve:") < text.index(approve) < text.index("reject:") < text.index(reject)


def test_where_nobody_may_answer_no_line_is_sent(tmp_path: Path) -> None:
    text = notified(tmp_path)
    assert "hw1-" not in text
    assert "hermes-workflows review respond wf ship" in text
    assert not key_file(Desk(tmp_path).workspace.paths).exists()


@pytest.mark.parametrize(
    "hostile",
    ["MEDIA:/etc/passwd.txt", "media: ~/x.pdf", "[[as_document]]", "@everyone", "<!channel>", "<@1>", "`code`"],
)
def test_a_notice_calls_nobody_and_attaches_nothing(hostile: str) -> None:
    said = harmless(f"Look: {hostile}")
    assert hostile not in said
    assert harmless(said) == said


def read(entry: Any) -> Notify | None:
    return parse(json.dumps({"notify": entry}), Path("/w/.hermes/workflows.registry.json")).notify


def test_a_command_is_still_a_line_or_a_list_of_words() -> None:
    assert read("tell ana") == read(["tell", "ana"]) == Notify(("tell", "ana"))


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"to": "telegram"}, "notify.preset is missing"),
        ({"preset": "hermes"}, "notify.to is missing"),
        ({"preset": "slack", "to": "x"}, "notify.preset names no preset: 'slack'"),
        ({"preset": "hermes", "to": "x", "command": []}, "notify.command names no program"),
    ],
)
def test_a_wrong_entry_names_its_place(entry: Any, place: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(place)):
        read(entry)
