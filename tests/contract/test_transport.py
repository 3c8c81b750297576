"""Both ways to another repository, git's program and dulwich, held to the same behaviour."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.ledgers import finished, git, record, start, step_draft
from tests.contract.remotes import SOMEBODY, add_remote, bare, http, liar, reach, refs_of, ssh, workspace

from hermes_workflows.errors import HermesError, IntegrityError, InvalidInput, NotFound, RemoteFailure, StoreFailure
from hermes_workflows.store import reaching
from hermes_workflows.store.git_ledger import GitLedger
from hermes_workflows.store.git_transport import GitTransport, failure
from hermes_workflows.store.remotes import Remote, Transport, find_remote
from hermes_workflows.store.repository import GENESIS


@pytest.fixture(params=["git", "dulwich"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return bare(tmp_path)


@pytest.fixture
def ledger(tmp_path: Path, hub: Path) -> Iterator[GitLedger]:
    made = workspace(tmp_path, "ours", hub)
    yield made
    assert git(made, "fsck", "--full", "--strict", "--no-dangling") == ""
    made.close()


def send(ledger: GitLedger, kind: str, *runs: str) -> dict[str, str]:
    values = {f"refs/runs/{run}": git(ledger, "rev-parse", f"refs/runs/{run}").strip() for run in runs}
    return reach(ledger, kind).push(values)


def test_what_is_pushed_is_there_and_fetched_elsewhere(kind: str, tmp_path: Path, ledger: GitLedger, hub: Path) -> None:
    finished(ledger, "wf_a")
    start(ledger, "wf_b")
    assert send(ledger, kind, "wf_a", "wf_b") == {}
    other = workspace(tmp_path, "other", hub)
    reach(other, kind).fetch(prune=False)
    assert refs_of(other, "refs/remotes") == {
        f"refs/remotes/origin/runs/{run}": oid
        for run, oid in (("wf_a", tip(ledger, "wf_a")), ("wf_b", tip(ledger, "wf_b")))
    }
    assert git(other, "fsck", "--full", "--strict", "--no-dangling") == ""
    assert sorted(head.run_id for _, head in other.fetched()) == ["wf_a", "wf_b"]


def tip(ledger: GitLedger, run: str) -> str:
    head = ledger.head(run)
    assert head
    return head.tip


def test_fetching_again_brings_what_is_new_and_only_that(
    kind: str, tmp_path: Path, ledger: GitLedger, hub: Path
) -> None:
    start(ledger, "wf_a")
    send(ledger, kind, "wf_a")
    other = workspace(tmp_path, "other", hub)
    reach(other, kind).fetch(prune=False)
    record(ledger, "wf_a", step_draft("one"))
    assert send(ledger, kind, "wf_a") == {}
    reach(other, kind).fetch(prune=False)
    assert refs_of(other, "refs/remotes") == {"refs/remotes/origin/runs/wf_a": tip(ledger, "wf_a")}


def test_a_fetch_moves_no_ref_of_ours(kind: str, tmp_path: Path, ledger: GitLedger, hub: Path) -> None:
    theirs = workspace(tmp_path, "theirs", hub)
    finished(theirs, "wf_same")
    finished(ledger, "wf_same", "2026-11-28")
    theirs.seal()
    git(theirs, "push", "origin", "refs/heads/*:refs/heads/*", "refs/runs/*:refs/runs/*")
    git(theirs, "push", "origin", "main:refs/tags/v1", "main:refs/notes/x")
    # As `git remote add --mirror=fetch` writes it: everything would land in its own place here.
    git(ledger, "config", "remote.origin.fetch", "+refs/*:refs/*")
    git(ledger, "config", "remote.origin.prune", "true")
    before = refs_of(ledger)
    reach(ledger, kind).fetch(prune=False)
    after = refs_of(ledger)
    assert {name: oid for name, oid in after.items() if not name.startswith("refs/remotes/origin/")} == before
    assert not (ledger.path / "FETCH_HEAD").exists()
    assert after["refs/remotes/origin/runs/wf_same"] == tip(theirs, "wf_same")


def test_a_branch_cannot_take_the_place_of_a_run(kind: str, tmp_path: Path, ledger: GitLedger, hub: Path) -> None:
    finished(ledger, "wf_a")
    send(ledger, kind, "wf_a")
    git(ledger, "push", "origin", "main:refs/heads/runs/wf_a", "main:refs/heads/main")
    reach(ledger, kind).fetch(prune=False)
    assert refs_of(ledger, "refs/remotes") == {
        "refs/remotes/origin/main": GENESIS,
        "refs/remotes/origin/runs/wf_a": tip(ledger, "wf_a"),
    }


def test_a_push_goes_forwards_only(kind: str, tmp_path: Path, ledger: GitLedger, hub: Path) -> None:
    start(ledger, "wf_a")
    record(ledger, "wf_a", step_draft("one"))
    send(ledger, kind, "wf_a")
    forged = git(ledger, "commit-tree", "-m", "forged", "-p", GENESIS, "main^{tree}", env=SOMEBODY).strip()
    git(ledger, "push", "--force", "origin", f"{forged}:refs/runs/wf_a")
    start(ledger, "wf_b")
    refused = send(ledger, kind, "wf_a", "wf_b")
    assert refused == {"refs/runs/wf_a": "non-fast-forward"}
    assert refs_of(hub) == {"refs/runs/wf_a": forged, "refs/runs/wf_b": tip(ledger, "wf_b")}


def test_a_push_over_commits_that_are_not_here_is_refused(
    kind: str, tmp_path: Path, ledger: GitLedger, hub: Path
) -> None:
    theirs = workspace(tmp_path, "theirs", hub)
    finished(theirs, "wf_a", "2026-11-28")
    send(theirs, kind, "wf_a")
    start(ledger, "wf_a")
    assert send(ledger, kind, "wf_a") == {"refs/runs/wf_a": "fetch first"}


def test_a_workspaces_own_store_takes_no_push(kind: str, tmp_path: Path, ledger: GitLedger) -> None:
    theirs = workspace(tmp_path, "theirs")
    add_remote(ledger, theirs.path, "neighbour")
    start(ledger, "wf_a")
    refused = reach(ledger, kind, "neighbour").push({"refs/runs/wf_a": tip(ledger, "wf_a")})
    assert list(refused) == ["refs/runs/wf_a"]
    assert refs_of(theirs) == {"refs/heads/main": GENESIS}


def test_a_neighbour_can_be_fetched_from(kind: str, tmp_path: Path, ledger: GitLedger) -> None:
    theirs = workspace(tmp_path, "theirs")
    finished(theirs, "wf_a")
    add_remote(ledger, "../../theirs/workflows.git", "neighbour")
    reach(ledger, kind, "neighbour").fetch(prune=False)
    assert refs_of(ledger, "refs/remotes")["refs/remotes/neighbour/runs/wf_a"] == tip(theirs, "wf_a")


def test_only_a_pruning_fetch_forgets_what_is_gone(kind: str, ledger: GitLedger, hub: Path) -> None:
    finished(ledger, "wf_a")
    send(ledger, kind, "wf_a")
    git(ledger, "push", "origin", "main:refs/heads/main")
    reach(ledger, kind).fetch(prune=False)
    git(hub, "update-ref", "-d", "refs/runs/wf_a")
    reach(ledger, kind).fetch(prune=False)
    assert "refs/remotes/origin/runs/wf_a" in refs_of(ledger)
    reach(ledger, kind).fetch(prune=True)
    assert refs_of(ledger, "refs/remotes") == {"refs/remotes/origin/main": GENESIS}
    assert ledger.head("wf_a")


def evil_tree(hub: Path) -> str:
    """A commit whose tree would write into the repository of whoever checks it out."""
    blob = git(hub, "rev-parse", f"{GENESIS}:README.md").strip()
    body = b"100644 .git\0" + bytes.fromhex(blob)
    (hub / "evil").write_bytes(body)
    tree = git(hub, "hash-object", "-t", "tree", "-w", "--literally", "evil").strip()
    return git(hub, "commit-tree", "-m", "evil", "-p", GENESIS, tree, env=SOMEBODY).strip()


def test_objects_that_are_made_to_harm_do_not_come_in(kind: str, ledger: GitLedger, hub: Path) -> None:
    git(ledger, "push", "origin", "main:refs/heads/main")
    git(hub, "update-ref", "refs/runs/evil", evil_tree(hub))
    before = refs_of(ledger)
    with pytest.raises(IntegrityError):
        reach(ledger, kind).fetch(prune=False)
    assert refs_of(ledger) == before
    assert not list((ledger.path / "hermes").glob("arriving/*"))


@pytest.mark.parametrize(
    ("told", "kind_of"),
    [
        ("fatal: write error: No space left on device\nfatal: index-pack failed", StoreFailure),
        ("fatal: sha1 file 'x' write error. Out of diskspace\nfatal: index-pack failed", StoreFailure),
        ("remote: No space left on device\nfatal: index-pack failed", IntegrityError),
    ],
)
def test_a_full_disk_here_is_no_fault_of_what_came(told: str, kind_of: type[HermesError]) -> None:
    assert type(failure(Remote("origin", "hub", "hub"), told)) is kind_of


def test_a_remote_that_lacks_what_it_promises_changes_nothing(kind: str, ledger: GitLedger, hub: Path) -> None:
    finished(ledger, "wf_a")
    git(ledger, "push", "origin", "refs/runs/wf_a")
    blob = git(hub, "rev-parse", "refs/runs/wf_a:runs/2026-11-29/wf_a/result.json").strip()
    (hub / "objects" / blob[:2] / blob[2:]).unlink()
    other = workspace(hub.parent, "other", hub)
    before = refs_of(other)
    with pytest.raises((IntegrityError, RemoteFailure)):
        reach(other, kind).fetch(prune=False)
    assert refs_of(other) == before


def test_a_remote_that_is_not_there_is_one_clear_error(kind: str, tmp_path: Path, ledger: GitLedger) -> None:
    add_remote(ledger, tmp_path / "nowhere.git", "nowhere")
    way = reach(ledger, kind, "nowhere")
    for attempt in (way.refs, lambda: way.fetch(prune=False), lambda: way.push({"refs/heads/main": GENESIS})):
        with pytest.raises((RemoteFailure, NotFound), match="nowhere"):
            attempt()


@pytest.mark.parametrize("url", ["ext::sh -c 'touch pwned'", "-oProxyCommand=x", "git://host/x", "fd::3"])
def test_addresses_that_run_something_are_refused(url: str, ledger: GitLedger) -> None:
    git(ledger, "config", "remote.bad.url", url)
    with pytest.raises(InvalidInput, match="no address"):
        find_remote(ledger.path, "bad")


def test_a_rewritten_address_runs_nothing_either(ledger: GitLedger, tmp_path: Path) -> None:
    git(ledger, "config", "url.ext::sh -c 'touch pwned' #.insteadOf", "https://example.invalid/")
    git(ledger, "config", "remote.bad.url", "https://example.invalid/x")
    with pytest.raises(RemoteFailure):
        reach(ledger, "git", "bad").fetch(prune=False)
    assert not list(tmp_path.rglob("pwned"))


def test_hooks_and_settings_of_the_user_have_no_say(tmp_path: Path, ledger: GitLedger, hub: Path) -> None:
    hooks = ledger.path / "hooks"
    hooks.mkdir()
    for name in ("pre-push", "reference-transaction", "post-merge"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    for setting in ("push.gpgSign=true", "push.followTags=true", "fetch.prune=true", "remote.origin.mirror=true"):
        git(ledger, "config", *setting.split("="))
    finished(ledger, "wf_a")
    assert send(ledger, "git", "wf_a") == {}
    reach(ledger, "git").fetch(prune=False)
    assert "refs/remotes/origin/runs/wf_a" in refs_of(ledger)


def test_the_only_remote_is_meant_without_a_name_and_a_typo_is_named(ledger: GitLedger, hub: Path) -> None:
    assert find_remote(ledger.path).name == "origin"
    with pytest.raises(NotFound) as raised:
        find_remote(ledger.path, "orign")
    assert raised.value.hint == "did you mean 'origin'?"


def test_without_remotes_the_way_to_add_one_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as raised:
        find_remote(workspace(tmp_path, "alone").path)
    assert "remote add origin URL" in str(raised.value.hint)


@pytest.mark.parametrize("address", ["ssh://ada@host.invalid{hub}", "ada@host.invalid:{hub}"])
def test_ssh_is_spoken(kind: str, address: str, tmp_path: Path, ledger: GitLedger, hub: Path) -> None:
    finished(ledger, "wf_a")
    git(ledger, "config", "remote.far.url", address.format(hub=hub))
    far = reach(ledger, kind, "far", GIT_SSH_COMMAND=str(ssh(tmp_path)))
    assert far.push({"refs/runs/wf_a": tip(ledger, "wf_a")}) == {}
    far.fetch(prune=False)
    assert refs_of(ledger, "refs/remotes/far") == {"refs/remotes/far/runs/wf_a": tip(ledger, "wf_a")}
    assert "ada@host.invalid" in (tmp_path / "asked").read_text()


@pytest.mark.parametrize(
    "name",
    ["refs/runs/../../heads/ledger", "refs/heads/../../heads/x", "refs/runs/a.lock", "refs/heads/a b", "refs/runs/"],
)
def test_a_name_that_leads_elsewhere_is_not_followed(
    kind: str, name: str, tmp_path: Path, ledger: GitLedger, hub: Path
) -> None:
    git(ledger, "config", "remote.liar.url", "ssh://host.invalid/x")
    program = liar(tmp_path, "refs/heads/main", name)
    before = refs_of(ledger)
    with contextlib.suppress(HermesError):
        reach(ledger, kind, "liar", GIT_SSH_COMMAND=str(program), GIT_SSH_VARIANT="ssh").fetch(prune=False)
    added = {ref: oid for ref, oid in refs_of(ledger).items() if ref not in before}
    assert added in ({}, {"refs/remotes/liar/main": GENESIS})
    assert not list(ledger.path.rglob("*.lock"))


def test_a_branch_that_became_a_folder_is_told_and_pruned(kind: str, ledger: GitLedger, hub: Path) -> None:
    git(ledger, "push", "origin", "main:refs/heads/main", "main:refs/heads/answer")
    reach(ledger, kind).fetch(prune=False)
    git(hub, "update-ref", "-d", "refs/heads/answer")
    git(hub, "update-ref", "refs/heads/answer/wf_a", GENESIS)
    with pytest.raises(RemoteFailure) as raised:
        reach(ledger, kind).fetch(prune=False)
    assert "fetch --prune" in str(raised.value.hint)
    reach(ledger, kind).fetch(prune=True)
    assert refs_of(ledger, "refs/remotes").keys() == {"refs/remotes/origin/answer/wf_a", "refs/remotes/origin/main"}


def test_thousands_of_refs_are_sent(kind: str, ledger: GitLedger, hub: Path) -> None:
    values = {f"refs/runs/wf_{number}": GENESIS for number in range(1_200)}
    assert reach(ledger, kind).push(values) == {}
    assert refs_of(hub) == values


def test_http_is_spoken(kind: str, tmp_path: Path, ledger: GitLedger, hub: Path) -> None:
    finished(ledger, "wf_a")
    with http(tmp_path, password="right") as address:
        git(ledger, "config", "remote.far.url", f"http://ada:right@{address}/hub.git")
        far = reach(ledger, kind, "far")
        assert far.push({"refs/runs/wf_a": tip(ledger, "wf_a")}) == {}
        far.fetch(prune=False)
    assert refs_of(ledger, "refs/remotes") == {"refs/remotes/far/runs/wf_a": tip(ledger, "wf_a")}


# dulwich leaves the connection of a refusal to the garbage collector, which is called here and not in another test.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_wrong_password_is_one_clear_error(kind: str, tmp_path: Path, ledger: GitLedger, hub: Path) -> None:
    with http(tmp_path, password="right") as address:
        git(ledger, "config", "remote.far.url", f"http://ada:mistaken1@{address}/hub.git")
        with pytest.raises(RemoteFailure) as raised:
            reach(ledger, kind, "far").fetch(prune=False)
    assert "mistaken1" not in raised.value.message + str(raised.value.hint)
    del raised
    gc.collect()


def test_passwords_of_addresses_are_not_shown(kind: str, ledger: GitLedger) -> None:
    git(ledger, "config", "remote.bad.url", "https://ada:hunter2pass@127.0.0.1:1/x")
    with pytest.raises(HermesError) as raised:
        reach(ledger, kind, "bad").refs()
    assert "hunter2pass" not in raised.value.message + str(raised.value.hint)


def test_a_foreign_git_environment_is_not_ours(ledger: GitLedger, hub: Path, tmp_path: Path) -> None:
    from hermes_workflows.store.git_transport import transport_environment

    given = {
        "GIT_DIR": "/x",
        "GIT_INDEX_FILE": "/y",
        "GIT_CONFIG_COUNT": "1",
        "GIT_SSH_COMMAND": "ssh -i k",
        "HOME": "/h",
    }
    kept = transport_environment(given)
    assert {"GIT_SSH_COMMAND", "HOME"} <= kept.keys()
    assert not {"GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT"} & kept.keys()


@pytest.mark.parametrize(("version", "used"), [("2.28.1", False), ("2.29.0", True), ("3.0", True), ("none", False)])
def test_a_git_that_is_too_old_is_not_used(
    version: str, used: bool, tmp_path: Path, ledger: GitLedger, hub: Path
) -> None:
    (tmp_path / "git").write_text(f"#!/bin/sh\necho git version {version}\n")
    (tmp_path / "git").chmod(0o755)
    way = reaching.reach(ledger.path, find_remote(ledger.path), ledger.disk, {"PATH": str(tmp_path)})
    assert isinstance(way, GitTransport) is used


def test_both_ways_see_the_same_refs(ledger: GitLedger, hub: Path) -> None:
    finished(ledger, "wf_a")
    git(ledger, "push", "origin", "main", "refs/runs/wf_a", "main:refs/tags/v1", "main:refs/x/refs/heads/y")
    seen: list[Transport] = [reach(ledger, "git"), reach(ledger, "dulwich")]
    assert seen[0].refs() == seen[1].refs() == {"refs/heads/main": GENESIS, "refs/runs/wf_a": tip(ledger, "wf_a")}


def test_a_ref_is_replaced_only_where_it_is_what_was_expected(kind: str, ledger: GitLedger, hub: Path) -> None:
    start(ledger)
    start(ledger, "wf_b")
    ours, other = tip(ledger, "wf_a"), tip(ledger, "wf_b")
    branch = "refs/heads/run/wf_a"
    reach(ledger, kind).push({branch: other})
    assert reach(ledger, kind).replace(branch, GENESIS, ours)
    assert refs_of(hub, "refs/heads") == {branch: other}
    assert reach(ledger, kind).replace(branch, other, ours) is None
    assert refs_of(hub, "refs/heads") == {branch: ours}
