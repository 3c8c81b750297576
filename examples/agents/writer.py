"""An agent by rule, without any account: a JSON request on standard input, the answer on standard output."""

import json
import sys

request = json.load(sys.stdin)
given = request["input"]
print(f"attempt {request['attempt']} of {request['key']}", file=sys.stderr)
title = f"What is new in {given['version']}" + (f" ({given['feedback']})" if given["feedback"] else "")
print(json.dumps({"title": title, "changes": given["log"].splitlines()[:3]}))
