"""`publish` and `review import`: runs go out to be reviewed where people review, and their answers come in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidInput, NotFound, RemoteFailure
from .completion import complete_runs
from .numbers import count
from .plain_git import git_line, tell
from .scope import Scope, scoped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..publishing import Address, Published, Text
    from ..review.imported import Imported
    from ..review.pull_requests import PullRequest
    from ..runner.gh import Gh
    from ..workspace import Workspace

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("publish")
@click.argument("run", shell_complete=complete_runs)
@click.option("--pr", "wants_pull", is_flag=True, help="Open a pull request, or bring the open one up to date.")
@click.option("--remote", metavar="NAME", help="Where to push; `origin` when left out.")
@click.option("--into", type=_FOLDER, metavar="PATH", help="A code repository to put the run into, as one commit.")
@click.option("--base", metavar="BRANCH", help="The branch of the code repository to start from; its main one.")
@click.option("--repository", metavar="[HOST/]OWNER/NAME", help="The forge's repository; found from the remote.")
@click.option("--body-file", type=_FILE, metavar="FILE", help="Where to write what the pull request says.")
@scoped
def publish(
    scope: Scope,
    run: str,
    *,
    wants_pull: bool,
    remote: str | None,
    into: Path | None,
    base: str | None,
    repository: str | None,
    body_file: Path | None,
) -> None:
    """Push a run as a branch that shows exactly this run, to be reviewed."""
    from .. import publishing

    if base is not None and into is None:
        raise InvalidInput("--base is a branch of a code repository", hint="name the repository by --into PATH")
    paths = scope.holding(run)
    with scope.open(paths) as workspace:
        found = workspace.find(run)
        if found.key is not None:
            raise InvalidInput(
                "a run is published whole", hint=f"leave out @{found.key}; `fork` ends where you want it"
            )
        if into is None:
            published = publishing.publish(workspace, found, remote, repository or _configured(scope))
            push = _push_line(published, paths.receipts)
        else:
            published = publishing.place(workspace, found, scope.start / into, base, repository)
            push = git_line(scope.start / into, "push", remote or "origin", published.branch)
            if wants_pull:
                publishing.push_placed(workspace, published, remote)
        # Into a code repository only the commit is made, unless a pull request needs it there.
        done = into is None or wants_pull
        text = publishing.text_of(workspace, found, published)
        gh = _gh(scope, workspace, published.address) if wants_pull else None
        pull = _pulled(scope, workspace, published, text, gh, body_file) if wants_pull or body_file else {}
    document = _published(published) | pull | {"git": push if done else None, "next_action": None if done else push}
    scope.output.data(document, lambda: _publish_text(document, into is not None))
    tell(scope, document["git"])


@click.command("import")
@click.option("--pr", "number", type=count(1), metavar="N", help="The reviews of this pull request.")
@click.option("--file", type=_FILE, metavar="FILE", help="Reviews as the forge's API prints them.")
@click.option("--run", metavar="RUN", shell_complete=complete_runs, help="The run, where the branch does not say it.")
@click.option("--repository", metavar="[HOST/]OWNER/NAME", help="Where the pull request is; the registry says it, too.")
@click.option("--remote", metavar="NAME", help="The remote whose repository it is, where nothing else says it.")
@scoped
def import_reviews(
    scope: Scope,
    number: int | None,
    file: Path | None,
    run: str | None,
    repository: str | None,
    remote: str | None,
) -> None:
    """Take answers in: from a pull request's reviews, or, without options, from pushed and fetched commits."""
    if number is None and file is None:
        answers = _from_commits(scope, run)
    else:
        with scope.open(scope.holding(run) if run else None) as workspace:
            run_id = workspace.resolve(run) if run else None
            if file is not None:
                answers = _from_file(workspace, scope.start / file, number, run_id)
            else:
                address = _address(scope, workspace, repository, remote)
                answers = _from_pull_request(scope, workspace, address, number or 0, run_id)
    scope.output.data(answers_document(answers), lambda: answers_text(answers))


def answers_document(answers: Sequence[Imported]) -> dict[str, Any]:
    listed = [
        {
            "workflow_id": one.run_id,
            "key": one.key,
            "source": one.source,
            "by": one.by,
            "kind": one.kind,
            "outcome": one.outcome,
            "reasons": list(one.reasons),
        }
        for one in answers
    ]
    counts = {outcome: sum(one.outcome == outcome for one in answers) for outcome in ("recorded", "known", "refused")}
    return {"answers": listed} | counts


def answers_text(answers: Sequence[Imported]) -> str:
    lines = []
    for one in answers:
        about = f"{one.run_id} {one.key}".strip()
        what = f"recorded as {one.kind}, by {one.by}" if one.outcome == "recorded" else one.outcome
        lines.append(f"{about} ({one.source}): {what}" + (f", by {one.by}" if one.outcome != "recorded" else ""))
        lines += [f"  {reason}" for reason in one.reasons]
    return "\n".join(lines) or "no answers"


