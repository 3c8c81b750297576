"""Every SQL statement about the tables of `tables`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from .row_keys import DEADLINE, EXPIRY
from .tables import IS_DECIDING

if TYPE_CHECKING:
    from .wanted import Wanted

# --- the queue: offers ------------------------------------------------------------------------------------------

# A stuck run's rows keep their turns but must not hold everybody's at their own.
NEXT_CALL_TURN = """
SELECT max(
    coalesce((SELECT turn FROM work
              WHERE state = 'ready' AND (kind <> 'workflow') = 1 AND run_id NOT IN (SELECT run_id FROM stuck)
              ORDER BY turn LIMIT 1), 0),
    coalesce((SELECT max(turn) + 1 FROM work WHERE run_id = :run_id AND kind <> 'workflow'), 0))
"""
NEXT_WORKFLOW_TURN = """
SELECT coalesce((SELECT max(turn) + 1 FROM work WHERE state = 'ready' AND (kind <> 'workflow') = 0), 0)
"""
OFFER = """
INSERT INTO work (run_id, key, kind, name, fingerprint, state, turn, visible_at, offered_at)
VALUES (:run_id, :key, :kind, :name, :fingerprint, :state, :turn, :visible_at, :offered_at)
ON CONFLICT (run_id, key) DO NOTHING
"""
FIND = "SELECT id, kind, state, withdrawn, visible_at, token FROM work WHERE run_id = :run_id AND key = :key"
OFFER_AGAIN = "UPDATE work SET again_at = min(coalesce(again_at, :visible_at), :visible_at) WHERE id = :id"
OFFER_ANEW = """
UPDATE work SET kind = :kind, name = :name, fingerprint = :fingerprint, state = :state, turn = :turn,
    visible_at = :visible_at, offered_at = :offered_at, claims = 0, lost = NULL, withdrawn = 0, again_at = NULL,
    token = NULL, runner = NULL, holder = NULL, boot_id = NULL, expires_at = NULL, claimed_at = NULL
WHERE id = :id
"""
# Only while its heartbeat is current: a dead holder has no live body.
PREFER = """
UPDATE work SET preferred_until = :until, preferred = (
    SELECT runner FROM bodies WHERE run_id = :run_id AND runner IN (
        SELECT runner_id FROM runners WHERE boot_id = :boot_id AND elapsed + lease_seconds > :elapsed))
WHERE run_id = :run_id AND key = '' AND EXISTS (SELECT 1 FROM bodies WHERE run_id = :run_id)
"""
KEEP_BODY = """
INSERT INTO bodies (run_id, runner) VALUES (:run_id, :runner)
ON CONFLICT (run_id) DO UPDATE SET runner = excluded.runner WHERE runner <> excluded.runner
"""
DROP_BODY = "DELETE FROM bodies WHERE run_id = :run_id"
WITHDRAW_FREE = "DELETE FROM work WHERE run_id = :run_id AND key = :key AND state <> 'leased'"
WITHDRAW_LEASED = "UPDATE work SET withdrawn = 1 WHERE run_id = :run_id AND key = :key"

# --- the queue: leases ------------------------------------------------------------------------------------------

FINISH = """
DELETE FROM work
WHERE run_id = :run_id AND key = :key AND token = :token AND (again_at IS NULL OR withdrawn)
"""
LEASED = "SELECT id, again_at, withdrawn FROM work WHERE run_id = :run_id AND key = :key AND token = :token"
RELEASE = """
UPDATE work SET state = 'ready', claims = max(claims - 1, 0), again_at = NULL,
    token = NULL, runner = NULL, holder = NULL, boot_id = NULL, expires_at = NULL, claimed_at = NULL
