"""Publishing a run for review: a branch `run/<id>` at a remote, or on a code repository, and what a forge is told.

The branch is the run's own tip, so that its difference to `main` (three dots, as a pull request shows it) is exactly
this run, whatever else was merged there before. Nothing is forced, but for one case: where the branch has gone on to
an answer that was pushed to it and has been recorded since, that commit is replaced, and only that one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from .core import layout
from .core.bodies import body
from .core.inert import inert
from .core.messages import cut
from .core.names import run_component
from .core.plain import git_line
from .core.readme import render
from .core.receipts import Receipt
from .core.summary import RunSummary, summarize
from .errors import Conflict, InvalidInput, NotFound
from .finding import Found
from .review.forge import BRANCH, INTO
from .store.code_repository import CodeRepository
from .store.git_ledger import GitLedger
from .store.reaching import leads_to, reach
from .store.remotes import Remote, Transport, find_remote, kept_as
from .store.repository import GENESIS, MAIN
from .workspace import Workspace

_HEADS = "refs/heads/"
_ADDRESS = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^@/]+@)?(?P<host>[\w.-]+)(?::\d+)?/|(?:[^@/:]+@)?(?P<scp>[\w-]+(?:\.[\w-]+)+):/?)"
    r"(?P<path>\w[\w.-]*/(?!\.+/?$)[\w.-]+?)(?:\.git)?/?"
)
_SLUG = re.compile(r"(?:(?P<host>[\w-]+(?:\.[\w-]+)+)/)?(?P<path>\w[\w.-]*/(?!\.+$)[\w.-]+)")
_LINK = re.compile(r"\]\((?=(?:artifacts|reviews|steps|timers|signals|control|source|run\.json|result\.json)[/)])")


@dataclass(frozen=True)
class Address:
    """A repository on a forge."""

    host: str
    repository: str

    @property
    def owner(self) -> str:
        return self.repository.partition("/")[0]

    @property
    def url(self) -> str:
        return f"https://{self.host}/{self.repository}"

    def new_pull_request(self, base: str, branch: str) -> str:
        """The page on which a person opens one."""
        if "gitlab" in self.host:
            return f"{self.url}/-/merge_requests/new?merge_request%5Bsource_branch%5D={quote(branch, safe='')}"
        return f"{self.url}/compare/{quote(base)}...{quote(branch)}?expand=1"


@dataclass(frozen=True)
class Published:
    """What stands on the branch now. `where` is a remote's name or a folder, `address` None where no forge is."""

    run_id: str
    branch: str
    base: str
    commit: str
    tip: str
    folder: str
    where: str
    new: bool
    address: Address | None


@dataclass(frozen=True)
class Text:
    """A pull request's title and body, inert."""

    title: str
    body: str


def publish(workspace: Workspace, found: Found, remote_name: str | None, repository: str | None) -> Published:
    """Push the run's branch to a remote of the receipts repository.

    Raises NotFound, InvalidInput, RemoteFailure, and Conflict where the remote has something else.
    """
    ledger = _git(workspace)
    remote = find_remote(ledger.path, remote_name)
    transport = reach(ledger.path, remote, ledger.disk, workspace.environment)
    branch = BRANCH + run_component(found.run_id)
    theirs = transport.refs(for_push=True)
    _check_main(ledger, remote, transport, theirs.get(MAIN))
    wanted = {_HEADS + branch: found.head.tip}
    if MAIN not in theirs:
        # A pull request needs something to be merged into.
        wanted[MAIN] = GENESIS
    old = theirs.get(_HEADS + branch)
    new = old != found.head.tip
    if new:
        refused = transport.push(wanted)
        if (why := refused.get(_HEADS + branch)) is not None:
            _replace(ledger, remote, transport, found, branch, old, why)
    address = address_of(repository) if repository else address_in(remote.url)
    head = found.head
    return Published(found.run_id, branch, "main", head.tip, head.tip, head.folder, remote.name, new, address)


def place(
    workspace: Workspace, found: Found, target: Path, base: str | None = None, repository: str | None = None
) -> Published:
    """Put the run on a branch of a code repository, as one commit; see `store.code_repository`."""
    ledger = _git(workspace)
    code = CodeRepository(target, workspace.environment)
    component = run_component(found.run_id)
    branch, folder = BRANCH + component, f"{INTO}/{component}"
    placed = code.place(ledger.path, f"{found.head.tip}:{found.head.folder}", folder, branch, _message(found), base)
    address = address_of(repository) if repository else _origin(code.path)
    return Published(
        found.run_id, branch, placed.base, placed.commit, found.head.tip, folder, str(target), placed.new, address
    )