def _from_commits(scope: Scope, run: str | None) -> list[Imported]:
    from ..review.commits import import_commits

    answers: list[Imported] = []
    for paths in [scope.holding(run)] if run else scope.every():
        with scope.open(paths) as workspace:
            run_id = workspace.resolve(run) if run else None
            answers += import_commits(workspace, run_id=run_id)
    return answers


def _from_file(workspace: Workspace, file: Path, number: int | None, run_id: str | None) -> list[Imported]:
    from ..review.forge import import_pull_request
    from ..review.recorded import RecordedForge

    try:
        forge = RecordedForge(file.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}") from None
    return import_pull_request(workspace, forge, number or forge.pull.number, run_id)


def _from_pull_request(
    scope: Scope, workspace: Workspace, address: Address | None, number: int, run_id: str | None
) -> list[Imported]:
    from ..review.forge import import_pull_request

    gh = _gh(scope, workspace, address)
    if gh is None:
        raise NotFound(
            "pull requests are read by the program gh, and it is not there",
            hint="install it, or pass the reviews by --file FILE",
        )
    return import_pull_request(workspace, gh, number, run_id)


def _address(scope: Scope, workspace: Workspace, repository: str | None, remote: str | None) -> Address:
    from .. import publishing

    if named := repository or (None if remote else _configured(scope)):
        return publishing.address_of(named)
    found = publishing.address_of_remote(workspace, remote)
    if found is None:
        raise InvalidInput(
            "nothing says which repository the pull request is in",
            hint="pass --repository OWNER/NAME, or set pull_requests in the registry",
        )
    return found


def _configured(scope: Scope) -> str | None:
    return scope.registry.pull_requests.repository if scope.registry.pull_requests else None


def _gh(scope: Scope, workspace: Workspace, address: Address | None) -> Gh | None:
    from ..runner.gh import Gh

    environment = scope.session.environment
    if address is None or not Gh.is_there(environment):
        return None
    return Gh(address, workspace.root, environment, workspace.redactor, workspace.clock)


def _pulled(
    scope: Scope, workspace: Workspace, published: Published, text: Text, gh: Gh | None, body_file: Path | None
) -> dict[str, Any]:
    """What became of the pull request. Its body is kept in a file, also for whoever opens it by hand."""
    file = scope.start / body_file if body_file else _body_file(workspace, published)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.body, encoding="utf-8", newline="\n")
    told = {"title": text.title, "body_file": str(file), "pull_request": None}
    if gh is None:
        url = published.address.new_pull_request(published.base, published.branch) if published.address else None
        return told | {"url": url}
    try:
        pull, new = gh.open(published, text)
    except RemoteFailure as error:
        raise RemoteFailure(
            f"the branch is there, and no pull request was opened: {error.message}",
            hint=f"{error.hint}; its text is in {file}",
        ) from None
    return told | {"url": pull.url, "pull_request": _pull(pull, new)}


def _body_file(workspace: Workspace, published: Published) -> Path:
    name = published.branch.partition("/")[2]
    return workspace.paths.receipts / "hermes" / "bodies" / f"{name}.md"


def _pull(pull: PullRequest, new: bool) -> dict[str, Any]:
    return {"repository": pull.repository, "number": pull.number, "new": new}


def _published(published: Published) -> dict[str, Any]:
    return {
        "workflow_id": published.run_id,
        "branch": published.branch,
        "base": published.base,
        "commit": published.commit,
        "tip": published.tip,
        "folder": published.folder,
        "where": published.where,
        "new": published.new,
    }


def _publish_text(document: dict[str, Any], placed: bool) -> str:
    verb = "is on" if document["new"] else "was already on"
    lines = [f"{document['workflow_id']} {verb} {document['branch']} of {document['where']}"]
    if placed:
        lines.append(f"  as {document['folder']}, in commit {document['commit'][:12]}")
    pull = document.get("pull_request")
    if pull:
        lines.append(
            f"pull request {pull['number']} {'opened' if pull['new'] else 'brought up to date'}: {document['url']}"
        )
    elif "body_file" in document:
        lines.append(f"open it at: {document['url'] or 'the page of your forge'}")
        lines += [f"  title: {document['title']}", f"  body:  {document['body_file']}"]
    lines += [f"next: {document['next_action']}"] if document["next_action"] else []
    return "\n".join(lines)


def _push_line(published: Published, receipts: Path) -> str:
    refspec = f"{published.tip[:12]}:refs/heads/{published.branch}"
    return git_line(receipts, "push", published.where, refspec)
