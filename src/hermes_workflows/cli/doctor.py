"""`doctor`, `runner doctor`, `registry doctor`: what is wrong, what to do, and with --fix the repairs themselves.

What they print as JSON is fit for a bug report: secrets and the home folder are taken out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..errors import HermesError, IntegrityError, InvalidInput, NotFound
from ..registry import DatabasePaths
from .agents import VARIABLES, fallback_agent
from .scope import Scope, scoped

if TYPE_CHECKING:
    from ..doctor import Finding

_MARKS = {"ok": "  ok", "warning": "warn", "problem": "BAD "}
_OTHER_VARIABLES = ("HERMES_WORKFLOWS_ORIGINAL_HASHSEED",)


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Do the repairs that lose nothing, and say which.")
@scoped
def doctor(scope: Scope, fix: bool) -> int:
    """Look for what is wrong with machine, registry, code, agents, databases, receipts and runners."""
    return report(scope, *_examined(scope, fix, everything=True))


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Do the repairs that lose nothing, and say which.")
@scoped
def runner_doctor(scope: Scope, fix: bool) -> int:
    """Look for what keeps runners from working: the same, but for the receipts of each run."""
    return report(scope, *_examined(scope, fix, everything=False))


@click.command("doctor")
@scoped
def registry_doctor(scope: Scope) -> int:
    """Check every alias: its database, its code, its types. Changes nothing."""
    from ..doctor import examine_registry, looked

    try:
        known = scope.registry
    except InvalidInput as error:
        return report(scope, [_misread(error)], [])
    return report(scope, looked("registry", lambda: examine_registry(known)), [])


def _examined(scope: Scope, fix: bool, *, everything: bool) -> tuple[list[Finding], list[str]]:
    """The findings, after the repairs when there were any, and what was repaired."""
    found, repaired = _once(scope, fix, everything)
    # What is left is what counts, and a repair may have brought something to light.
    return (_once(scope, False, everything)[0], repaired) if repaired else (found, repaired)


def _once(scope: Scope, fix: bool, everything: bool) -> tuple[list[Finding], list[str]]:
    from ..doctor import examine_machine, examine_registry, looked

    environment = scope.session.environment
    try:
        known = scope.registry
    except InvalidInput as error:
        # Without a registry there is nothing else to look at.
        return [_misread(error)], []
    variables = (*VARIABLES, *_OTHER_VARIABLES)
    found = looked("machine", lambda: examine_machine(known, environment, variables, scope.clock))
    found += looked("registry", lambda: examine_registry(known))
    found += looked("agents", lambda: _agents(scope))
    repaired: list[str] = []
    for paths in scope.every() if everything else [scope.paths()]:
        more, done = _of_database(scope, paths, fix, everything)
        found, repaired = [*found, *more], [*repaired, *done]
    return found, repaired


def _agents(scope: Scope) -> Iterator[Finding]:
    from ..doctor import Finding
    from ..runner.agent_programs import examine_agents

    environment, fallback = scope.session.environment, None
    try:
        fallback = fallback_agent(environment)
    except click.UsageError as error:
        yield Finding("problem", error.message, "no runner starts with this variable as it is")
    yield from examine_agents(scope.registry, fallback, environment)


def _of_database(scope: Scope, paths: DatabasePaths, fix: bool, everything: bool) -> tuple[list[Finding], list[str]]:
    from ..doctor import Finding, examine, examine_runners, files_of, looked

    found, repaired = files_of(scope.registry, paths, scope.clock, fix=fix)
    try:
        with scope.look(paths) as workspace:
            if not everything:
                return [*found, *looked("runners", lambda: examine_runners(workspace))], repaired
            more, done = examine(workspace, fix=fix)
            return [*found, *more], [*repaired, *done]
    except NotFound as error:
        found.append(Finding("warning", error.message, error.hint, "repository"))
    except HermesError as error:
        found.append(Finding("problem", error.message, error.hint, "repository"))
    return found, repaired


def _misread(error: InvalidInput) -> Finding:
    from ..doctor import Finding

    return Finding("problem", error.message, error.hint, "registry")


def report(scope: Scope, findings: Sequence[Finding], repaired: Sequence[str]) -> int:
    bad = [finding for finding in findings if finding.level == "problem"]
    document = {"ok": not bad, "findings": [_document(each) for each in findings], "repaired": list(repaired)}
    lines = [f"mended  {each}" for each in repaired]
    lines += [f"{_MARKS[each.level]}  {each.what}" + (f"\n      {each.hint}" if each.hint else "") for each in findings]
    scope.output.data(_fit_to_show(scope, document), lambda: _redactor(scope).text("\n".join(lines)))
    return IntegrityError.exit_code if bad else 0


def _document(finding: Finding) -> dict[str, Any]:
    said = {"level": finding.level, "part": finding.part, "what": finding.what, "hint": finding.hint}
    return said | ({"repairable": True} if finding.repair else {})


def _fit_to_show(scope: Scope, document: Any) -> Any:
    """The document without secrets, and with `~` for the home folder, whose name is a person's."""
    clean, homes = _redactor(scope).text, _homes(scope.session.environment)

    def shown(value: Any) -> Any:
        if isinstance(value, str):
            value = clean(value)
            for home in homes:
                value = value.replace(home, "~")
            return value
        if isinstance(value, list):
            return [shown(each) for each in value]
        return {name: shown(each) for name, each in value.items()} if isinstance(value, dict) else value

    return shown(document)


def _homes(environment: Mapping[str, str]) -> list[str]:
    """The home folder as it is named and as it really is; never one that is the beginning of everything."""
    home = environment.get("HOME", "").rstrip("/")
    return sorted({each for each in (home, os.path.realpath(home) if home else "") if each.count("/") > 0}, key=len)[
        ::-1
    ]


def _redactor(scope: Scope) -> Any:
    try:
        return scope.redactor
    except HermesError:
        from ..core.redaction import Redactor

        return Redactor({}, scope.session.environment)
