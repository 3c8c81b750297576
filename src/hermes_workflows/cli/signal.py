"""`signal`: tells a run that something has happened outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .completion import complete_runs, complete_signals
from .run import warn_of_split
from .scope import Scope
from .session import debug_option

if TYPE_CHECKING:
    from ..core.summary import RunSummary
    from ..review.signals import Sent


@click.command("signal")
@click.argument("run", shell_complete=complete_runs)
@click.argument("name", shell_complete=complete_signals)
@click.option("--json", "text", metavar="JSON|@FILE|-", default="{}", help="What the signal says; {} when left out.")
@click.option("--by", metavar="NAME", help="Who sends it; your login name when left out.")
@click.option("--channel", default="cli", show_default=True, help="What the signal came through.")
@click.option("--message-id", metavar="ID", help="Names the message: sending it again records nothing new.")
@click.option("--kind", type=click.Choice(["human", "manual", "test"]), help="Of which kind the signal is.")
@click.option("--config", metavar="FILE", help="The registry; found upwards from here when left out.")
@click.option("--db", metavar="ALIAS|PATH", help="The database; the registry's default one when left out.")
@debug_option
@click.pass_obj
def signal(session: Any, /, run: str, name: str, text: str, config: str | None, db: str | None, **given: Any) -> None:
    """Send a run an event that it waits for, or will wait for."""
    from .inputs import read_json
    from .people import provenance

    scope = Scope(session, config, db)
    person = provenance(given["by"], given["kind"], given["channel"], given["message_id"])
    payload = read_json(text, "--json")
    with scope.open(scope.holding(run)) as workspace:
        run_id = workspace.resolve(run)
        sent = workspace.signal(run_id, name, payload, person)
        warn_of_split(scope, workspace)
        summary, state = workspace.summary(run_id), workspace.state(run_id)
    if sent.wait is None and summary.open_waits:
        waits = ", ".join(dict.fromkeys(wait.name for wait in summary.open_waits.values()))
        scope.output.talk(f"nobody waits for {name} yet, it is kept; {run_id} waits for {waits}")
    document = _document(summary, sent) | {"state": state.state, "next_action": state.next_action}
    scope.output.data(document, lambda: f"{_text(sent)}\nnext: {state.next_action}")


def _document(summary: RunSummary, sent: Sent) -> dict[str, Any]:
    receipt = sent.receipt.model_dump()
    return {
        "workflow_id": summary.run_id,
        "name": sent.receipt.key,
        "number": sent.number,
        "wait": sent.wait,
        "payload": sent.receipt.output,
        "received_at": receipt["execution"]["finished_at"],
        "provenance": receipt["execution"]["provenance"],
    }


def _text(sent: Sent) -> str:
    person = sent.receipt.execution.provenance
    assert person is not None  # every signal says who sent it
    taken = f"for {sent.wait}, which waits for it" if sent.wait else "and kept until the workflow waits for it"
    who = f"{person.kind}, by {person.by} through {person.channel}"
    return f"{sent.receipt.key} {sent.number} recorded as {who}, {taken}"