def push_placed(workspace: Workspace, published: Published, remote_name: str | None) -> Remote:
    """Push the branch of a code repository to a remote of it. Raises NotFound, RemoteFailure, Conflict."""
    code = CodeRepository(Path(published.where), workspace.environment)
    remote = find_remote(code.path, remote_name)
    ledger = _git(workspace)
    transport = reach(code.path, remote, ledger.disk, workspace.environment)
    refused = transport.push({_HEADS + published.branch: published.commit})
    if why := refused.get(_HEADS + published.branch):
        raise Conflict(f"{remote.name} does not take {published.branch}: {why}", hint="fetch and merge it there first")
    return remote


def text_of(workspace: Workspace, found: Found, published: Published) -> Text:
    """What a pull request of a published run says: the README of that very commit."""
    summary = summarize(found.run_id, found.receipts)
    readme = workspace.ledger.content(found.head.tip, layout.README) or render(summary, found.receipts)
    text = readme.decode("utf-8", "replace")
    where = f"`{published.folder}/{layout.README}` on the branch"
    if published.address:
        there = f"{published.address.url}/blob/{quote(published.branch)}/{published.folder}/"
        text = _LINK.sub(f"]({there}", text)
    return Text(inert(_title(summary, found.receipts)), body(text, whole=where))


def address_of(text: str) -> Address:
    """`[HOST/]OWNER/NAME`. Raises InvalidInput."""
    found = _SLUG.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{text!r} names no repository of a forge", hint="write OWNER/NAME, or HOST/OWNER/NAME")
    return Address(found["host"] or "github.com", found["path"])


def address_in(url: str) -> Address | None:
    """The forge's repository behind a remote's URL; None for a folder and for anything that is no forge's."""
    found = _ADDRESS.fullmatch(url)
    return Address(found["host"] or found["scp"], found["path"]) if found else None


def address_of_remote(workspace: Workspace, name: str | None) -> Address | None:
    """The forge's repository of a remote of the receipts. Raises NotFound, InvalidInput."""
    return address_in(find_remote(_git(workspace).path, name).url)


def _title(summary: RunSummary, receipts: tuple[Receipt, ...]) -> str:
    waiting = f" on {summary.waiting_on.key}" if summary.waiting_on and not summary.ended else ""
    return cut(f"Run {summary.run_id}: {summary.status}{waiting}")


def _message(found: Found) -> str:
    summary = summarize(found.run_id, found.receipts)
    trailers = {"Run": found.run_id, "Tip": found.head.tip, "Status": summary.status}
    lines = [f"Hermes-{name}: {value}" for name, value in trailers.items()]
    return f"{cut(f'Receipts of run {found.run_id}: {summary.status}')}\n\n" + "\n".join(lines) + "\n"


def _check_main(ledger: GitLedger, remote: Remote, transport: Transport, theirs: str | None) -> None:
    """A branch without a common root is no pull request anywhere."""
    if theirs is None or leads_to(ledger.path, GENESIS, theirs):
        return
    transport.fetch(prune=False)
    if not leads_to(ledger.path, GENESIS, theirs):
        raise Conflict(
            f"main of {remote.name} ({remote.shown}) is no receipts repository's",
            hint="publish into a code repository by --into PATH, or name another remote by --remote",
        )


def _replace(
    ledger: GitLedger, remote: Remote, transport: Transport, found: Found, branch: str, old: str | None, why: str
) -> None:
    """Put the run's tip in place of an answer on its branch that has been recorded. Raises Conflict."""
    taken = {each.execution.provenance.message_id for each in found.receipts if each.execution.provenance}
    if old in taken and old is not None:
        refused = transport.replace(_HEADS + branch, old, found.head.tip)
        if refused is None:
            return
        why = refused
    lease = f"--force-with-lease={branch}:{(old or '')[:12]}"
    instead = git_line(ledger.path, "push", lease, remote.name, f"{found.head.tip[:12]}:{_HEADS}{branch}")
    kept = (kept_as(remote, _HEADS + branch) or "").removeprefix("refs/remotes/")
    raise Conflict(
        f"{branch} at {remote.name} has a commit that is not ours ({(old or '')[:12]}): {why}",
        hint=f"`hermes-workflows fetch {remote.name}` brings it as {kept}, and takes an answer from it if it is one; "
        f"one that was refused is replaced by `{instead}`",
    )


def _origin(path: Path) -> Address | None:
    try:
        return address_in(find_remote(path).url)
    except (InvalidInput, NotFound):
        return None


def _git(workspace: Workspace) -> GitLedger:
    if not isinstance(workspace.ledger, GitLedger):
        raise InvalidInput("a ledger in memory is published nowhere")
    return workspace.ledger
