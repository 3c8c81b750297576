"""How the comparison of two runs is told to a person and to a program."""

from __future__ import annotations

from hermes_workflows.cli.differences import comparison_document, comparison_text
from hermes_workflows.core.changes import ABSENT, Change
from hermes_workflows.core.comparison import Comparison, Difference, Part
from hermes_workflows.core.told_calls import ToldCall

WRITER = ToldCall("agent", "writer", (0, 1), "completed", output="a text")
FAILED = ToldCall("bash", "check", (1, 2), "failed", error={"type": "TimedOut", "message": "it took too long"})


def _comparison(*differences: Difference, beside: tuple[Difference, ...] = ()) -> Comparison:
    return Comparison(differences, beside, 4, ({"cost_usd": 0.5}, {"cost_usd": 1.0}))


def _changed(*parts: Part) -> Difference:
    return Difference("changed", WRITER, WRITER, parts)


def test_a_text_is_told_by_its_lines_and_a_value_on_one() -> None:
    found = _comparison(
        _changed(Part("output", Change("", "a\nb", "a\nc")), Part("exit code", Change("/exit_code", 0, ABSENT)))
    )
    assert comparison_text("one", "other", found).splitlines()[2:8] == [
        "~ agent writer",
        "    output:",
        "      @@ -1,2 +1,2 @@",
        "       a",
        "      -b",
        "      +c",
    ]
    assert "    exit code: 0 → nothing" in comparison_text("one", "other", found)
    (output, code) = comparison_document(found)["differences"][0]["changes"]
    assert output == {
        "of": "output",
        "at": "",
        "before": "a\nb",
        "after": "a\nc",
        "lines": ["@@ -1,2 +1,2 @@", " a", "-b", "+c"],
    }
    assert code == {"of": "exit code", "at": "/exit_code", "before": 0}


def test_calls_of_one_run_are_told_with_what_became_of_them() -> None:
    said = comparison_text(
        "one", "other", _comparison(Difference("removed", WRITER, None), Difference("added", None, FAILED))
    )
    assert (
        said.splitlines()[0]
        == "one and other part at agent writer, which only one has: 2 differences, 4 calls the same"
    )
    assert '- agent writer: completed, "a text"' in said
    assert "+ bash check: failed, it took too long" in said
    assert "usage: 0 tokens in, 0 out, 0.5000 USD; then 0 tokens in, 0 out, 1.0000 USD" in said


def test_models_stand_beside_the_differences_and_are_none() -> None:
    found = _comparison(beside=(_changed(Part("model", Change("", "m-1", "m-2"))),))
    said = comparison_text("one", "other", found)
    assert said.startswith("one and other did the same: 4 calls")
    assert 'not counted as differences:\n~ agent writer\n    model: "m-1" → "m-2"' in said
    assert comparison_document(found)["equal"]


def test_a_long_text_is_cut_on_a_terminal_only() -> None:
    found = _comparison(_changed(Part("output", Change("", "", "line\n" * 500))))
    assert "… and 462 more lines; --json has all" in comparison_text("one", "other", found)
    assert len(comparison_document(found)["differences"][0]["changes"][0]["lines"]) == 502
