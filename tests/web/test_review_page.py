"""The page of a question: everything a reader needs, nothing that what is shown could do, one answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.contract.workspaces import ACTIONS, Desk, desk, person
from tests.web.browser import BASE, app_of, browser, fields_of, waiting_desk

from hermes_workflows.core import layout
from hermes_workflows.core.receipts import CallReceipt, Evidence, Execution, ReviewReceipt, ReviewRequest

PAGE = "/reviews/wf/ok"
APPROVE = {"f/action": "approve", "f/feedback": "fine"}


@pytest.fixture
def made(tmp_path: Path) -> Desk:
    return waiting_desk(tmp_path)


@pytest.fixture
def client(made: Desk) -> Iterator[TestClient]:
    with browser(app_of(made)) as client:
        yield client


def hidden(client: TestClient, path: str = PAGE) -> dict[str, str]:
    return fields_of(client.get(path).text)


def send(client: TestClient, form: dict[str, Any], path: str = PAGE) -> Any:
    return client.post(path, data=form, headers={"Origin": BASE})


def ask(made: Desk, key: str = "more", prompt: str = "Well?", **more: Any) -> None:
    evidence = more.pop("evidence", [])
    question = ReviewReceipt(
        path=layout.request(key),
        key=key,
        status="requested",
        fingerprint="fp1:sha256:" + "1" * 64,
        request=ReviewRequest(prompt=prompt, evidence=evidence, **{"returns": ACTIONS, **more}),
        execution=Execution(started_at=made.now(), requested_after=0),
    )
    made.append("wf", question)


def answers(made: Desk) -> list[Any]:
    return [each for each in made.receipts() if each.path.endswith("response.json")]


def test_an_answer_is_recorded_with_the_provenance_of_the_server_whatever_is_sent(
    made: Desk, client: TestClient
) -> None:
    forged = {"by": "eve", "kind": "policy", "_by": "eve", "channel": "cli", "verified": "signature"}
    answer = send(client, hidden(client) | APPROVE | forged)
    assert answer.status_code == 303
    (recorded,) = answers(made)
    assert recorded.output == {"action": "approve", "feedback": "fine"}
    by = recorded.execution.provenance
    assert (by.by, by.kind, by.channel, by.verified) == ("ana", "human", "local-dashboard", "session-token")
    assert made.queued() == ["wf"]
    assert "by ana (human)" in client.get(answer.headers["location"]).text


def test_the_second_answer_is_told_who_was_first_and_keeps_what_was_typed(made: Desk, client: TestClient) -> None:
    first, second = hidden(client), hidden(client)
    assert send(client, first | APPROVE).status_code == 303
    late = send(client, second | {"f/action": "revise", "f/feedback": "my long thoughts"})
    assert late.status_code == 409
    assert "was answered by ana (human, local-dashboard) at 2026-11-29T12:00:00" in late.text
    assert "my long thoughts" in late.text
    assert len(answers(made)) == 1


def test_an_answer_from_the_command_line_is_met_in_the_browser(made: Desk, client: TestClient) -> None:
    form = hidden(client)
    made.workspace.answer("wf", "ok", {"action": "revise", "feedback": ""}, person("bo"))
    assert "was answered by bo (manual, cli)" in send(client, form | APPROVE).text


def test_the_same_form_sent_twice_is_one_answer(made: Desk, client: TestClient) -> None:
    form = hidden(client) | APPROVE
    assert [send(client, form).status_code for _ in range(2)] == [303, 303]
    assert len(answers(made)) == 1


def test_a_form_answers_only_the_question_that_it_was_made_for(made: Desk, client: TestClient) -> None:
    made.ask("other")
    form = hidden(client)
    for wrong in (
        hidden(client, "/reviews/wf/other"),
        form | {"_mark": "0" * 64},
        form | {"_request": "0" * 40},
        form | {"_form": "mine"},
        {"_csrf": form["_csrf"]},
    ):
        answer = send(client, wrong | APPROVE)
        assert answer.status_code == 409
        assert "Nothing was recorded" in answer.text
    assert answers(made) == []


def test_a_stale_form_says_what_has_changed(tmp_path: Path) -> None:
    before, after = desk(tmp_path), desk(tmp_path)
    for made, words in ((before, "the first draft"), (after, "the second draft")):
        made.start()
        ask(made, "ok", evidence=[Evidence(title="Draft", value=words)])
    old = before.workspace.find("wf").head.tip
    app = app_of(after)
    # The commit of a run that was replaced, as from a backup: known still, and no longer what is asked.
    known = after.ledger.at
    after.ledger.at = lambda commit: before.ledger.at(commit) if commit == old else known(commit)  # type: ignore[method-assign]
    with browser(app) as client:
        form = hidden(client)
        mark = app.state.sessions.sign("form", form["_form"], "wf", "ok", old)
        answer = send(client, form | APPROVE | {"_request": old, "_mark": mark})
    assert answer.status_code == 409
    assert "The question has changed" in answer.text
    assert "-the first draft" in answer.text
    assert "+the second draft" in answer.text
    assert answers(after) == []


def test_a_wrong_answer_is_shown_again_with_its_reasons(made: Desk, client: TestClient) -> None:
    answer = send(client, hidden(client) | {"f/action": "burn", "f/feedback": "keep <this>"})
    assert answer.status_code == 422
    assert "should be one of" in answer.text
    assert "keep &lt;this&gt;" in answer.text
    assert answers(made) == []


def test_checking_records_nothing(made: Desk, client: TestClient) -> None:
    page = send(client, hidden(client) | {"f/feedback": "hm", "_check": "1"})
    assert "This answer fits" in page.text
    # Where no button says it, what a button would say is missing.
    whole = send(client, hidden(client) | {"_json": '{"feedback": "hm"}', "_check": "1"})
    assert "/action is missing" in whole.text
    typed = send(client, hidden(client) | {"_json": '{"action": 3}'}, "/check/wf/ok")
    assert {each["field"] for each in typed.json()} == {"/action", "/feedback"}
    assert answers(made) == []


def test_the_whole_answer_can_be_written_as_json(made: Desk, client: TestClient) -> None:
    assert 'name="_json"' in client.get(f"{PAGE}?json").text
    bad = send(client, hidden(client) | {"_json": '{"action": '})
    assert bad.status_code == 422
    assert "is not JSON" in bad.text
    good = send(client, hidden(client) | {"_json": '{"action": "revise", "feedback": ""}'})
    assert good.status_code == 303
    assert answers(made)[0].output["action"] == "revise"


def test_what_was_written_stays_when_one_goes_on_writing_it_as_json_and_back(made: Desk, client: TestClient) -> None:
    as_json = send(client, hidden(client) | {"f/feedback": 'say "when"', "_do": "write as JSON"}).text
    assert "say \\&#34;when\\&#34;" in as_json
    fields = send(client, hidden(client) | {"_json": '{"feedback": "then"}', "_do": "write in fields"}).text
    assert 'name="_json"' not in fields
    assert "then</textarea>" in fields
    half = send(client, hidden(client) | {"_json": '{"feedback": ', "_do": "write in fields"}).text
    assert "is not JSON" in half
    assert "{&#34;feedback&#34;:" in half
    assert answers(made) == []


def test_items_are_added_and_removed_without_a_script_and_record_nothing(made: Desk, client: TestClient) -> None:
    returns = {"type": "array", "items": {"type": "string"}}
    ask(made, returns=returns, input=["one"])
    path = "/reviews/wf/more"
    page = client.get(path).text
    assert ">\none</textarea>" in page
    more = send(client, hidden(client, path) | {"n": "1", "f/0": "one", "_do": "add "}, path)
    assert more.text.count("<textarea") == 2
    fewer = send(client, hidden(client, path) | {"n": "2", "f/0": "one", "f/1": "two", "_do": "remove /0"}, path)
    assert ">\ntwo</textarea>" in fewer.text
    assert ">\none</textarea>" not in fewer.text
    assert answers(made) == []


def test_who_answers_is_told_when_no_runner_is_there_to_go_on(made: Desk, client: TestClient) -> None:
    page = client.get(send(client, hidden(client) | APPROVE).headers["location"]).text
    assert "The answer is recorded." in page
    assert "No runner is up for workflows.sqlite" in page


def test_a_link_cannot_pretend_that_something_was_recorded(client: TestClient) -> None:
    assert "is recorded" not in client.get(f"{PAGE}?recorded").text


def test_an_address_by_commit_shows_the_question_as_it_is_now(made: Desk, client: TestClient) -> None:
    commit = made.workspace.find("wf").head.tip
    send(client, hidden(client) | APPROVE)
    assert "by ana (human)" in client.get(f"/reviews/{commit}/ok").text


def test_a_question_that_ended_takes_no_answer(made: Desk, client: TestClient) -> None:
    form = hidden(client)
    made.end(status="cancelled")
    late = send(client, form | APPROVE)
    assert late.status_code == 409
    assert "takes no more answers" in late.text


def test_a_question_is_shown_whatever_its_schema_and_input_are(made: Desk, client: TestClient) -> None:
    oddities: list[tuple[Any, Any]] = [
        ({"type": "zzz"}, "x"),
        ({"type": "string"}, b"\x00"),
        ({}, {"a": b"x"}),
        ({"$ref": "#/x"}, 1),
    ]
    for number, (returns, given) in enumerate(oddities):
        ask(made, f"odd{number}", prompt="Still here?", returns=returns, input=given)
        answer = client.get(f"/reviews/wf/odd{number}")
        assert (answer.status_code, "Still here?" in answer.text) == (200, True)


def test_evidence_is_shown_for_what_it_is(made: Desk, client: TestClient) -> None:
    evidence = [
        Evidence(title="Draft", value="# Heading\n\n- a"),
        Evidence(title="Patch", value="--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"),
        Evidence(title="Facts", value={"n": 1, "why": "*because*"}),
        Evidence(title="Points", value=["*first*", {"second": True}]),
        Evidence(title="File", path="missing.md"),
    ]
    ask(made, evidence=evidence)
    page = client.get("/reviews/wf/more").text
    assert "<h4>Heading</h4>" in page
    assert '<span class="removed">-old' in page
    assert "<em>because</em>" in page
    assert "missing: missing.md" in page
    assert "<em>first</em>" in page
    assert "<code>true</code>" in page


def test_what_changed_since_the_time_before_is_shown(made: Desk, client: TestClient) -> None:
    for key, words in (("goal/1/look", "one\ntwo\n"), ("goal/2/look", "one\nthree\n")):
        ask(made, key, evidence=[Evidence(title="Draft", value=words)])
    page = client.get("/reviews/wf/goal/2/look").text
    assert "Since <code>goal/1/look</code>" in page
    assert '<span class="added">+three' in page
    assert "the time before" not in client.get("/reviews/wf/goal/1/look").text


def test_what_changed_since_the_previous_run_is_shown(made: Desk, client: TestClient) -> None:
    made.clock.advance(60)
    made.start("wf2")
    made.ask("ok", "wf2")
    assert "Since <code>wf</code>, the previous run: 0 changes" in client.get("/reviews/wf2/ok").text


def test_transcripts_of_the_calls_before_are_at_hand(made: Desk, client: TestClient) -> None:
    ran = CallReceipt(
        path=layout.step("writer"),
        key="writer",
        kind="agent",
        status="completed",
        fingerprint="fp1:sha256:" + "2" * 64,
        request={"name": "writer", "prompt": "write"},
        output="x",
        execution=Execution(finished_at=made.now(), requested_after=0, transcript={"stdout": "thinking <aloud>"}),
    )
    made.append("wf", ran)
    ask(made)
    assert "thinking &lt;aloud&gt;" in client.get("/reviews/wf/more").text
    assert "thinking" not in client.get(PAGE).text


HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](https://evil.example/pixel.png)",
    "[click](javascript:alert(1))",
    "[in](/enter?token=x)",
    "</textarea><script>alert(1)</script>",
    "</pre></details><form action=https://evil.example>",
    '"><svg onload=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u202c",
    "<style>body{display:none}</style>",
    "<a href='//evil.example' onclick=x>",
    "```html\n<iframe src=//evil.example></iframe>\n```",
    "[r]: data:text/html,x\n\n[t][r]",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_wherever_it_is_shown(made: Desk, client: TestClient, text: str) -> None:
    returns = {
        "type": "object",
        "properties": {text: {"type": "string", "title": text, "description": text, "default": text}},
    }
    pieces = [
        Evidence(title=text, value=text),
        Evidence(title="v", value={text: [text]}),
        Evidence(title="p", path=text),
    ]
    ask(made, prompt=text, input=text, assignee=text, evidence=pieces, returns=returns)
    for path in ("/reviews/wf/more", "/reviews/wf/more?json", "/"):
        page = client.get(path).text.lower()
        for made_active in ("<script>", "<svg", "<iframe", "<style", "onerror=alert(1)>", "<form action=https", "<img"):
            assert made_active not in page
        assert 'href="javascript' not in page
        assert 'href="/enter' not in page
        assert 'href="data:' not in page
        # No text is a template.
        assert ("{{ 7 * 7 }}" in page) == ("7 * 7" in text)
        assert "\u202e" not in page


def test_links_of_others_are_marked_and_learn_nothing(made: Desk, client: TestClient) -> None:
    ask(made, prompt="[docs](https://example.org/a)")
    page = client.get("/reviews/wf/more").text
    assert 'href="https://example.org/a" rel="noopener noreferrer nofollow" class="foreign"' in page
    assert 'title="https://example.org/a"' in page


def test_an_unknown_question_names_the_nearest_one(client: TestClient) -> None:
    answer = client.get("/reviews/wf/okk")
    assert answer.status_code == 404
    assert "did you mean" in answer.text
    assert client.get("/reviews/nothing/ok").status_code == 404
