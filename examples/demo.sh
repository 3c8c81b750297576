#!/usr/bin/env bash
# The README's quickstart, word for word, in a temporary workspace; then what happened, and where to look further.
# Needs hermes-workflows and git on the path: `make demo` sees to that.
set -euo pipefail

quickstart=$(cd "$(dirname "$0")" && pwd)/quickstart.sh
run=wf_reviewable_draft_quickstart
workspace=$(mktemp -d "${TMPDIR:-/tmp}/hermes-demo.XXXXXX")
receipts=$workspace/.hermes/workflows.git

title() { printf '\n== %s\n\n' "$1"; }
fail() { printf '\nThe demo failed: %s. Its workspace is kept: %s\n' "$1" "$workspace" >&2; exit 1; }

cd "$workspace"
# No pager to wait for, and no repository that an enclosing git command may have named.
export GIT_PAGER=cat
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

title "The quickstart, in $workspace"
# -v prints each command as it stands in the file; -e stops at the first that fails.
# Standard input is closed: nobody types here, and the answer must not pass for a person's.
bash -ev "$quickstart" < /dev/null 2>&1 || fail "a command of the quickstart did not succeed"

title "What happened"
status=$(hermes-workflows status --id "$run" --json)
printf '%s\n\n' "$status"
[[ $(tr -d '[:space:]' <<< "$status") == *'"status":"completed"'* ]] || fail "the run is not completed"
cat <<TEXT
The first command recorded a run and left.
The runner let an agent write a draft (a scripted one, so the demo needs no model), asked for a review and stopped.
The answer was checked against the type the workflow declared, and the next runner finished the run.
Each of these is one file in one commit:

TEXT
git -C "$receipts" ls-tree -r --name-only "runs/$run" | grep "/$run/" | sed 's/^/    /'

title "Who approved it"
response=$(git -C "$receipts" ls-tree -r --name-only "runs/$run" | grep '/review_draft/response\.json$')
git -C "$receipts" show "runs/$run:$response" | grep '"manual"' || fail "the answer is not recorded as manual"
cat <<TEXT

The answer came from this script. No person typed it, so it is recorded as manual and never shown as human approval.
Typed by you in a terminal, the same command is recorded as human.
TEXT

title "Look further"
cat <<TEXT
    git -C $receipts log --stat runs/$run
    git -C $receipts show runs/$run
    git -C $receipts show runs/$run:$response
    git -C $receipts log --format='%h %an: %s' runs/$run
    git -C $receipts fsck --full

Remove it with: rm -rf $workspace
TEXT
