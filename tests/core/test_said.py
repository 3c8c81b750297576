"""What calls said: streams, and files in which agents kept it."""

from __future__ import annotations

from tests.core.bodies import one
from tests.core.driving import Driver

from hermes_workflows.authoring import workflow
from hermes_workflows.core.receipts import Failure, Receipt
from hermes_workflows.core.said import transcript_of
from hermes_workflows.core.told_calls import calls_told


@workflow
async def body() -> int:
    return await one()


def result(**execution: object) -> Receipt:
    driver = Driver(body)
    made = driver.receipt_for(driver.call("one"))
    return made.model_copy(update={"execution": made.execution.model_copy(update=execution)})


def test_files_of_a_transcript_are_told_after_its_streams() -> None:
    made = result(transcript={"files": {"log.txt": "in a file", "n": 5}, "stderr": "oh", "stdout": " "})
    assert [(each.title, each.text) for each in transcript_of(made)] == [
        ("stderr", "oh"),
        ("log.txt", "in a file"),
        ("n", "5"),
    ]
    assert list(transcript_of(result(transcript={"files": "none"}))) == []


def test_an_error_is_told_without_what_its_attempts_consumed() -> None:
    details = {"attempts": [{"number": 1, "usage": {"input_tokens": 3}}], "more": 1}
    for told, kept in ((details, {"attempts": [{"number": 1}], "more": 1}), ({"attempts": 2}, {"attempts": 2})):
        failed = result().model_copy(update={"error": Failure(type="Broken", message="no", details=told)})
        (call,) = calls_told([failed])
        assert call.error["details"] == kept
