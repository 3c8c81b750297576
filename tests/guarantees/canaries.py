"""A workspace in which secrets are let loose wherever text comes in, and a look at every byte that it keeps and shows.

Each place has a secret of its own, so that a leak names the place it came from.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import urllib.parse
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.command_line import Place, Said, place

# Where it is let loose → its value. All of them are variables: those of `NAMED` because the registry says so,
# the others because their names look secret. Each has a character that JSON, URLs and shells write in their own ways.
NAMED = ("WORD", "NOTED")
SECRETS = {
    "WORD": "blue-Elephant/soup+9",
    "NOTED": 'kettle & "drum" 77',
    "PROMPT_TOKEN": "pq81-Prompt/zz+canary",
    "INPUT_TOKEN": "in27-Input/zz+canary",
    "STDOUT_TOKEN": "so33-Stdout/zz+canary",
    "STDERR_TOKEN": "se44-Stderr/zz+canary",
    "RAISED_TOKEN": "ra55-Raised/zz+canary",
    "FILE_TOKEN": "fi66-FileName-zz+canary",
    "ANSWER_TOKEN": "an77-Answer/zz+canary",
    "SIGNAL_TOKEN": "si88-Signal/zz+canary",
    "KEY_TOKEN": "ke99-Keyed/zz+canary",
    "AGENT_TOKEN": "ag10-Agent/zz+canary",
    "NOTICE_TOKEN": "no11-Notice/zz+canary",
    "LOGGED_TOKEN": "lo12-Logged/zz+canary",
    "RESULT_TOKEN": "re13-Result/zz+canary",
    "BURST_TOKEN": "bu14-Burst/zz+canary",
    "REASON_TOKEN": "rs15-Reason/zz+canary",
    "CHILD_TOKEN": "ch16-Child/zz+canary",
    "ATTEMPT_TOKEN": "at17-Attempt/zz+canary",
    "PERSON_TOKEN": "pe18-Person/zz+canary",
}
# A shape that is known whoever it belongs to: no variable holds it.
SHAPE = "ghp_" + "Canary0123456789abcdefABCDEF012345678"

FLOW = """
import asyncio, base64, logging, os, sys, urllib.parse, warnings
from dataclasses import dataclass
from pathlib import Path

from hermes_workflows import agent, ask, bash, parallel, workflow
from hermes_workflows.authoring import Retry, artifact, child, log, secret, step, wait_for
from hermes_workflows.errors import CallFailed

HERE = Path(__file__).parent
S = dict(os.environ)


@dataclass
class Given:
    text: str = ""


@step(retry=Retry(attempts=2, initial=0.01))
def raising() -> None:
    try:
        raise KeyError(S["RAISED_TOKEN"])
    except KeyError as error:
        error.add_note("noted " + S["NOTED"])
        raise ValueError("raised " + S["ATTEMPT_TOKEN"]) from error


@step
def printing() -> dict[str, str]:
    print("said", S["STDOUT_TOKEN"])
    sys.stderr.write("said " + S["STDERR_TOKEN"] + "\\n")
    warnings.warn("warned " + S["LOGGED_TOKEN"], stacklevel=1)
    logging.getLogger("canary").error("logged %s", S["LOGGED_TOKEN"])
    return {S["RESULT_TOKEN"]: S["RESULT_TOKEN"], "shape": "SHAPE"}


@step
def files_made() -> None:
    (HERE / ("f-" + S["FILE_TOKEN"])).write_text("nothing secret")
    (HERE / "held").write_text("holds " + S["FILE_TOKEN"])


@step
def tick(n: int) -> str:
    return f"{n} {S['BURST_TOKEN']}"


@workflow
async def inner(inputs: Given) -> str:
    log("child says " + S["CHILD_TOKEN"])
    raise RuntimeError("child failed " + S["CHILD_TOKEN"])


@workflow
async def burst() -> int:
    for n in range(3000):
        await tick(n)
    return n


@workflow
async def failing() -> None:
    raise RuntimeError("failed " + S["RAISED_TOKEN"])


async def tried(call) -> str:
    try:
        return str(await call)
    except CallFailed as error:
        return repr(error)


