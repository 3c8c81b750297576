"""What the tools and the command in chat ask a workspace, and what it answers: documents without secrets.

Everything goes through `Workspace`, as from a browser and from the command line. Only what the registry names is
started: a model hands over no file and no module.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ..cli.look import receipt_document
from ..cli.review import question_document
from ..cli.seen import shown_of
from ..cli.show import review_document, status_document
from ..cli.told import call_facts, run_facts
from ..cli.writing import as_json
from ..core.encoding import Plain, parse
from ..core.outline import calls_of
from ..core.receipts import Provenance
from ..core.spelling import suggestion
from ..core.summary import summarize
from ..errors import HermesError, InvalidInput, NotFound
from .apart import ask
from .host import opened, registry_here

if TYPE_CHECKING:
    from ..core.summary import RunSummary
    from ..web.opened import Opened
    from ..workspace import Workspace

NEWEST: Final = 10
"""Runs that are shown when none is named."""

_STATUS: Final = (
    *("workflow_id", "workflow", "status", "state", "label", "reason", "next_action", "result", "error", "failed_at"),
    *("started_at", "finished_at", "reviews", "children", "parent", "usage"),
)


class Service:
    """One look at the workspace, as long as its databases are open."""

    def __init__(self, every: Opened) -> None:
        self.every = every

    def status(self, run: str) -> Plain:
        workspace = self.every.of_run(run)
        return self._status(workspace, workspace.summary(workspace.resolve(run)))

    def newest(self) -> Plain:
        """The newest runs of all databases, without their results."""
        runs = [(each, summary) for each in self.every.every for summary in each.runs(limit=NEWEST)]
        runs.sort(key=lambda run: (run[1].started_at or "", run[1].run_id), reverse=True)
        names = ("workflow_id", "workflow", "label", "reason", "next_action", "started_at")
        documents = [_status_of(workspace, summary) for workspace, summary in runs[:NEWEST]]
        return self._clean([{name: each[name] for name in names} for each in documents])

    def receipt(self, run: str, key: str | None) -> Plain:
        """A run with its calls, or the receipts of one call. Raises NotFound."""
        workspace = self.every.of_run(run)
        found = workspace.find(f"{run}@{key}" if key else run)
        if found.key is not None:
            from ..finding import of_key

            receipts = [receipt_document(each) for each in of_key(found.receipts, found.key)]
            return self._clean({"workflow_id": found.run_id, "key": found.key, "receipts": receipts})
        summary = summarize(found.run_id, found.receipts)
        facts = run_facts(found.head, found.remote, summary) | {"result": summary.result, "error": summary.error}
        return self._clean(facts | {"calls": [call_facts(each) for each in calls_of(found.receipts)]})

    def reviews(self, run: str | None = None) -> Plain:
        """What waits for people, oldest first: of one run, or of all."""
        every = [self.every.of_run(run)] if run else self.every.every
        rows = [row for each in every for row in each.reviews(run_id=each.resolve(run) if run else None)]
        rows.sort(key=lambda row: row.requested_at or "")
        return self._clean([review_document(row) for row in rows])

    def question(self, run: str, key: str) -> Plain:
        """One question with its evidence and the schema of its answer. Raises NotFound."""
        return self._clean(question_document(self.every.of_run(run).review(run, key)))

    def answer(self, run: str, key: str, payload: Plain, by: Provenance) -> Plain:
        """Raises what `Workspace.answer` raises: an answer that does not fit, that is late, that is the second."""
        workspace = self.every.of_run(run)
        name = workspace.resolve(run)
        answered = question_document(workspace.answer(name, key, payload, by))
        state = workspace.state(name)
        names = ("workflow_id", "key", "status", "answer", "answered_at", "provenance")
        return self._clean(
            {each: answered.get(each) for each in names} | {"state": state.label, "reason": state.reason}
        )

    def _status(self, workspace: Workspace, summary: RunSummary) -> Plain:
        document = _status_of(workspace, summary)
        return self._clean({name: document[name] for name in _STATUS})

    def without_secrets(self, text: str) -> str:
        for workspace in self.every.every:
            text = workspace.redactor.text(text)
        return text

    def _clean(self, document: Any) -> Plain:
        """As plain JSON, and without what any of the workspaces knows to be secret."""
        plain: Plain = json.loads(as_json(document))
        for workspace in self.every.every:
            plain = workspace.redactor.plain(plain, Counter())
        return plain


def workflows() -> Plain:
    """What can be started: the registry's aliases. One whose code cannot be loaded says why instead of its input."""
    known = ask(registry_here(), "registry", "list", "--inputs")["workflows"]
    names = ("description", "input", "error", "hint")
    return [{"workflow": alias} | {name: each[name] for name in names if name in each} for alias, each in known.items()]


def start(alias: str, given: str | None, run_id: str | None) -> Plain:
    """Record the start of a run, its input as JSON. Raises NotFound for no alias of ours, and what `ask` raises."""
    registry = registry_here()
    if alias not in registry.workflows:
        hint = suggestion(alias, list(registry.workflows), "aliases")
        raise NotFound(f"the registry has no workflow {alias!r}", hint=hint)
    more, typed = ([] if run_id is None else [f"--id={run_id}"]), None
    if given is not None:
        read_json(given, "the input")
        more, typed = [*more, "--input-json", "-"], given.encode("utf-8", "surrogatepass")
    begun = ask(registry, "run", *more, about=alias, typed=typed)
    with service() as here:
        return here.status(begun["workflow_id"])


@contextmanager
def service() -> Iterator[Service]:
    """The workspace's service, while its databases are open."""
    with opened() as every:
        here = Service(every)
        try:
            yield here
        except HermesError as error:
            # What was wrong may quote what is recorded, or what somebody has given.
            error.message = here.without_secrets(error.message)
            error.hint = error.hint and here.without_secrets(error.hint)
            raise


def read_json(text: str, what: str) -> Plain:
    """JSON that somebody has written. Raises InvalidInput that names the place."""
    try:
        # What people write is plain JSON: a key that starts with "$" means itself here.
        return parse(text.encode("utf-8", "surrogatepass"))  # type: ignore[return-value]
    except InvalidInput as error:
        raise InvalidInput(f"{what}: {error.message}", hint=error.hint or "give it as JSON") from None


def _status_of(workspace: Workspace, summary: RunSummary) -> Mapping[str, Any]:
    seen = workspace.observed(summary)
    return status_document(shown_of(seen, workspace.registry.operator, workspace.clock, workspace.paths))
