"""A scripted agent for `repo_health.py`: answers by rule, without any account, and says what that cost.

It writes the whole envelope, `hermes.agent-response/1`; `writer.py` prints just the answer, which is enough.
"""

from __future__ import annotations

import json
import sys
from typing import Any

Json = dict[str, Any]


def summarise(given: Json) -> Json:
    findings = [f"{check['name']} failed: {check['output']}" for check in given["checks"] if not check["ok"]]
    findings += [f"{file['path']} has {file['long_lines']} long lines" for file in given["files"] if file["long_lines"]]
    risk = "low" if not findings else "medium" if len(findings) < 3 else "high"
    return {"headline": f"Findings: {len(findings)}", "risk": risk, "findings": findings}


def plan(given: Json) -> Json:
    findings = "; ".join(given["summary"]["findings"]) or "nothing to mend"
    feedback = f" As asked: {given['feedback']}" if given["feedback"] else ""
    return {"text": f"Mend, in this order: {findings}.{feedback}"}


# One program may answer for several agents: the request says which one is asked.
ANSWERS = {"summariser": summarise, "planner": plan}


def main() -> None:
    request = json.load(sys.stdin)
    output = ANSWERS[request["name"]](request["input"])
    usage = {
        "input_tokens": len(json.dumps(request)) // 4,
        "output_tokens": len(json.dumps(output)) // 4,
        "cost_usd": 0.0,
    }
    print(json.dumps({"schema": "hermes.agent-response/1", "output": output, "usage": usage, "error": None}))


if __name__ == "__main__":
    main()
