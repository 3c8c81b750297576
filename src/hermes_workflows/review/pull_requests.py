"""What a review of a pull request says to a question: who may say it, and which answer it is. Pure.

state              a fenced JSON block   means
approved           no                    the approving choice, the text as feedback
changes requested  no                    the choice that asks for changes, the text as feedback
commented          no                    nothing: it is talk
any of these       yes                   the block, whole; it must not say the opposite of the state
dismissed, pending                       nothing: it was taken back, or not sent yet
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.encoding import Plain, parse
from ..core.receipts import Provenance
from ..errors import InvalidInput
from .forms import Field, Form, form_of, shown

MAY_WRITE = frozenset({"admin", "maintain", "write"})
CHANNEL = "pull-request"

# In order of closeness: of several choices that fit, the first of these is meant.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "APPROVED": ("approve", "approved", "accept", "accepted", "ok", "yes", "pass", "passed", "ship", "publish", "go"),
    "CHANGES_REQUESTED": (
        *("request_changes", "changes_requested", "changes", "revise", "rework", "needs_changes", "edit", "retry"),
        *("reject", "rejected", "decline", "declined", "no", "fail", "failed", "stop"),
    ),
}
_OPPOSITE = {"APPROVED": "CHANGES_REQUESTED", "CHANGES_REQUESTED": "APPROVED"}
_SAID = {"APPROVED": "an approval", "CHANGES_REQUESTED": "a request for changes"}
_DECISIVE = ("action", "decision", "verdict", "approved", "accepted", "ok", "passed")
_TEXTS = ("feedback", "comment", "comments", "reason", "note", "notes", "message")

_OPEN = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*json\b[ \t]*(\S*)[ \t]*", re.IGNORECASE)
_SHAPE = "it is what `gh api repos/O/R/pulls/N` prints"
_HINT = "write the whole answer in a fenced ```json block of the review"


@dataclass(frozen=True)
class PullRequest:
    """`foreign` says that its branch lies in another repository, where anybody may write."""

    repository: str
    number: int
    url: str
    author: str
    branch: str
    foreign: bool = False


@dataclass(frozen=True)
class ForgeReview:
    """A review as the forge tells it; `commit` is the one that was on the reviewer's screen."""

    id: str
    login: str
    is_bot: bool
    state: str
    text: str
    commit: str
    url: str


@dataclass(frozen=True)
class Said:
    """An answer that a review gives: to `key`, or to the only question there is."""

    key: str | None
    payload: Plain


def pull_request_of(data: Any) -> PullRequest:
    """The pull request in GitHub's JSON. Raises InvalidInput that names what is missing."""
    head, base = _part(data, "head"), _part(data, "base")
    repository = _text(_part(base, "repo"), "full_name")
    source, number = head.get("repo"), data.get("number", 0)
    if type(number) is not int:
        raise InvalidInput("the pull request's JSON has no number", hint=_SHAPE)
    return PullRequest(
        repository=repository,
        number=number,
        url=str(data.get("html_url") or f"https://github.com/{repository}/pull/{number}"),
        author=_text(_part(data, "user"), "login"),
        branch=_text(head, "ref"),
        foreign=not isinstance(source, Mapping) or source.get("full_name") != repository,
    )


def review_of(data: Any) -> ForgeReview:
    """A review in GitHub's JSON; one whose author is gone has no login. Raises InvalidInput."""
    if not isinstance(data, Mapping) or "id" not in data or "state" not in data:
        raise InvalidInput("a review is an object with id, user, state, body and commit_id")
    user = data["user"] if isinstance(data.get("user"), Mapping) else {}
    login = str(user.get("login") or "")
    return ForgeReview(
        id=str(data["id"]),
        login=login,
        is_bot=user.get("type", "User") != "User" or login.endswith("[bot]"),
        state=str(data["state"]).upper(),
        text=str(data.get("body") or ""),
        commit=str(data.get("commit_id") or ""),
        url=str(data.get("html_url") or ""),
    )


def is_answer(review: ForgeReview) -> bool:
    """Whether it answers at all, be it well or badly."""
    return review.state in _WORDS or (review.state == "COMMENTED" and any(_blocks(review.text)))


def objections(review: ForgeReview, pull: PullRequest, permission: str) -> list[str]:
    """Every reason why whoever wrote this may not answer; `permission` is theirs in the repository."""
    reasons = []
    if not review.login:
        return ["nobody knows whose review it is: the account is gone"]
    if pull.foreign:
        reasons.append("the pull request's branch lies in another repository, which others may write")
    if review.login.casefold() == pull.author.casefold():
        reasons.append(f"{review.login} opened the pull request, and nobody approves their own")
    if permission not in MAY_WRITE:
        reasons.append(f"{review.login} has no write access to {pull.repository} ({permission or 'none is known'})")
    return reasons


