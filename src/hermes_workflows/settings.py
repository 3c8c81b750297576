"""What a registry says of agents, and of the environment that agents and commands start with.

Read with the registry, hence as light as it: no dataclasses, no pydantic. The presets themselves are in
`runner/presets`; a test holds the names here and there to each other.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from .core.spelling import nearest, suggestion

if TYPE_CHECKING:
    from .registry import Reader

ANY = "*"
PRESETS = ("command", "claude", "codex", "gemini", "hermes", "llm", "opencode", "replay")
LIMITED = ("agent", "bash", "step", "artifact", "notify")
STDIN = ("json", "prompt", "none")
DEFAULT_TIMEOUT = 1800.0

# Without these nothing starts, so a list of allowed names need not repeat them.
_ALWAYS = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR")
_AGENT = (
    *("preset", "command", "args", "model", "model_args", "stdin", "timeout", "budget", "prices", "env"),
    *("enforces", "structured", "answers", "run"),
)
_REPLAY_ONLY = ("answers", "run")
_COMMAND_ONLY = ("model_args", "stdin", "enforces")


class PullRequests(NamedTuple):
    """Where runs are published and reviewed: `[HOST/]OWNER/NAME`, and how often runners look there, in seconds."""

    repository: str
    every: float = 60.0


class HermesRules(NamedTuple):
    """What a workspace lets Hermes Agent do; nothing that stands here makes an answer of a model a human one.

    `answer_tool` gives its model a tool that answers questions, recorded as `agent`. `senders` are the people whose
    answers from a chat are taken, as `PLATFORM:USER_ID`.
    """

    answer_tool: bool = False
    senders: tuple[str, ...] = ()


class Notify(NamedTuple):
    """The command that tells people of questions. It reads JSON, or with the preset `hermes` the text of a chat."""

    command: tuple[str, ...]
    preset: str | None = None


class FromEnvironment(NamedTuple):
    """A value that the runner's environment has under this name; it never stands in the registry."""

    name: str


class Prices(NamedTuple):
    """What a model costs, in USD for a million tokens."""

    input: float
    output: float


class AgentSettings(NamedTuple):
    """How one agent is asked.

    `timeout` is in seconds, for each attempt; `budget` in USD, for each call. `command` is the program, when it is
    not the preset's own, `args` are its further arguments, `model_args` those that are added when a model is named.
    `prices` replace the cost that the program reports. `enforces` says which arguments of `agent()` a command of
    one's own honours. `structured` switches the program's own structured output on or off.
    """

    preset: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    model: str | None = None
    model_args: tuple[str, ...] = ()
    stdin: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    budget: float | None = None
    prices: Prices | None = None
    env: Mapping[str, str | FromEnvironment] = MappingProxyType({})
    enforces: tuple[str, ...] = ()
    structured: bool | None = None
    answers: str | None = None
    run: str | None = None


