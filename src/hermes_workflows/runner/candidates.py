"""Finds the one answer in what an agent printed.

The rule: an answer is a JSON value that validates, and it is taken only when there is exactly one such value
(the last one, when the agent wrote JSON line by line).
What stands inside another JSON value is never taken for an answer, even when the outer one is broken or refused:
half of a value that happens to validate would be worse than no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from ..core.encoding import Json, Plain, dumps, encode, parse
from ..errors import InvalidInput
from .protocol import RESPONSE_SCHEMA, AgentResponse, response_in

Validate = Callable[[Plain], Plain]
"""Gives back the value as its type writes it; raises InvalidInput, with `errors` if it has several."""

Reason = tuple[str, str]
"""A JSON pointer into the answer, and what is wrong there."""

# Only looks for where a value ends; what it says is then read by the one strict parser.
_EXTENT = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len, strict=False)
_OPEN = re.compile(r'\{\s*["}]|\[\s*(?:["\[\]{0-9-]|true|false|null|NaN|Infinity)')
_INSIDE = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]]', re.S)
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))|^\ufeff")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_SHOWN = 20


class NoAnswer(InvalidInput):
    """No value, or more than one, could be taken for the answer; `errors` says why."""

    def __init__(self, errors: Iterable[Reason], *, ambiguous: bool = False) -> None:
        self.errors = tuple(errors)
        self.ambiguous = ambiguous
        super().__init__("; ".join(f"{path} {reason}".strip() for path, reason in self.errors))


@dataclass(frozen=True)
class Found:
    """A JSON object or array in a text: its value, or why it is none."""

    start: int
    end: int
    value: Json = None
    problem: str | None = None


@dataclass(frozen=True)
class Printed:
    """What an agent printed, and the JSON in it."""

    text: str
    found: tuple[Found, ...]

    @classmethod
    def of(cls, text: str) -> Printed:
        return cls(text, tuple(scan(text)))


def readable(printed: bytes) -> str:
    """What was printed as text, without terminal control sequences."""
    return _CONTROL.sub("", printed.decode("utf-8", "replace"))


def find_response(printed: Printed) -> AgentResponse | None:
    """The last response; None if the agent printed a bare answer.

    Raises NoAnswer when there is one that cannot be read: whatever else stands there is not the answer.
    """
    for found in reversed(printed.found):
        if found.problem and RESPONSE_SCHEMA in printed.text[found.start : found.end]:
            raise NoAnswer([("", found.problem)])
        response = response_in(found.value)
        if response:
            return response
    return None


def choose_from(response: AgentResponse, validate: Validate) -> Plain:
    """The answer in a response: its output, or the one in the prose that stands there instead. Raises NoAnswer."""
    if not response.has_output:
        raise NoAnswer([("", "the response has no output")])
    try:
        return validate(response.output)
    except InvalidInput as error:
        if isinstance(response.output, str):
            return choose(Printed.of(response.output), validate)
        raise NoAnswer(_reasons(error)) from None


def choose(printed: Printed, validate: Validate) -> Plain:
    """The one answer in a text that is no response. Raises NoAnswer."""
    text, found = printed.text, printed.found
    valid, errors = _fitting((one.value for one in found if not one.problem), validate)
    if not valid:
        valid, _ = _fitting(_scalars(text, validate), validate)
    elif _one_a_line(text, found):
        return valid[-1]
    if len(valid) == 1:
        return valid[0]
    if valid:
        reason = f"{len(valid)} different values fit; say only the one that is meant"
        raise NoAnswer([("", reason)], ambiguous=True)
    problems = [("", one.problem) for one in found if one.problem]
    raise NoAnswer([*problems[-_SHOWN:], *errors[:_SHOWN]] or [("", "there is no JSON value in the answer")])


def _fitting(values: Iterable[Json], validate: Validate) -> tuple[list[Plain], list[Reason]]:
    """The different values that fit, each at its last place, and the reasons against the one that fits most nearly."""
    fitting: dict[bytes, Plain] = {}
    fewest: list[Reason] = []
    for value in values:
        try:
            fit = validate(cast(Plain, value))
        except InvalidInput as error:
            reasons = _reasons(error)
            fewest = reasons if not fewest or len(reasons) <= len(fewest) else fewest
            continue
        name = dumps(encode(fit, {}))
        fitting.pop(name, None)
        fitting[name] = fit
    return list(fitting.values()), fewest


def _reasons(error: InvalidInput) -> list[Reason]:
    return list(getattr(error, "errors", ())) or [(getattr(error, "path", ""), error.message)]


def _one_a_line(text: str, found: tuple[Found, ...]) -> bool:
    """JSON Lines, perhaps after some noise: then a later value replaces an earlier one."""
    ends = [*(one.start for one in found[1:]), len(text)]
    gaps = [text[one.end : end] for one, end in zip(found, ends, strict=True)]
    single = all("\n" not in text[one.start : one.end] for one in found)
    return single and not any(gap.strip() for gap in gaps) and all("\n" in gap for gap in gaps[:-1])


def _scalars(text: str, validate: Validate) -> Iterator[Json]:
    """Answers that are no object or array: the whole text as JSON, else as itself, else what stands in fences."""
    whole = text.strip()
    for candidate in [*_parsed(whole), whole]:
        try:
            validate(cast(Plain, candidate))
        except InvalidInput:
            continue
        yield candidate
        return
    for fenced in _fenced(text):
        yield from _parsed(fenced)


def _parsed(text: str) -> list[Json]:
    try:
        return [parse(text.encode("utf-8", "replace"))]
    except InvalidInput:
        return []


def _fenced(text: str) -> Iterator[str]:
    opened: str | None = None
    lines: list[str] = []
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if opened is None:
            opened, lines = (fence[1] if fence else None), []
        elif fence and fence[1].startswith(opened) and not line[fence.end() :].strip():
            yield "\n".join(lines).strip()
            opened = None
        else:
            lines.append(line)


class _WithoutLines(str):
    """Text whose errors do not count lines: that passes over the whole text for every brace of prose."""

    __slots__ = ()

    def count(self, *_: object) -> int:
        return 0

    def rfind(self, *_: object) -> int:
        return -1


def scan(text: str) -> Iterator[Found]:
    """The outermost JSON objects and arrays of a text, in order; also those that only tried to be."""
    at = 0
    without_lines = _WithoutLines(text)
    while opening := _OPEN.search(text, at):
        start = opening.start()
        try:
            _, at = _EXTENT.raw_decode(without_lines, start)
        except json.JSONDecodeError as error:
            if not text[start : error.pos].strip("{[ \t\r\n"):
                # Brackets of prose, of a template, of some other language; those between here and there fail alike.
                at = max(start + 1, error.pos)
                continue
            at = _closing(text, start)
            near = text[max(start, error.pos - 20) : error.pos + 20]
            yield Found(start, at, problem=f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} in {near!r}")
        except RecursionError:
            yield Found(start, len(text), problem="the JSON is nested too deep")
            return
        else:
            yield _read(text, start, at)


def _read(text: str, start: int, end: int) -> Found:
    try:
        return Found(start, end, parse(text[start:end].encode("utf-8", "replace")))
    except InvalidInput as error:
        return Found(start, end, problem=error.message)


def _closing(text: str, start: int) -> int:
    """The end of what opens at `start`, by brackets outside of strings; the end of the text if it never closes."""
    depth = 0
    for token in _INSIDE.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)