def answers_of(review: ForgeReview, forms: Mapping[str, Mapping[str, Any]]) -> list[Said]:
    """What the review says, given the schemas of the questions it may be about, by key.

    Raises InvalidInput for a review that cannot be understood: nothing of it is an answer then.
    """
    said = [_block_said(review, key, text, forms) for key, text in _blocks(review.text)]
    if said:
        if len({each.key for each in said}) < len(said):
            raise InvalidInput("several JSON blocks answer one question", hint="write ```json KEY before each")
        return said
    if len(forms) != 1:
        names = ", ".join(sorted(forms)) or "none"
        raise InvalidInput(f"several questions wait ({names}), and the review names none", hint=f"{_HINT}: ```json KEY")
    ((key, schema),) = forms.items()
    return [Said(key, mapped(review, form_of(schema)))]


def mapped(review: ForgeReview, form: Form) -> Plain:
    """The answer that an approval or a request for changes means. Raises InvalidInput when it means none."""
    field = _decisive(form)
    decision = _decision(field, review.state)
    if not form.is_object:
        return decision
    values: dict[str, Plain] = {field.name: decision}
    words = next((each for name in _TEXTS for each in form.fields if each.name == name and each.kind == "text"), None)
    text = review.text.replace("\r\n", "\n").strip()
    if words and (text or words.required):
        values[words.name] = text
    return form.assemble(values)


def provenance_of(review: ForgeReview, pull: PullRequest, *, verified: bool) -> Provenance:
    """Where an answer comes from. Only what the forge itself has told is a person's; a file may be anybody's."""
    kind = "agent" if review.is_bot else "human" if verified else "manual"
    return Provenance(
        kind=kind,  # type: ignore[arg-type]  # the three words are the model's
        by=review.login,
        channel=CHANNEL,
        message_id=f"{pull.repository}#{pull.number}/{review.id}",
        verified="forge-login" if verified else "none",
        origin={
            "repository": pull.repository,
            "number": str(pull.number),
            "review": review.id,
            "login": review.login,
            "commit": review.commit,
            "url": review.url or pull.url,
        },
    )


def _block_said(review: ForgeReview, key: str, text: str, forms: Mapping[str, Mapping[str, Any]]) -> Said:
    known = key or (next(iter(forms)) if len(forms) == 1 else "")
    if known not in forms:
        names = ", ".join(sorted(forms)) or "none"
        about = f"question {key!r}, which does not wait" if key else "no question"
        raise InvalidInput(f"a JSON block names {about}; waiting: {names}", hint="write ```json KEY")
    payload: Plain = parse(text.encode("utf-8", "surrogatepass"))  # type: ignore[assignment]  # Json is Plain without bytes
    _refuse_opposite(review, payload, form_of(forms[known]))
    return Said(known, payload)


def _refuse_opposite(review: ForgeReview, payload: Plain, form: Form) -> None:
    opposite = _OPPOSITE.get(review.state)
    try:
        field = _decisive(form)
    except InvalidInput:
        return
    value = payload.get(field.name) if form.is_object and isinstance(payload, dict) else payload
    contrary = value is (review.state != "APPROVED") if isinstance(value, bool) else _is_word(value, opposite)
    if opposite and contrary:
        raise InvalidInput(f"the review is {_SAID[review.state]}, and its JSON block says {shown(value)}")


def _decisive(form: Form) -> Field:
    fields = [field for field in form.fields if field.kind == "boolean" or len(field.choices) > 1]
    named = [field for name in _DECISIVE for field in fields if field.name == name]
    if not named and len(fields) != 1:
        raise InvalidInput("an approval alone does not say enough to answer this question", hint=_HINT)
    return (named or fields)[0]


def _decision(field: Field, state: str) -> Plain:
    if field.kind == "boolean":
        return state == "APPROVED"
    by_word = {_word(choice): choice for choice in field.choices if isinstance(choice, str)}
    for word in _WORDS.get(state, ()):
        if word in by_word:
            return by_word[word]
    choices = ", ".join(map(shown, field.choices))
    raise InvalidInput(f"{_SAID.get(state, 'a comment')} means none of the choices {choices}", hint=_HINT)


def _is_word(value: Plain, state: str | None) -> bool:
    return isinstance(value, str) and _word(value) in _WORDS.get(state or "", ())


def _word(text: str) -> str:
    return re.sub(r"[\s-]+", "_", text.strip().lower())


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The fenced JSON blocks of a review, with the key that stands behind `json`; quoted ones are somebody else's."""
    fence, key = "", ""
    lines: list[str] = []
    for line in re.split(r"\r\n|\r|\n", text):
        if not fence:
            if opening := _OPEN.fullmatch(line):
                fence, key, lines = opening[1], opening[2], []
        elif re.fullmatch(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*", line):
            yield key, "\n".join(lines)
            fence = ""
        else:
            lines.append(line)


def _part(data: Any, name: str) -> Mapping[str, Any]:
    part = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(part, Mapping):
        raise InvalidInput(
            f"the pull request's JSON has no {name}", hint="it is what `gh api repos/O/R/pulls/N` prints"
        )
    return part


def _text(data: Mapping[str, Any], name: str) -> str:
    if not isinstance(data.get(name), str) or not data[name]:
        raise InvalidInput(
            f"the pull request's JSON has no {name}", hint="it is what `gh api repos/O/R/pulls/N` prints"
        )
    return str(data[name])
