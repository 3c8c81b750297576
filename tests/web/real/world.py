"""A workspace in memory with one of everything that a page can show, and with hostile text wherever text is foreign."""

from __future__ import annotations

import json
from pathlib import Path

from tests.contract.workspaces import SHIP, Desk, desk, person
from tests.web.calling import ran
from tests.web.test_artifacts import keep
from tests.web.test_review_page import HOSTILE, ask

from hermes_workflows.core.receipts import Evidence

ALL = "\n\n".join(HOSTILE)
LONG = "x" * 400
DIFF = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+" + "new " * 60
TABLE = "| a | b |\n|---|---|\n" + "| " + "wide " * 40 + " | " + "w" * 90 + " |\n"
# What no link leads to: pages that say what is wrong, forms that were filled, two runs side by side.
APART = (
    "/runs/wf",
    "/calls/wf/every",
    "/nowhere",
    "/compare?a=wf&b=other",
    "/reviews/wf/every?json",
    "/runs?find=w",
    "/runs?state=failed&workflow=gone",
    "/?state=all",
)

REGISTRY = {
    "workflows": {
        "launch": {"workflow_ref": "flow.py:launch", "description": ALL},
        "plain": {"workflow_ref": "flow.py:plain"},
        "gone": {"workflow_ref": "gone.py:flow", "description": LONG},
    }
}
NESTED = {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}, "required": ["name"]}
# One field of each kind.
EVERY = {
    "type": "object",
    "properties": {
        "action": {"enum": ["approve", "revise", ALL[:60]]},
        "tone": {"enum": ["plain", "warm"]},
        "place": {"enum": ["a", "b", "c", "d", "e", "f", "g"]},
        "sure": {"type": "boolean"},
        "perhaps": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "count": {"type": "integer", "description": ALL},
        "line": {"type": "string", "maxLength": 40, "default": ALL[:40]},
        "text": {"type": "string", "title": LONG},
        "day": {"type": "string", "format": "date"},
        "who": NESTED,
        "perhaps_who": NESTED,
        "names": {"type": "array", "items": NESTED, "minItems": 1},
        "rest": {"type": "object", "additionalProperties": {"type": "string"}},
        "kind": {"const": "note"},
    },
    "required": ["action", "tone", "sure", "count", "who", "names"],
}


def world(folder: Path) -> Desk:
    made = desk(folder, json.dumps(REGISTRY))
    for run in ("wf", "other", "done", "lost"):
        made.start(run, topic=ALL)
        made.clock.advance(30)
        ran(made, "draft/1/write", run, request={"name": "writer", "prompt": ALL}, output={"text": TABLE, "x": LONG})
        made.clock.advance(90)
        ran(made, "draft/2/write", run, error=ALL, transcript={"prompt": ALL, "stderr": LONG})
        ran(
            made,
            "list",
            run,
            kind="bash",
            request={"command": ALL},
            output={"exit_code": 2, "stdout": ALL, "stderr": ""},
        )
    for key, words in (("goal/1/look", "one\ntwo\n"), ("goal/2/look", "one\nthree\n")):
        ask(made, key, prompt=TABLE, evidence=[Evidence(title="Draft", value=words)])
    pieces = [
        Evidence(title=ALL, value={ALL: [ALL, {"deep": LONG}]}),
        Evidence(title="Patch", value=DIFF),
        Evidence(title="Table", value=TABLE),
        Evidence(title="File", path=ALL),
        Evidence(title=LONG, value=LONG),
    ]
    ask(made, "every", prompt=ALL, assignee=ALL[:80], evidence=pieces, input=ALL, returns=EVERY)
    keep(made, ALL[:100], ALL.encode(), "text/plain")
    made.ask("ok")
    made.ask("soon", expires=3600)
    made.workspace.answer("wf", "ok", {**SHIP, "feedback": ALL}, person(by=ALL[:40]))
    made.end("done")
    made.end("lost", "failed")
    made.workspace.control("other", "cancel", reason=ALL, by=person())
    ran(made, "draft/3/write", "other", output=ALL)
    return made
