"""The presets: one module for each kind of agent program, all with the protocol of `base.py`.

Adding one means a module here, its name in `settings.PRESETS`, and a page's row in docs/agents.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import claude, codex, command, gemini, hermes, llm, opencode, replay
from .base import Preset

PRESETS: Mapping[str, Preset] = {
    "claude": claude.PRESET,
    "codex": codex.PRESET,
    "command": command.PRESET,
    "gemini": gemini.PRESET,
    "hermes": hermes.PRESET,
    "llm": llm.PRESET,
    "opencode": opencode.PRESET,
    "replay": replay.PRESET,
}
