"""The tables of SQLite, whose file they are in, and what always holds in them.

Rules the tables keep:
- `work.state` is 'ready' (may be claimed), 'later' (its `visible_at` has not come) or 'leased'.
  A lease that ran out goes back to 'ready' and keeps its token until somebody else claims the row,
  so that a holder who was only slow may renew or finish it.
  Until then it is for everybody but that holder, who would do the same work twice, beside himself.
- `work.turn` is the order of claiming among rows of one rank. It is given when a row becomes ready and is never
  lower than the lowest turn still waiting, nor than the run's own last one: that is round robin between runs,
  without a table of who came last.
- `work.lost` is a JSON list that says which claimers were lost in a call; it starts anew with the row.
- `bodies` says which runner last advanced a run, or took a call of it, and so may still hold its live body; that runner
  alone may claim the run's workflow row until `work.preferred_until`, and it comes first to the run's calls.
- `runs.summary` and every other JSON column is a cache of receipts; nothing decides from it.
- `runs_newest` has whatever a list of runs may be narrowed by, so a search reads that index and no row that it does not
  show: 100,000 runs in 40 ms. What has an index of its own is found by it, unless words are looked for.
"""

from __future__ import annotations

APPLICATION_ID = 0x48574631  # "HWF1": whose file this is, so that nobody else's database is ever replaced
# Raise it with every change of the tables or of RunSummary: an older file is made again, a newer one refused.
SCHEMA_VERSION = 7

# `queue_port.DECIDING` once more, which takes a command that only looks too long to import.
IS_DECIDING = "kind IN ('workflow', 'timer', 'child')"

SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    started_at TEXT NOT NULL,
    seq INTEGER NOT NULL,
    tip TEXT NOT NULL,
    folder TEXT NOT NULL,
    sealed INTEGER NOT NULL,
    workflow TEXT NOT NULL,
    source TEXT,
    text TEXT NOT NULL,
    summary TEXT NOT NULL,
    waiting_on TEXT
);
CREATE INDEX runs_newest ON runs (started_at, run_id, status, workflow, source, text);
CREATE INDEX runs_by_status ON runs (status, started_at, run_id);
CREATE INDEX runs_by_workflow ON runs (workflow, started_at, run_id, status);
CREATE INDEX runs_by_source ON runs (source, started_at, run_id) WHERE source IS NOT NULL;
CREATE TABLE reviews (
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    status TEXT NOT NULL,
    requested_at TEXT NOT NULL,
    workflow TEXT NOT NULL,
    assignee TEXT,
    review TEXT NOT NULL,
    PRIMARY KEY (run_id, key)
) WITHOUT ROWID;
CREATE INDEX reviews_by_status ON reviews (status, requested_at, run_id, key, workflow, assignee);
CREATE INDEX reviews_in_order ON reviews (requested_at, run_id, key, workflow, assignee);
CREATE TABLE work (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    state TEXT NOT NULL,
    turn INTEGER NOT NULL,
    visible_at REAL NOT NULL,
    offered_at TEXT NOT NULL,
    claims INTEGER NOT NULL DEFAULT 0,
    lost TEXT,
    withdrawn INTEGER NOT NULL DEFAULT 0,
    again_at REAL,
    token TEXT,
    runner TEXT,
    holder TEXT,
    boot_id TEXT,
    expires_at REAL,
    claimed_at TEXT,
    preferred TEXT,
    preferred_until REAL,
    UNIQUE (run_id, key)
);
CREATE INDEX work_ready ON work (kind <> 'workflow', turn) WHERE state = 'ready';
CREATE INDEX work_deciding ON work (kind <> 'workflow', turn)
WHERE state = 'ready' AND {IS_DECIDING};
CREATE INDEX work_later ON work (visible_at) WHERE state = 'later';
CREATE INDEX work_leased ON work (expires_at) WHERE state = 'leased';
CREATE INDEX work_turns ON work (run_id, turn) WHERE kind <> 'workflow';
CREATE INDEX work_preferred ON work (preferred_until) WHERE preferred IS NOT NULL;
CREATE TABLE bodies (run_id TEXT PRIMARY KEY, runner TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE stuck (
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    code TEXT NOT NULL,
    reason TEXT NOT NULL,
    hint TEXT NOT NULL,
    since TEXT NOT NULL,
    runner TEXT NOT NULL,
    PRIMARY KEY (run_id, kind, key, code)
) WITHOUT ROWID;
CREATE TABLE runners (
    runner_id TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    pid_started TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    elapsed REAL NOT NULL,
    started_at TEXT NOT NULL,
    heartbeat_at TEXT NOT NULL,
    lease_seconds REAL NOT NULL,
    concurrency INTEGER NOT NULL,
    executing TEXT NOT NULL,
    database TEXT NOT NULL,
    python TEXT NOT NULL,
    agents TEXT NOT NULL,
    silent REAL NOT NULL,
    said TEXT NOT NULL,
    only_kinds TEXT NOT NULL,
    draining INTEGER NOT NULL,
    PRIMARY KEY (runner_id, host, pid, pid_started)
) WITHOUT ROWID;
"""