WHERE run_id = :run_id AND key = :key AND token = :token AND NOT withdrawn
"""
RELEASE_WITHDRAWN = "DELETE FROM work WHERE run_id = :run_id AND key = :key AND token = :token"
RENEW = """
UPDATE work SET state = 'leased', boot_id = :boot_id, expires_at = :expires_at
WHERE run_id = :run_id AND key = :key AND token = :token
"""

# --- the queue: claims ------------------------------------------------------------------------------------------

DUE = "SELECT id, run_id, kind FROM work WHERE state = 'later' AND visible_at <= :now ORDER BY visible_at, id"
MAKE_READY = "UPDATE work SET state = 'ready', turn = :turn WHERE id = :id"
RAN_OUT = """
SELECT id, token, withdrawn FROM work
WHERE state = 'leased' AND (expires_at <= :elapsed OR boot_id <> :boot_id)
"""
HOLDERS = "SELECT DISTINCT holder FROM work WHERE state = 'leased'"
HELD_BY = "SELECT id, token, withdrawn FROM work WHERE state = 'leased' AND holder = :holder"
EXPIRE = "UPDATE work SET state = 'ready' WHERE id = :id"
DROP = "DELETE FROM work WHERE id = :id"
# How many rows each limit could be about are leased.
IN_USE = "SELECT kind, name, count(*) FROM work WHERE state = 'leased' GROUP BY kind, name"
# A call is best executed where its run's body lives: elsewhere that must be rebuilt first. So among the first rows in
# turn, those that another runner's body has lately asked for come last; nobody stands idle for it.
_CLAIMABLE = """
SELECT * FROM (
    SELECT id, run_id, kind, name, key, fingerprint, visible_at, claims + 1 AS claims, lost, token, runner, holder,
        boot_id, claimed_at, turn, offered_at, kind <> 'workflow' AND EXISTS (
            SELECT 1 FROM bodies WHERE bodies.run_id = work.run_id AND bodies.runner <> :runner) AS is_anothers
    FROM work{indexed}
    WHERE state = 'ready' AND run_id NOT IN (SELECT run_id FROM stuck){only}
        AND (:run_id IS NULL OR run_id = :run_id) AND (:kinds = '' OR instr(:kinds, '|' || kind || '|'))
        AND (preferred IS NULL OR preferred = :runner OR preferred_until NOT BETWEEN :elapsed AND :precedence_ends)
        AND (token IS NULL OR token NOT IN (SELECT value FROM json_each(:own))){beside}
    ORDER BY kind <> 'workflow', turn, id LIMIT :seen
)
ORDER BY kind <> 'workflow', is_anothers AND offered_at > :lately, turn, id LIMIT :limit
"""
_BESIDE = """
        AND kind NOT IN (SELECT value FROM json_each(:full))
        AND kind || ':' || name NOT IN (SELECT value FROM json_each(:full))
        AND (kind = 'workflow' OR NOT :no_suspects
             OR coalesce(json_array_length(lost), 0) + (token IS NOT NULL AND boot_id = :boot_id) < :suspect)"""
CLAIM = """
UPDATE work SET state = 'leased', claims = claims + 1, lost = :lost, again_at = NULL, preferred = NULL,
    token = :token, runner = :runner, holder = :holder, boot_id = :boot_id, expires_at = :expires_at,
    claimed_at = :claimed_at
WHERE id = :id
"""
# A row that somebody else claimed since the file was made again is theirs; receipts decide who was first.
ENTER_LEASE = """
INSERT INTO work (run_id, key, kind, name, fingerprint, state, turn, visible_at, offered_at, claims, lost,
    token, runner, holder, boot_id, expires_at, claimed_at)
VALUES (:run_id, :key, :kind, :name, :fingerprint, 'leased', 0, :visible_at, :claimed_at, :claims, :lost,
    :token, :runner, :holder, :boot_id, :expires_at, :claimed_at)
ON CONFLICT (run_id, key) DO UPDATE SET state = 'leased', claims = excluded.claims, lost = excluded.lost,
    token = excluded.token, runner = excluded.runner, holder = excluded.holder, boot_id = excluded.boot_id,
    expires_at = excluded.expires_at, claimed_at = excluded.claimed_at,
    again_at = CASE kind WHEN 'workflow' THEN visible_at END
WHERE work.token IS NULL
"""
# Rows of notices move nothing, and of limits only what waits too long.
UNQUEUED = f"""
SELECT run_id, tip FROM runs
WHERE status IN ('running', 'waiting') AND run_id NOT IN (SELECT run_id FROM stuck) AND NOT EXISTS (
    SELECT 1 FROM work WHERE work.run_id = runs.run_id AND kind <> 'notify'
        AND key <> '{DEADLINE}' AND substr(key, 1, {len(EXPIRY)}) <> '{EXPIRY}')
"""
NEXT_VISIBLE = "SELECT min(visible_at) FROM work WHERE state = 'later'"
NEXT_UNPREFERRED = """
SELECT min(preferred_until) FROM work
WHERE preferred IS NOT NULL AND preferred_until BETWEEN :elapsed AND :precedence_ends
"""
WORK = """
SELECT run_id, key, kind, name, fingerprint, visible_at, state, withdrawn, token, runner, holder, boot_id, expires_at,
    claims, offered_at, claimed_at
