"""`resolve` and `accept`: what a stuck run needs a person for, with who said so."""

from __future__ import annotations

from typing import Any

import click

from ..errors import InvalidInput
from .completion import complete_keys, complete_runs
from .scope import Scope, scoped


@click.command("resolve")
@click.argument("run", shell_complete=complete_runs)
@click.argument("key", shell_complete=complete_keys)
@click.option("--happened", "text", metavar="JSON|@FILE|-", help="The effect happened; this is the step's result.")
@click.option("--did-not-happen", "nothing", is_flag=True, help="It did not: execute the step once more.")
@click.option("--why", default="", help="How you know; recorded with the decision.")
@click.option("--by", metavar="NAME", help="Who decides; your login name when left out.")
@click.option("--kind", type=click.Choice(["human", "manual", "test"]), help="What kind of decision this is.")
@scoped
def resolve(
    scope: Scope, run: str, key: str, text: str | None, nothing: bool, why: str, by: str | None, kind: Any
) -> None:
    """Say what became of an at-most-once step that was begun and left no result."""
    from ..review.resolving import Resolution
    from .inputs import read_json
    from .people import provenance
    from .run import warn_of_split

    if (text is None) != nothing:
        raise InvalidInput("did it happen or not?", hint="pass --happened JSON, or --did-not-happen")
    output = None if text is None else read_json(text, "--happened")
    person = provenance(by, kind)
    with scope.open(scope.holding(run)) as workspace:
        name = workspace.resolve(run)
        given = Resolution(name, key, not nothing, person, workspace.clock.now(), output, why)
        note = workspace.resolve_step(given)
        warn_of_split(scope, workspace)
        state = workspace.state(name)
    document = {
        "workflow_id": name,
        "key": note.key,
        "decision": given.decision,
        "provenance": person.model_dump(),
        "state": state.state,
        "next_action": state.next_action,
    }
    said = f"recorded as {person.kind}, by {person.by}: {note.key} {given.decision.replace('-', ' ')}"
    scope.output.data(document, lambda: f"{said}\nnext: {state.next_action}")


@click.command("accept")
@click.argument("run", shell_complete=complete_runs)
@click.argument("key", required=False, shell_complete=complete_keys)
@click.option("--all", "every", is_flag=True, help="Every changed request, not one.")
@click.option("--why", required=True, help="Why the recorded answer still holds; recorded.")
@click.option("--as-manual", is_flag=True, help="Answers of people too; the receipts say what they are.")
@click.option("--by", metavar="NAME", help="Who decides; your login name when left out.")
@click.option("--kind", type=click.Choice(["human", "manual", "test"]), help="What kind of decision this is.")
@scoped
def accept(
    scope: Scope, run: str, key: str | None, every: bool, why: str, as_manual: bool, by: str | None, kind: Any
) -> None:
    """Keep a recorded answer although the present code asks otherwise, and let the run go on."""
    from .hashseed import fix_hash_seed

    if (key is None) != every:
        raise InvalidInput("what is to be accepted?", hint="name a KEY, or pass --all")
    if not why.strip():
        raise InvalidInput("--why says nothing", hint="say why the recorded answer still holds")
    fix_hash_seed(scope.session)
    from ..runner.accepting import Wish
    from ..runner.accepting import accept as keep
    from .people import provenance
    from .run import warn_of_split

    person = provenance(by, kind)
    with scope.open(scope.holding(run)) as workspace:
        name = workspace.resolve(run)
        done = keep(workspace, Wish(name, key, why, person, as_manual))
        warn_of_split(scope, workspace)
        state = workspace.state(name)
    document = {
        "workflow_id": name,
        "accepted": [{"key": each.key, "kind": each.kind, "request_diff": each.diff} for each in done.accepted],
        "remaining": done.remaining,
        "provenance": person.model_dump(),
        "state": state.state,
        "next_action": state.next_action,
    }
    lines = [line for each in done.accepted for line in (f"accepted {each.kind} {each.key}", each.diff)]
    if done.remaining:
        lines.append(f"still different: {done.remaining}")
    scope.output.data(document, lambda: "\n".join([*lines, f"next: {state.next_action}"]))
