"""What is given to a forge does nothing there, and fits."""

from __future__ import annotations

import re

import pytest

from hermes_workflows.core.bodies import LIMIT, body, size
from hermes_workflows.core.inert import GAP, inert


@pytest.mark.parametrize(
    ("text", "active"),
    [
        ("cc @octocat", r"@octocat"),
        ("`@octocat` in code", r"@octocat"),
        (r"\@octocat", r"@octocat"),
        ("see #12 and o/r#3", r"#\d"),
        (r"see \#12", r"#\d"),
        ("GH-7", r"GH-7"),
        ("merge request !12", r"!12"),
        ("closes https://github.com/o/r/issues/9", r"issues/9|\bcloses\b"),
        ("Fixes: #12", r"(?i)\bfixes\b|#12"),
        ("resolved JIRA-12", r"\bresolved\b"),
        ("::set-output name=x::y", r"::set"),
        ("  ::error::no", r"::error"),
        ("##[command]ls", r"##\["),
        ("/merge\n> /approve\n- /lgtm now", r"(?m)/(merge|approve|lgtm)"),
    ],
)
def test_what_a_forge_or_a_bot_would_act_on_is_broken(text: str, active: str) -> None:
    assert re.search(active, text)
    assert not re.search(active, inert(text))
    assert inert(text).replace(GAP, "") == text


@pytest.mark.parametrize(
    "entity", ["&#64;octocat", "&commat;octocat", "&#x40;octocat", "&num;12", "&#35;12", "#&#49;2"]
)
def test_entities_cannot_write_what_the_text_may_not(entity: str) -> None:
    import html

    shown = html.unescape(inert(entity))
    assert "@octocat" not in shown
    assert not re.search(r"#\d", shown)


def test_what_is_inert_stays_as_it_is() -> None:
    closed = "6 closed\n\n## Next\n\nfixed utf-8, and fixes nothing.\n"
    prose = f"# Run `wf`\n\n/usr/bin/env, std::vector, 3:45, a/b, x != y, &lt;b&gt;\n\n{closed}"
    assert inert(prose) == prose
    once = inert("@a fixes #1 ::x::\n/merge &#64;a")
    assert inert(once) == once


def test_a_body_that_fits_is_the_readme() -> None:
    assert body("# Run\n\nhello\n") == "# Run\n\nhello\n"


def readme(rows: int, lines: int) -> str:
    table = "| key | took |\n|---|---|\n" + "| a | 1 s |\n" * rows
    transcript = "~~~text\n```\n\n# no heading\n" + "y" * 50 + "\n" * lines + "~~~\n"
    return f"# Run\n\nsummary\n\n## Calls\n\n{table}\n## Transcript\n\nbefore\n\n{transcript}\n## Reviews\n\nthe end\n"


@pytest.mark.parametrize(("rows", "lines"), [(20_000, 10), (10, 90_000), (30_000, 90_000), (8_000, 60_000)])
def test_a_long_readme_is_cut_by_section_below_what_a_forge_takes(rows: int, lines: int) -> None:
    made = body(readme(rows, lines), whole="`README.md`")
    assert size(made) <= LIMIT < 65_536
    for kept in ("# Run\n\nsummary", "## Calls\n", "## Transcript\n", "## Reviews\n\nthe end"):
        assert kept in made
    assert "left out here; `README.md` has them" in made


def test_no_cut_is_inside_a_fence() -> None:
    for lines in (10, 40_000, 64_000, 66_000, 90_000):
        made = body(readme(3_000, lines))
        # The fence is there whole, or not at all.
        assert made.count("~~~") in (0, 2)
        assert ("# no heading" in made) == (made.count("~~~") == 2)


def test_characters_beyond_the_first_plane_count_as_forges_may_count_them() -> None:
    assert size(body("\n".join(["# Run", *("- 🌈" * 3 for _ in range(15_000))]))) <= LIMIT


def test_many_sections_leave_room_for_the_first_and_the_last() -> None:
    middle = "".join(f"### Call {number}\n\n```text\n{'z' * 300}\n```\n\n" for number in range(20_000))
    made = body(f"# Run\n\nsummary\n\n{middle}## Reviews\n\nthe end\n", whole="`README.md`")
    assert size(made) <= LIMIT
    assert "summary" in made
    assert made.endswith("## Reviews\n\nthe end\n")
    assert made.count("```") % 2 == 0


def test_a_text_that_ends_with_an_empty_line_is_cut_like_any_other() -> None:
    made = body("# Run\n\n" + "a line\n\n" * 12_000)
    assert size(made) <= LIMIT
    assert re.search(r"a line\n\n_[\d,]+ characters of this section are left out here\._\n\n$", made)
