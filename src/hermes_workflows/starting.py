"""What a run starts from: an input that fits its type, sources without secrets, and the receipt that says both."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from .core import layout
from .core.divergence import PYTHON
from .core.encoding import Plain
from .core.names import check_run_id, slug
from .core.receipts import Execution, Receipt, RunRequest, RunStarted
from .core.redaction import Redactor
from .core.timestamps import in_milliseconds, render_time
from .errors import InvalidInput
from .importing import said_where
from .loader import LoadedWorkflow
from .versions import versions

_ENV_HINT = "read it from the environment in a step"
# Looked for in the text, since an input is recorded before any body says what is secret in it.
_NAMED = re.compile(rb"""\bsecret\(\s*(?:name\s*=\s*)?["']([^"'\\\n]+)["']""")


@dataclass(frozen=True)
class Start:
    """When a run starts, in which workspace, the run and call it is a child of, and when it must be over.

    `commit` is the one that the project's files were checked out from.
    """

    now: datetime
    home: str
    parent: Mapping[str, str] | None = None
    deadline: datetime | None = None
    commit: str | None = None


def start_receipt(loaded: LoadedWorkflow, given: Plain, start: Start, redactor: Redactor) -> RunStarted:
    """The `run.json` of a run of `loaded`. Raises InvalidInput naming the field that does not fit the input type."""
    counts: Counter[str] = Counter()
    value = redactor.plain(_input_of(loaded, given), counts)
    if counts:
        _check_redacted(loaded, value)
    execution = Execution(
        started_at=start.now,
        workspace=start.home,
        code=loaded.code,
        commit=start.commit,
        python=PYTHON,
        versions=versions(),
        # Behind `random()`, `uuid4()` and the order of sets in the body: never derived from anything guessable.
        seed=secrets.token_hex(16),
        parent=dict(start.parent) if start.parent else None,
        deadline_at=in_milliseconds(start.deadline) if start.deadline else None,
        redactions=dict(counts) or None,
    )
    return RunStarted(
        path=layout.RUN, key="", request=RunRequest(workflow=loaded.ref, input=value), execution=execution
    )


def following(began: RunStarted, there: RunStarted, source: Mapping[str, str]) -> RunStarted:
    """The start of a run that takes after another one, `there`, with where it comes from.

    It has that one's seed: the order of sets, and what `random()` gives, must be as it was there.
    """
    seed = there.execution.seed or source["run"]
    execution = began.execution.model_copy(update={"seed": seed, "source": dict(source)})
    return began.model_copy(update={"execution": execution})


def check_start(loaded: LoadedWorkflow, given: Plain, run_id: str | None) -> None:
    """Refuse what no run could start from, before anything is made on disk. Raises InvalidInput."""
    if run_id is not None:
        check_run_id(run_id)
    _input_of(loaded, given)


def check_deadline(deadline: datetime | None, now: datetime) -> None:
    """Raises InvalidInput for a deadline that lies behind."""
    if deadline is not None and deadline <= now:
        raise InvalidInput(f"the deadline {render_time(deadline)} lies behind", hint=f"now it is {render_time(now)}")


def source_files(loaded: LoadedWorkflow, redactor: Redactor) -> dict[str, bytes]:
    """The code a run is decided by, as files of its folder. Raises InvalidInput for a source that holds a secret."""
    for path, data in loaded.sources.items():
        if redactor.finds(data):
            raise InvalidInput(f"{path} contains a secret, and sources are kept as they are", hint=_ENV_HINT)
    return {layout.source(loaded.code, path): data for path, data in loaded.sources.items()}


def secrets_named(loaded: LoadedWorkflow) -> list[str]:
    """The variables that the sources of a workflow hand to `secret()` by a literal name."""
    found = (match for data in loaded.sources.values() for match in _NAMED.findall(data))
    return [name.decode("utf-8", "replace") for name in found]


def recorded_names(receipts: Iterable[Receipt]) -> Iterator[str]:
    """The variables that the recorded requests of a run call secret."""
    for receipt in receipts:
        env = receipt.request.get("env") if receipt.kind == "bash" else None
        for value in env.values() if isinstance(env, Mapping) else ():
            if isinstance(value, Mapping) and isinstance(name := value.get("secret"), str):
                yield name


def check_id(what: str, name: str, redactor: Redactor) -> None:
    """Raises InvalidInput for a name with a secret in it: it stands in paths, refs and commits as it is."""
    if redactor.finds(name.encode("utf-8", "surrogatepass")):
        raise InvalidInput(f"the {what} contains a secret, and is kept as it is", hint="choose another one")


def new_run_id(workflow: str, now: datetime) -> str:
    name = slug(workflow.lower())[:60].strip("._-") or "run"
    return f"{name}-{now:%Y%m%d}-{secrets.token_hex(4)}"


def _input_of(loaded: LoadedWorkflow, given: Plain) -> Plain:
    """The input as the workflow's type says it, defaults filled in: equal inputs are recorded equally."""
    definition = loaded.definition
    with said_where(loaded.ref):
        takes = definition.input_codec
    if takes is None:
        if given:
            raise InvalidInput(f"{loaded.ref} takes no input", hint="leave --input-json out")
        return None
    try:
        arguments = definition.arguments(given)
    except InvalidInput as error:
        if given is None:
            raise InvalidInput(f"{loaded.ref} needs an input: {error.message}", hint="pass --input-json") from error
        raise
    return definition.encode_input(arguments[0]) if arguments else None


def _check_redacted(loaded: LoadedWorkflow, value: Plain) -> None:
    try:
        loaded.definition.arguments(value)
    except InvalidInput as error:
        raise InvalidInput(
            f"the input holds a secret and does not fit its type without it: {error.message}", hint=_ENV_HINT
        ) from error
