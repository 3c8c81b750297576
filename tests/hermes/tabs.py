"""A tab of Hermes' dashboard over a workspace that a test has made."""

from __future__ import annotations

from tests.contract.workspaces import Desk

from hermes_workflows.hermes_plugin.tab import Tab
from hermes_workflows.web.opened import Opened


class OpenedTab(Tab):
    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk

    def _every(self) -> Opened:
        return Opened(self._desk.workspace.registry, [self._desk.workspace])
