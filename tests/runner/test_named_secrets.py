"""What a workflow names a secret is one everywhere from then on: in other calls, runs, names, and what people send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runner.desks import Desk

from hermes_workflows.core.receipts import Provenance
from hermes_workflows.errors import InvalidInput

# Neither its name nor its shape says that it is a secret.
VALUE = "blue-Elephant-soup"
HALVES = '"blue-" + "Elephant-soup"'
NAMING = f"""
from hermes_workflows.authoring import secret
WORD = secret("HOUSE_WORD")

@step
def leak() -> str:
    return "it is " + {HALVES}

async def name_it() -> None:
    await bash("true", env={{"W": WORD}}, name="name-it")
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, environment={"HOUSE_WORD": VALUE, "PATH": "/usr/bin:/bin"})


def kept(desk: Desk) -> str:
    """Everything the ledger has, but for sources: names of files, receipts, READMEs."""
    files = [item for run in desk.ledger._runs.values() for item in run.files.items()]
    return "\n".join(f"{path}\n{data.decode(errors='replace')}" for path, data in files if "source/" not in path)


def flow(body: str) -> str:
    return NAMING + f"\n@workflow\nasync def flow(given: str = '') -> str:\n    await name_it()\n{body}"


def test_every_other_call_of_a_run_hides_what_one_call_has_named(desk: Desk) -> None:
    desk.run(
        flow("""
    said = (await bash("printf blue-; echo Elephant-soup", name="other")).stdout
    return said + await leak()
""")
    )
    assert desk.summary().result == "[redacted:HOUSE_WORD]\nit is [redacted:HOUSE_WORD]"
    assert VALUE not in kept(desk)


def test_the_input_of_a_run_whose_source_names_a_secret_is_recorded_without_it(desk: Desk) -> None:
    desk.write(flow("    return given\n"))
    desk.start(given=f"use {VALUE}")
    desk.work()
    assert desk.summary().result == "use [redacted:HOUSE_WORD]"
    assert VALUE not in kept(desk)


def test_another_run_of_the_process_hides_it_too(desk: Desk) -> None:
    desk.run(flow("    return ''\n"))
    desk.write(
        f"@step\ndef say() -> str:\n    return {HALVES}\n@workflow\nasync def flow() -> str:\n    return await say()\n",
        "other.py",
    )
    desk.start("wf2", ref="other.py:flow")
    desk.work()
    assert desk.summary("wf2").result == "[redacted:HOUSE_WORD]"


def test_a_hidden_value_stays_hidden_in_later_calls_of_the_run(desk: Desk) -> None:
    desk.run("""
@workflow
async def flow() -> str:
    word = "green-" + "Giraffe-stew"
    await bash(["echo", word], redact=[word])
    return (await bash("printf green-; echo Giraffe-stew")).stdout + (await bash(["echo", word])).stdout
""")
    assert "green-Giraffe-stew" not in kept(desk)
    assert desk.summary().result == "[redacted:redact-1]\n" * 2


def test_a_rebuilt_body_asks_for_the_same_as_the_one_that_named_the_secret(desk: Desk) -> None:
    desk.write(
        NAMING
        + f"""
@workflow
async def flow() -> str:
    word = {HALVES}
    before = (await bash(["test", word], name="before")).exit_code
    await name_it()
    await bash(["test", word], name="after")
    return await ask("Go on?", key="go", returns=str)
"""
    )
    desk.start()
    desk.work()
    other = desk.process()
    other.answer("wf", "go", f"yes, {VALUE}", Provenance(kind="test", by="test", channel="test"))
    desk.work(on=other)
    assert desk.summary().status == "completed", desk.marks()


def test_an_answer_from_another_process_is_recorded_without_it(desk: Desk) -> None:
    desk.run(flow('    return await ask("Word?", key="word", returns=str)\n'))
    by = Provenance(kind="test", by=f"ada {VALUE}", channel=f"chat-{VALUE}", message_id=VALUE)
    desk.process().answer("wf", "word", f"it is {VALUE}", by)
    desk.work()
    assert desk.summary().result == "it is [redacted:HOUSE_WORD]"
    assert VALUE not in kept(desk)


def test_who_cancels_is_recorded_without_it(desk: Desk) -> None:
    desk.run(flow('    return await ask("Word?", key="word", returns=str)\n'))
    by = Provenance(kind="test", by=f"ada {VALUE}", channel="test")
    desk.process().control("wf", "cancel", reason=f"because {VALUE}", by=by)
    desk.work()
    assert desk.summary().status == "cancelled"
    assert VALUE not in kept(desk)


@pytest.mark.parametrize(
    "argument", ["key=f'a/{word}/b'", "key_by=word", "key_by=[word, 1]", "name=word"], ids=["key", "by", "list", "name"]
)
def test_a_secret_in_a_name_reaches_no_key_and_no_path(desk: Desk, argument: str) -> None:
    done = desk.run(flow(f"    word = {HALVES}\n    await bash('true', {argument})\n    return ''\n"))
    assert done.status == "completed", done.error
    held = kept(desk).lower()
    assert VALUE.lower() not in held
    assert "redacted-house_word" in held or "redacted:house_word" in held


def test_a_secret_in_the_name_of_an_agent_or_a_branch_is_no_part_of_what_is_committed(desk: Desk) -> None:
    authors: list[Any] = []
    append = desk.ledger.append
    desk.ledger.append = lambda entries: (  # type: ignore[method-assign]
        authors.extend(each.author.name for entry in entries for each in entry.drafts) or append(entries)
    )
    desk.run(
        flow(f"""
    word = {HALVES}
    await parallel({{word: bash("true", name="x") }})
    return await agent(word, "Hi.", returns=str, mock_output="mocked")
""")
    )
    assert desk.summary().result == "mocked", desk.summary().error
    assert "agent [redacted:HOUSE_WORD]" in authors
    assert VALUE not in kept(desk)


def test_ids_with_a_secret_are_refused_without_saying_it(desk: Desk) -> None:
    desk.write(flow("    return ''\n"))
    with pytest.raises(InvalidInput, match="the run id contains a secret") as run:
        desk.start(f"wf-{VALUE}")
    with pytest.raises(InvalidInput, match="the runner's name contains a secret") as runner:
        desk.runner(f"ada-{VALUE}")
    assert VALUE not in str(run.value) + str(runner.value)
    assert list(desk.ledger.heads()) == []