class EnvironmentRules(NamedTuple):
    """Which variables of the runner's environment agents and commands get: patterns like `AWS_*`.

    With `allow`, only those and the few that every program needs; `deny` wins over both.
    What a call or an agent's entry sets by name is passed in any case.
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()

    def passes(self, name: str) -> bool:
        if any(fnmatchcase(name, pattern) for pattern in self.deny):
            return False
        return self.allow is None or any(fnmatchcase(name, pattern) for pattern in (*self.allow, *_ALWAYS))


def read_environment(reader: Reader, value: Any) -> EnvironmentRules:
    parts = reader.object(value, "environment", ("allow", "deny"))
    allow = tuple(reader.names(parts["allow"], "environment.allow")) if "allow" in parts else None
    return EnvironmentRules(allow, tuple(reader.names(parts.get("deny", []), "environment.deny")))


def read_pull_requests(reader: Reader, value: Any) -> PullRequests:
    where = "pull_requests"
    parts = reader.object({"repository": value} if isinstance(value, str) else value, where, PullRequests._fields)
    repository = reader.text(parts.get("repository"), f"{where}.repository")
    if not 1 <= repository.count("/") <= 2 or not all(repository.split("/")):
        reader.fail(f"{where}.repository", "names no repository", "write OWNER/NAME, or HOST/OWNER/NAME")
    return PullRequests(repository, reader.span(parts.get("every", 60.0), f"{where}.every"))


def read_hermes(reader: Reader, value: Any) -> HermesRules:
    parts = reader.object(value, "hermes", HermesRules._fields)
    if not isinstance(senders := parts.get("senders", []), list):
        reader.fail("hermes.senders", "must be a list of people, each as PLATFORM:USER_ID")
    for number, sender in enumerate(senders):
        platform, _, user = reader.text(sender, f"hermes.senders.{number}").partition(":")
        if not platform or not user:
            reader.fail(f"hermes.senders.{number}", "names nobody", "write PLATFORM:USER_ID, as telegram:123456")
    return HermesRules(_switch(reader, parts, "hermes", "answer_tool") or False, tuple(senders))


def read_notify(reader: Reader, value: Any) -> Notify:
    if not isinstance(value, dict):
        return Notify(read_command(reader, value, "notify"))
    parts = reader.object(value, "notify", ("preset", "to", "command"))
    if (preset := reader.text(parts.get("preset"), "notify.preset")) != "hermes":
        reader.fail("notify.preset", f"names no preset: {preset!r}", "there is one, 'hermes'; else write a command")
    program = read_command(reader, parts.get("command", ["hermes"]), "notify.command")
    target = reader.text(parts.get("to"), "notify.to")
    return Notify((*program, "send", f"--to={target}", "--file=-"), preset)


def read_limits(reader: Reader, value: Any, agents: Mapping[str, AgentSettings]) -> Iterator[tuple[str, int]]:
    """How many calls of a kind (`bash`) or of one agent (`agent:writer`) may execute at once."""
    for name, number in reader.object(value, "limits").items():
        where, agent = f"limits.{name}", name.removeprefix("agent:")
        if name not in LIMITED and (agent == name or not agent):
            hint = suggestion(name, LIMITED, "kinds") + ", or agent:NAME for one agent"
            reader.fail(where, "limits nothing that a runner executes", hint)
        if agent != name and agent not in agents and (near := nearest(agent, agents)) is not None:
            # It may be an agent of the command line.
            reader.warnings.append(f"{reader.path}: {where} names no agent of the registry; did you mean {near!r}?")
        yield name, reader.count(number, where, least=1)


def read_agents(reader: Reader, value: Any) -> Iterator[tuple[str, AgentSettings]]:
    """The entries of `agents`, by the name that a workflow asks for. Raises InvalidInput that names the place."""
    for name, entry in reader.object(value, "agents").items():
        yield name, _agent(reader, entry, f"agents.{name}")


def _agent(reader: Reader, entry: Any, where: str) -> AgentSettings:
    parts = reader.object({"preset": entry} if isinstance(entry, str) else entry, where, _AGENT)
    # A command needs no preset beside it.
    preset = reader.text(parts.get("preset", "command" if "command" in parts else None), f"{where}.preset")
    if preset not in PRESETS:
        reader.fail(f"{where}.preset", f"names no preset: {preset!r}", suggestion(preset, PRESETS, "presets"))
    _check_keys(reader, parts, where, preset)
    return AgentSettings(
        preset=preset,
        command=_words(reader, parts.get("command", []), f"{where}.command"),
        args=_words(reader, parts.get("args", []), f"{where}.args"),
        model=_optional_text(reader, parts, where, "model"),
        model_args=_words(reader, parts.get("model_args", []), f"{where}.model_args"),
        stdin=_stdin(reader, parts, where),
        timeout=reader.number(parts.get("timeout", DEFAULT_TIMEOUT), f"{where}.timeout"),
        budget=reader.number(parts["budget"], f"{where}.budget") if "budget" in parts else None,
        prices=_prices(reader, parts["prices"], f"{where}.prices") if "prices" in parts else None,
        env=dict(_variables(reader, parts.get("env", {}), f"{where}.env")),
        enforces=_words(reader, parts.get("enforces", []), f"{where}.enforces"),
        structured=_switch(reader, parts, where, "structured"),
        answers=_optional_text(reader, parts, where, "answers"),
        run=_optional_text(reader, parts, where, "run"),
    )


def _check_keys(reader: Reader, parts: Mapping[str, Any], where: str, preset: str) -> None:
    for keys, owner in ((_REPLAY_ONLY, "replay"), (_COMMAND_ONLY, "command")):
        for key in keys:
            if key in parts and preset != owner:
                reader.fail(f"{where}.{key}", f"belongs to the preset {owner!r}, and this one is {preset!r}")
    if preset == "command" and not parts.get("command"):
        reader.fail(f"{where}.command", "is missing", "it is the program that answers")
    if preset == "replay" and ("answers" in parts) == ("run" in parts):
        reader.fail(where, "needs one of answers (a file) and run (an id)")


def read_command(reader: Reader, value: Any, where: str) -> tuple[str, ...]:
    """A command as a list of words, or as a line that is split like a shell does."""
    words = _words(reader, value, where)
    if not words:
        reader.fail(where, "names no program")
    return words


def _words(reader: Reader, value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            reader.fail(where, f"cannot be split into words: {error}")
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        reader.fail(where, "must be a text or a list of texts")
    return tuple(value)


def _optional_text(reader: Reader, parts: Mapping[str, Any], where: str, key: str) -> str | None:
    return reader.text(parts[key], f"{where}.{key}") if key in parts else None


def _stdin(reader: Reader, parts: Mapping[str, Any], where: str) -> str | None:
    given = _optional_text(reader, parts, where, "stdin")
    if given is not None and given not in STDIN:
        reader.fail(f"{where}.stdin", f"must be one of {', '.join(STDIN)}")
    return given


def _switch(reader: Reader, parts: Mapping[str, Any], where: str, key: str) -> bool | None:
    return None if parts.get(key) is None else reader.switch(parts[key], f"{where}.{key}")


def _prices(reader: Reader, value: Any, where: str) -> Prices:
    parts = reader.object(value, where, Prices._fields)
    return Prices(*(reader.number(parts.get(name), f"{where}.{name}", least=0.0) for name in Prices._fields))


def _variables(reader: Reader, value: Any, where: str) -> Iterator[tuple[str, str | FromEnvironment]]:
    for name, given in reader.object(value, where).items():
        if isinstance(given, str):
            yield name, given
        else:
            parts = reader.object(given, f"{where}.{name}", ("from",))
            yield name, FromEnvironment(reader.text(parts.get("from"), f"{where}.{name}.from"))


def chosen_agent(flag: str) -> tuple[str, AgentSettings]:
    """What `--agent NAME=PRESET` says; after a colon, the model, or where a replay has its answers from.

    Raises ValueError that says what is wrong.
    """
    name, equals, rest = flag.partition("=")
    preset, _, more = rest.partition(":")
    if not name or not equals or not preset:
        raise ValueError(f"{flag!r} is not NAME=PRESET")
    if preset not in PRESETS:
        raise ValueError(f"{preset!r} is no preset; {suggestion(preset, PRESETS, 'presets')}")
    if preset == "command":
        raise ValueError("a command needs its program: use --agent-command, or the registry's agents")
    if preset != "replay":
        return name, AgentSettings(preset, model=more or None)
    if not more:
        raise ValueError("replay needs its answers: NAME=replay:FILE.json, or NAME=replay:RUN")
    is_file = "/" in more or more.endswith(".json")
    return name, AgentSettings(preset, answers=more if is_file else None, run=None if is_file else more)


class Agents:
    """All agents a runner may ask: found by name, and by `*`, in what was said first.

    The command line comes before the registry, `fallback` (of the environment) before the registry's `*` only.
    """

    def __init__(
        self,
        chosen: Mapping[str, AgentSettings],
        configured: Mapping[str, AgentSettings],
        fallback: AgentSettings | None = None,
    ) -> None:
        self._steps: Sequence[tuple[Mapping[str, AgentSettings], str | None]] = (
            (chosen, None),
            (chosen, ANY),
            (configured, None),
            ({ANY: fallback} if fallback else {}, ANY),
            (configured, ANY),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Whom `find` finds; `*` when it finds somebody for every name."""
        return tuple(
            sorted({name for entries, key in self._steps for name in ([key] if key else entries) if name in entries})
        )

    def find(self, name: str) -> AgentSettings | None:
        found = (entries.get(name if key is None else key) for entries, key in self._steps)
        return next((entry for entry in found if entry is not None), None)