FROM work{where} ORDER BY id
"""

# --- the index --------------------------------------------------------------------------------------------------

# Two processes index one run at once: whoever knows more receipts is right, in whichever order they arrive.
PUT_RUN = """
INSERT INTO runs (run_id, status, started_at, seq, tip, folder, sealed, workflow, source, text, summary, waiting_on)
VALUES (:run_id, :status, :started_at, :seq, :tip, :folder, :sealed, :workflow, :source, :text, :summary, :waiting_on)
ON CONFLICT (run_id) DO UPDATE SET status = excluded.status, started_at = excluded.started_at, seq = excluded.seq,
    tip = excluded.tip, folder = excluded.folder, sealed = excluded.sealed, workflow = excluded.workflow,
    source = excluded.source, text = excluded.text, summary = excluded.summary, waiting_on = excluded.waiting_on
WHERE excluded.seq >= runs.seq
"""
# Of most receipts a run's row changes in nothing that has an index: then no index is written, one page instead of four.
PUT_RUN_AGAIN = """
UPDATE runs SET seq = :seq, tip = :tip, folder = :folder, sealed = :sealed, summary = :summary, waiting_on = :waiting_on
WHERE run_id = :run_id AND seq <= :seq AND status = :status AND text = :text AND workflow = :workflow
    AND started_at = :started_at AND source IS :source
"""
REVIEW = "SELECT review FROM reviews WHERE run_id = :run_id AND key = :key"
PUT_REVIEW = """
INSERT OR REPLACE INTO reviews (run_id, key, status, requested_at, workflow, assignee, review)
VALUES (:run_id, :key, :status, :requested_at, :workflow, :assignee, :review)
"""
OPEN_REVIEWS = """
SELECT review FROM json_each(:run_ids) CROSS JOIN reviews ON run_id = json_each.value AND status = 'open'
"""
RUN = "SELECT tip, folder, sealed, summary, waiting_on FROM runs WHERE run_id = :run_id"
RUNS = """
SELECT tip, folder, sealed, summary, waiting_on FROM runs WHERE run_id IN (
    SELECT run_id FROM runs{where} ORDER BY started_at DESC, run_id DESC LIMIT :limit OFFSET :offset)
ORDER BY started_at DESC, run_id DESC
"""
TIPS = "SELECT run_id, tip, sealed, seq FROM runs"
RUN_IDS_FROM = "SELECT run_id FROM runs WHERE run_id >= :prefix AND run_id < :beyond ORDER BY run_id LIMIT :limit"
STARTED_FROM = "SELECT run_id FROM runs WHERE source = :run_id ORDER BY started_at, run_id"
COUNTS = """
SELECT workflow, count(*) AS runs, sum(status = 'completed') AS completed, sum(status = 'failed') AS failed,
    sum(status = 'cancelled') AS cancelled
FROM runs GROUP BY workflow
"""
# Not the whole summary: only what a catalog adds up.
LATELY = """
SELECT started_at, json_extract(summary, '$.finished_at') AS finished_at, json_extract(summary, '$.usage') AS usage
FROM runs WHERE workflow = :workflow ORDER BY started_at DESC, run_id DESC LIMIT :limit
"""
REVIEWS = "SELECT review FROM reviews{where} ORDER BY requested_at, run_id, key"
# As with runs: an index says which, and only what a page shows is read.
INBOX = """
SELECT review, workflow FROM reviews WHERE (run_id, key) IN (
    SELECT run_id, key FROM reviews{where} ORDER BY requested_at, run_id, key LIMIT :limit OFFSET :offset)
ORDER BY requested_at, run_id, key
"""
COUNT_REVIEWS = "SELECT count(*) AS total FROM reviews{where}"
ASKED = "SELECT DISTINCT workflow, assignee FROM reviews{where}"
OPEN_QUESTIONS = "SELECT run_id, key FROM reviews WHERE status = 'open' ORDER BY requested_at, run_id, key"
REWIND = tuple(f"DELETE FROM {table} WHERE run_id = :run_id" for table in ("runs", "reviews", "stuck"))
FORGET_WORK = tuple(f"DELETE FROM {table} WHERE run_id = :run_id" for table in ("work", "bodies"))

PUT_STUCK = """
INSERT INTO stuck (run_id, kind, key, code, reason, hint, since, runner)
VALUES (:run_id, :kind, :key, :code, :reason, :hint, :since, :runner)
ON CONFLICT (run_id, kind, key, code) DO UPDATE SET
    reason = excluded.reason, hint = excluded.hint, runner = excluded.runner
