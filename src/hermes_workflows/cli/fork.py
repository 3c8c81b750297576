"""`fork` and `retry`: a new run that begins with what another one has recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidInput
from .completion import complete_moments, complete_runs
from .plain_git import git_line, revision, tell
from .scope import Scope, scoped
from .told import counted

if TYPE_CHECKING:
    from ..core.encoding import Plain
    from ..core.receipts import Provenance
    from ..finding import Found
    from ..runner.forking import Forked
    from ..workspace import Workspace

_by = click.option("--by", metavar="NAME", help="Who does this; your login name when left out.")
_kind = click.option("--kind", type=click.Choice(["manual", "test"]), help="What kind of answers --set gives.")


@click.command("fork")
@click.argument("run", metavar="RUN[@KEY]", shell_complete=complete_moments)
@click.option("--id", "run_id", metavar="NEW", required=True, help="The new run's id.")
@click.option("--input-json", "text", metavar="JSON|@FILE|-", help="Another input; what does not depend on it is kept.")
@click.option("--set", "answers", metavar="KEY=JSON", multiple=True, help="A result in the stead of the recorded one.")
@_by
@_kind
@scoped
def fork(
    scope: Scope, run: str, run_id: str, text: str | None, answers: Sequence[str], by: str | None, kind: Any
) -> None:
    """Begin a run with the receipts of another one, and go on from there under the present code.

    RUN@KEY is the moment after KEY. RUN alone adopts as much as the present code still fits, without the failure or
    the cancel request that ended it. Later steps run again, and people are asked again.
    """
    from .hashseed import fix_hash_seed
    from .inputs import read_json

    # First of all: the process that takes this one's place would find its stdin read.
    fix_hash_seed(scope.session)
    given = () if text is None else (read_json(text, "--input-json"),)
    wanted = dict(_answer(each) for each in answers)
    with scope.open(scope.holding(run)) as workspace:
        found = workspace.find(run)
        done = _forked(scope, workspace, found, run_id, _who(by, kind), given, wanted)
        _tell_forked(scope, workspace, done)


@click.command("retry")
@click.argument("run", shell_complete=complete_runs)
@click.option("--id", "run_id", metavar="NEW", help="The id of the fork of an ended run; RUN-retry-N when left out.")
@_by
@scoped
def retry(scope: Scope, run: str, run_id: str | None, by: str | None) -> None:
    """Try again: a stuck run in place, a failed or cancelled one by a fork of it."""
    from .hashseed import fix_hash_seed

    fix_hash_seed(scope.session)
    from ..runner.forking import Forked, Wish, retry_id
    from ..runner.forking import retry as again
    from .guard import guarded
    from .run import warn_of_split
    from .seen import Shown
    from .show import run_document, status_text

    with scope.open(scope.holding(run)) as workspace:
        found = workspace.find(run)
        wish = Wish(found, run_id or retry_id(workspace, found.run_id), _who(by, None))
        with guarded(lambda: [workspace.redactor], own_process=scope.session.own_process):
            done = again(workspace, wish)
        if isinstance(done, Forked):
            _tell_forked(scope, workspace, done)
            return
        warn_of_split(scope, workspace)
        state = workspace.observe(done)
        document = run_document(done) | {"retried": "in place", "state": state.state}
        scope.output.data(document, lambda: status_text(Shown(done, state)))


def _who(by: str | None, kind: Any) -> Provenance:
    from .people import provenance

    return provenance(by, kind)


def _answer(text: str) -> tuple[str, Plain]:
    from .inputs import read_json

    key, equals, value = text.partition("=")
    if not (key and equals):
        raise InvalidInput(f"--set {text}: KEY=JSON is wanted", hint="quote strings as JSON does: --set 'key=\"text\"'")
    return key, read_json(value, f"--set {key}")


def _forked(
    scope: Scope,
    workspace: Workspace,
    found: Found,
    run_id: str,
    by: Provenance,
    given: tuple[Plain, ...],
    answers: dict[str, Plain],
) -> Forked:
    from ..runner.forking import Wish
    from ..runner.forking import fork as begin
    from .guard import guarded

    with guarded(lambda: [workspace.redactor], own_process=scope.session.own_process):
        return begin(workspace, Wish(found, run_id, by, given, answers))


def _tell_forked(scope: Scope, workspace: Workspace, done: Forked) -> None:
    from .run import warn_of_split

    warn_of_split(scope, workspace)
    state = workspace.state(done.run_id)
    new = workspace.find(done.run_id)
    for key in done.again:
        scope.output.talk(
            f"warning: {key} was begun in {done.source.run_id} and may have had its effect; it runs again"
        )
    trees = [f"{revision(each)}:{each.head.folder}" for each in (done.source, new)]
    line = git_line(workspace.paths.receipts, "diff", *trees, "--", ":!*README.md")
    document = {
        "workflow_id": done.run_id,
        "forked_from": {
            "workflow_id": done.source.run_id,
            "commit": done.source.head.tip,
            "key": done.source.key,
            "remote": done.source.remote,
        },
        "adopted": done.adopted,
        "after": done.after,
        "stopped": done.stopped,
        "again": list(done.again),
        "state": state.state,
        "next_action": state.next_action,
        "git": line,
    }
    scope.output.data(document, lambda: _text(done, state.next_action))
    tell(scope, line)


def _text(done: Forked, next_action: str | None) -> str:
    where = f"after {done.after}" if done.after else "from the start"
    lines = [
        f"{done.run_id}: forked from {done.source.run_id}, goes on {where}; {counted(done.adopted, 'receipt')} adopted"
    ]
    if done.stopped:
        lines.append(f"  no more, because {done.stopped}")
    return "\n".join([*lines, *([f"next: {next_action}"] if next_action else [])])
