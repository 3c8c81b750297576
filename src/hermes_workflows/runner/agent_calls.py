"""Executes `agent()` calls: finds who is to be asked, reads what the call hands over, and asks."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..authoring.agent import AgentOptions
from ..core.encoding import parse
from ..core.layout import Role
from ..errors import HermesError, InvalidInput
from ..settings import AgentSettings, FromEnvironment
from .agent_files import hashes_of, skill_texts
from .agents import AgentAttempt, AgentOutcome, AgentRequest, World, run_agent
from .environment import clean_environment
from .jobs import Executed, Job, NoAgent, Report, Surroundings
from .presets.prompts import with_skills
from .presets.replay import entries_of

DEFAULT_ATTEMPTS = 3


def execute_agent(job: Job, report: Report) -> Executed:
    """Raises NoAgent, InvalidInput and CannotEnforce; everything else is in what it returns."""
    options: AgentOptions = job.call.spec.options
    around = job.surroundings
    if options.mocked:
        output = around.redactor.plain(options.codec.to_plain(options.mock_output))
        return Executed("completed", output, mock=True)
    name = str(job.call.request["name"])
    settings = around.agents.find(name)
    if settings is None:
        raise NoAgent(f"this runner has nobody to ask as {name!r}")
    if options.timeout is not None:
        settings = settings._replace(timeout=options.timeout)
    files = hashes_of(around.root, options.given.files, around.redactor)
    skills = skill_texts(around.root, options.given.skills, around.redactor)
    outcome = run_agent(
        _request(job, options, skills),
        settings,
        options.codec,
        _world(job, settings, around.root / options.given.workspace_dir),
        on_attempt=report,
        attempts=options.retry.attempts if options.retry else DEFAULT_ATTEMPTS,
        budget=min((each for each in (options.budget, settings.budget) if each is not None), default=None),
        spent=sum(used.cost_usd for each in job.earlier if (used := each.execution.usage)),
    )
    hashed = files | hashes_of(around.root, skills, around.redactor)
    return _executed(outcome, {"preset": settings.preset, "files": hashed or None})


def _request(job: Job, options: AgentOptions, skills: Mapping[str, str]) -> AgentRequest:
    request = job.call.request
    return AgentRequest(
        run=job.run_id,
        key=job.call.key,
        operation_id=job.operation_id,
        attempt=job.attempt,
        name=str(request["name"]),
        prompt=with_skills(str(request["prompt"]), list(skills.items())),
        input=request["input"],
        model=None if request["model"] is None else str(request["model"]),
        returns=options.codec.json_schema,
        tools=options.given.tools,
        files=tuple(os.path.relpath(name, options.given.workspace_dir) for name in options.given.files),
    )


def _world(job: Job, settings: AgentSettings, cwd: Path) -> World:
    around = job.surroundings
    names = [value.name for value in settings.env.values() if isinstance(value, FromEnvironment)]
    secrets = from_environment(names, around)
    given = {
        name: secrets[value.name] if isinstance(value, FromEnvironment) else value
        for name, value in settings.env.items()
    }
    if not cwd.is_dir():
        raise InvalidInput(f"workspace_dir: {cwd}: there is no such folder", hint="make it in a step before")
    return World(
        cwd=cwd,
        env=clean_environment(around.environment, given, around.rules),
        redactor=around.redactor.extended(secrets),
        stop=job.stop,
        now=around.clock.now,
        recorded=_recorded(settings, around),
        presets=around.presets,
        on_line=job.last.heard,
    )


def from_environment(names: Iterable[str], around: Surroundings) -> dict[str, str]:
    """The runner's own variables of these names. Raises HermesError that names the missing ones."""
    names = list(names)
    if missing := [name for name in names if name not in around.environment]:
        raise HermesError(f"the runner's environment has no {', '.join(missing)}", hint="export it and start it again")
    return {name: around.environment[name] for name in names}


def _recorded(settings: AgentSettings, around: Surroundings) -> tuple[Mapping[str, Any], ...]:
    """What a replay answers from."""
    if settings.answers is not None:
        path = around.root / settings.answers
        try:
            return entries_of(parse(path.read_bytes()), settings.answers)
        except OSError as error:
            raise InvalidInput(f"{path}: the answers cannot be read: {error.strerror}") from None
        except InvalidInput as error:
            raise InvalidInput(f"{settings.answers}: {error.message}", hint=error.hint) from None
    if settings.run is None:
        return ()
    results = [each for each in around.recorded(settings.run) if each.kind == "agent" and each.role is Role.RESULT]
    return tuple(
        {"key": each.key, "error": each.error.message} if each.error else {"key": each.key, "output": each.output}
        for each in results
    )


def _executed(outcome: AgentOutcome, noted: Mapping[str, Any]) -> Executed:
    last: AgentAttempt | None = outcome.attempts[-1] if outcome.attempts else None
    if last is None:
        return Executed("failed", error=outcome.error, noted=noted, retryable=False)
    return Executed(
        outcome.status,
        outcome.output,
        outcome.error,
        # Earlier attempts have receipts with their own usage; a sum here would count it twice.
        usage=last.usage,
        redactions=last.redactions,
        transcript=last.transcript,
        # What could be mended by saying what is wrong was tried; what is left may be mended by time.
        retryable=not last.repairable and outcome.covered,
        attempt=last.number,
        attempts=tuple(each.told() for each in outcome.attempts if each.failure),
        noted={**noted, "model": last.model, "session": last.session},
    )