"""
UNSTUCK = "DELETE FROM stuck WHERE run_id = :run_id"
# Whoever lifts a mark wants the run to be tried again, all its calls.
FORGIVE = "UPDATE work SET lost = NULL WHERE run_id = :run_id AND lost IS NOT NULL"
STUCK = """
SELECT run_id, kind, reason, hint, key, code, since, runner FROM stuck{where}
ORDER BY since, run_id, kind, key
"""

HEARTBEAT = """
INSERT INTO runners (runner_id, host, pid, pid_started, boot_id, elapsed, started_at, heartbeat_at, lease_seconds,
    concurrency, executing, database, python, agents, silent, said, only_kinds, draining)
VALUES (:runner_id, :host, :pid, :pid_started, :boot_id, :elapsed, :started_at, :heartbeat_at, :lease_seconds,
    :concurrency, :executing, :database, :python, :agents, :silent, :said, :only,
    :draining)
ON CONFLICT (runner_id, host, pid, pid_started) DO UPDATE SET
    boot_id = excluded.boot_id, elapsed = excluded.elapsed, started_at = excluded.started_at,
    heartbeat_at = excluded.heartbeat_at, lease_seconds = excluded.lease_seconds,
    concurrency = excluded.concurrency, executing = excluded.executing, database = excluded.database,
    python = excluded.python, agents = excluded.agents, silent = excluded.silent, said = excluded.said,
    only_kinds = excluded.only_kinds, draining = max(draining, excluded.draining)
"""
# A wish: the heartbeats that follow do not know of it and must not take it back.
DRAIN = "UPDATE runners SET draining = 1 WHERE :runner_id IS NULL OR runner_id = :runner_id"
GOODBYE = """
DELETE FROM runners WHERE runner_id = :runner_id
    AND (:pid IS NULL OR (host = :host AND pid = :pid AND pid_started = :pid_started))
"""
RUNNERS = """
SELECT runner_id, host, pid, pid_started, boot_id, elapsed, started_at, heartbeat_at, lease_seconds, concurrency,
    executing, database, python, agents, silent, said, only_kinds AS only, draining
FROM runners ORDER BY started_at, runner_id, pid
"""
GET_META = "SELECT value FROM meta WHERE name = :name"
PUT_META = "INSERT INTO meta VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


@cache
def claimable(*, deciding: bool, beside: bool) -> str:
    """Rows that may be claimed: with `deciding` those alone that need no executor, found among any number of calls;
    `beside` others, without what there is no room for (see `store.room`).
    """
    return _CLAIMABLE.format(
        indexed=" INDEXED BY work_deciding" if deciding else "",
        only=f"\n        AND {IS_DECIDING}" if deciding else "",
        beside=_BESIDE if beside else "",
    )


def narrowed(statement: str, **given: str | None) -> str:
    """A statement with `{where}`, narrowed to what is not None: "… OR :x IS NULL" would scan the whole table."""
    conditions = " AND ".join(f"{name} = :{name}" for name, value in given.items() if value is not None)
    return statement.format(where=f" WHERE {conditions}" if conditions else "")


def wanted(statement: str, given: Wanted) -> tuple[str, dict[str, str]]:
    """A statement about runs with `{where}`, narrowed to the runs that are `given`, and its values."""
    named = {"workflow": given.workflow, "source": given.source}
    values = {name: value for name, value in named.items() if value is not None}
    conditions = [f"{name} = :{name}" for name in values]
    if given.statuses:
        each = {f"status{number}": status for number, status in enumerate(given.statuses)}
        conditions.append(f"status IN ({', '.join(f':{name}' for name in each)})")
        values |= each
    if given.older is not None:
        conditions.append("(started_at, run_id) < (:before, :before_id)")
        values |= dict(zip(("before", "before_id"), given.older, strict=True))
    if given.words:
        each = {f"word{number}": word for number, word in enumerate(given.words)}
        conditions += [_WORD.format(name=name) for name in each]
        values |= each
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    # Whatever else is asked for: the others would read the row of every run that they name.
    index = " INDEXED BY runs_newest" if given.words else ""
    return statement.format(where=index + where), {name: _text(value) for name, value in values.items()}


def _text(value: str) -> str:
    """What a terminal may send and SQLite does not take: bytes that are no text. No run has them in its own."""
    return value.encode("utf-8", "backslashreplace").decode()


_WORD = "(instr(text, :{name}) OR run_id IN (SELECT run_id FROM stuck WHERE instr(lower(reason), :{name})))"


def from_prefix(prefix: str) -> dict[str, str]:
    """Bounds for RUN_IDS_FROM: U+FFFF sorts after everything a run id may contain."""
    return {"prefix": prefix, "beyond": prefix + "\uffff"}