@workflow
async def everything(inputs: Given) -> dict[str, str]:
    log("body says " + S["LOGGED_TOKEN"] + inputs.text)
    word, out, err = S["WORD"], S["STDOUT_TOKEN"], S["STDERR_TOKEN"]
    said = [await bash("env; printf '%s' \\"$TOKEN\\" | base64; echo $TOKEN >&2", env={"TOKEN": secret("WORD")})]
    said.append(await bash(["printf", f"%s\\\\n\\\\377%s", out, urllib.parse.quote(out)], name="bytes"))
    said.append(await bash(f"echo {base64.b64encode(err.encode()).decode()} '{err}' >&2; exit 3", name="err"))
    said.append(await bash(["false"], key=f"named {S['KEY_TOKEN']}", check=False))
    said.append(await tried(bash("true", name="gone", cwd="no-" + S["FILE_TOKEN"])))
    said.append(await tried(raising()))
    said.append(await printing())
    given = {"text": S["AGENT_TOKEN"], S["AGENT_TOKEN"]: 1}
    said.append(await tried(agent("writer", "Say " + S["PROMPT_TOKEN"], input=given, returns=str)))
    said.append(await tried(agent("writer", "Read.", key="files", files=["f-" + S["FILE_TOKEN"]], returns=str)))
    said.append(await tried(agent("breaker", "Break " + S["PROMPT_TOKEN"], returns=str)))
    await files_made()
    said.append(await tried(artifact(HERE / ("f-" + S["FILE_TOKEN"]))))
    said.append(await tried(artifact(HERE / "held")))
    said.append(await tried(artifact("text with " + S["FILE_TOKEN"], name="n-" + S["FILE_TOKEN"])))
    said.append(await tried(child(inner, Given(S["CHILD_TOKEN"]), key_by=S["KEY_TOKEN"])))
    event = await wait_for("event", returns=dict)
    evidence = {"shown " + S["FILE_TOKEN"]: out, "file": Path("f-" + S["FILE_TOKEN"])}
    answer = await ask("May I, " + S["NOTICE_TOKEN"] + "?", key="ok", input=given, evidence=evidence, returns=dict)
    return {"said": str(said), "event": str(event), "answer": str(answer), word: word}
""".replace("SHAPE", SHAPE[:4] + '" + "' + SHAPE[4:])

AGENT = """
import json, os, sys
asked = sys.stdin.read()
sys.stderr.write("agent error " + os.environ["STDERR_TOKEN"] + "\\n")
if "Break" in asked:
    print("no json " + os.environ["AGENT_TOKEN"]); sys.exit(3)
print(json.dumps({"schema": "hermes.agent-response/1", "output": asked + os.environ["AGENT_TOKEN"]}))
"""
NOTIFY = "cat >> notices; echo told $NOTICE_TOKEN; echo cannot $NOTICE_TOKEN >&2; exit 1"


@dataclass(frozen=True)
class Leak:
    secret: str
    form: str
    where: str
    around: str


def workspace(folder: Path) -> Place:
    flows = ("everything", "burst", "failing")
    registry = {
        "dbs": {"default": "workflows.sqlite"},
        "workflows": {name: {"workflow_ref": f"flows/canary.py:{name}"} for name in flows},
        "redact": NAMED,
        "environment": {"allow": ["*"]},
        "notify": ["sh", "-c", NOTIFY],
    }
    made = place(folder, registry, **SECRETS)
    (made.root / "flows" / "canary.py").write_text(FLOW)
    (made.root / "agent.py").write_text(AGENT)
    return made


def forms(value: str) -> dict[str, bytes]:
    """The forms that are promised to be found, and what stands around them does not matter."""
    raw = value.encode()
    kept = {
        "plain": raw,
        "JSON": json.dumps(value)[1:-1].encode(),
        "URL": urllib.parse.quote(value, safe="").encode(),
        "form": urllib.parse.quote_plus(value).encode(),
        "HTML": value.replace("&", "&amp;").replace('"', "&#34;").encode(),
    }
    for offset in range(3):
        whole = base64.b64encode(b"x" * offset + raw)
        kept[f"base64+{offset}"] = whole[4 if offset else 0 : -4]
    return kept


FORMS = {name: forms(value) for name, value in {**SECRETS, "shape": SHAPE}.items()}
# A piece long enough to be known again: half a secret is half a leak.
PIECES = {
    name: re.split(r"[^A-Za-z0-9]", value)[0].encode() for name, value in SECRETS.items() if name.endswith("TOKEN")
}


def leaks_in(where: str, data: bytes) -> Iterator[Leak]:
    for name, written in FORMS.items():
        for form, needle in (*written.items(), *((("piece", PIECES[name]),) if name in PIECES else ())):
            if (at := data.find(needle)) >= 0:
                around = data[max(0, at - 80) : at + 80].decode("utf-8", "replace")
                yield Leak(name, form, where, around)
                break


def objects(repository: Path) -> Iterator[tuple[str, bytes]]:
    """Every object there is, in packs and loose, whether anything leads to it or not."""
    command = ["git", "-C", str(repository), "cat-file", "--batch", "--batch-all-objects", "--unordered"]
    told = subprocess.run(command, capture_output=True, check=True).stdout
    while told:
        head, _, rest = told.partition(b"\n")
        name, kind, size = head.decode().split()
        yield f"{kind} {name}", rest[: int(size)]
        told = rest[int(size) + 1 :]


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Each file's name, its bytes as they lie there, and what is in it where it is compressed."""
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder))
        yield f"the name {name}", name.encode()
        if file.is_file():
            data = file.read_bytes()
            yield name, data
            if re.search(r"objects/[0-9a-f]{2}/[0-9a-f]{38}$", name):
                yield f"{name}, unpacked", zlib.decompress(data)


def told(said: Said, where: str) -> Iterator[tuple[str, bytes]]:
    yield f"{where}: stdout", said.stdout.encode()
    yield f"{where}: stderr", said.stderr.encode()
