"""The environment that commands and agents start with.

A command must not act on the repository whose hook started the runner, an agent must not take itself for a part of
the agent session that started it, and nobody should answer questions or draw for a terminal that is not there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..settings import EnvironmentRules

ORIGINAL_HASHSEED = "HERMES_WORKFLOWS_ORIGINAL_HASHSEED"
"""Set by whoever starts a deciding process with `PYTHONHASHSEED=0`: the value before, empty if there was none."""

_QUIET = {"NO_COLOR": "1", "CI": "1", "TERM": "dumb"}

# What an agent's command line tells its children about the session they run in.
_SESSION = re.compile(
    r"CLAUDECODE|CLAUDE_CODE_.+|CLAUDE_SESSION_.+|CODEX_.+|GEMINI_CLI(?:_.+)?|OPENCODE(?:_.+)?"
    r"|HERMES_SESSION(?:_.+)?|CURSOR_AGENT|CURSOR_TRACE_ID|AI_AGENT"
)
# How a person set that command line up, with the same beginnings: keys, homes, endpoints, switches.
_SETTING = re.compile(
    r".+_(?:API_KEY|KEY|TOKEN|HOME|PATH|DIR|CONFIG(?:_.+)?|MODEL|BASE_URL|CA_CERTIFICATE|CLIENT_CERT)"
    r"|.+_(?:USE|SKIP|DISABLE|ENABLE|MAX|API)_.+"
)
# These win over NO_COLOR in many programs.
_COLOURS = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE"})
# A command that speaks to the runner's supervisor would speak for the runner.
_SUPERVISION = frozenset({"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"})


def clean_environment(
    environ: Mapping[str, str], extra: Mapping[str, str] | None = None, rules: EnvironmentRules | None = None
) -> dict[str, str]:
    """`environ` for a child: without `GIT_*` and nested-session marks, with `PYTHONHASHSEED` as the user had it.

    `rules` are the operator's; `extra` is what the author of the call wants, and wins over everything.
    """
    passes = rules.passes if rules else lambda _: True
    clean = {name: value for name, value in environ.items() if not _removed(name) and passes(name)}
    original = environ.get(ORIGINAL_HASHSEED)
    clean.pop(ORIGINAL_HASHSEED, None)
    if original is not None:
        clean.pop("PYTHONHASHSEED", None)
    if original:
        clean["PYTHONHASHSEED"] = original
    return {**clean, **_QUIET, **(extra or {})}


def _removed(name: str) -> bool:
    if name.startswith("GIT_") or name in _COLOURS or name in _SUPERVISION:
        return True
    return bool(_SESSION.fullmatch(name)) and not _SETTING.fullmatch(name)
