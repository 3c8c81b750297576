"""Hints for names nobody knows."""

from __future__ import annotations

from hermes_workflows.core.spelling import nearest, suggestion


def test_the_nearest_word_is_found_whatever_its_case() -> None:
    assert nearest("Reviewable-Drft", ["launch", "reviewable-draft"]) == "reviewable-draft"


def test_a_word_like_no_other_gets_the_list_instead_of_a_wrong_guess() -> None:
    assert suggestion("zzz", ["launch", "draft"], "workflows") == "known workflows: draft, launch"


def test_a_long_list_is_cut() -> None:
    assert suggestion("zzz", [f"workflow{n}" for n in range(20)], "workflows").endswith("…")


def test_an_empty_list_says_so() -> None:
    assert suggestion("draft", [], "workflows") == "there are no workflows yet"
