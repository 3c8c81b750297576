"""What Hermes' dashboard mounts at /api/plugins/hermes-workflows, behind its own log-in."""

from importlib import import_module
from typing import Any

from hermes_workflows.hermes_plugin.tab import METHODS, ROUTE, Tab

router: Any = import_module("fastapi").APIRouter()
router.add_route(ROUTE, Tab(), methods=list(METHODS))
