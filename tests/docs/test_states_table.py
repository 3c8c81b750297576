"""The table of states on its page is the one that the rules make."""

from __future__ import annotations

from tests.docs.pages import ROOT

from hermes_workflows.core.state_rules import TABLE
from hermes_workflows.core.state_table import as_table


def test_the_table_of_states_is_made_of_the_rules() -> None:
    page = (ROOT / "docs" / "states.md").read_text(encoding="utf-8")
    assert f"\n\n{as_table()}\n\n<!-- end of the table -->" in page, "run: python scripts/states_table.py"


def test_every_rule_has_a_row_of_its_own() -> None:
    assert len({rule.when for rule in TABLE}) == len(TABLE) == as_table().count("\n") - 1
