"""What authors of workflows reach for beyond the seven names of the front door."""

from ..core.retry import Retry
from .agent import agent
from .artifact import Artifact, artifact
from .ask import ask
from .bash import BashResult, bash, secret
from .children import child, map_workflow
from .choices import Approval, approve, select
from .compose import parallel, pipeline
from .goal import goal
from .log import log
from .operation import operation_id
from .prompts import prompt_file
from .repeatable import now, random, uuid4
from .signals import wait_for
from .sleep import sleep
from .step import step
from .workflow import Workflow, workflow

__all__ = [
    "Approval",
    "Artifact",
    "BashResult",
    "Retry",
    "Workflow",
    "agent",
    "approve",
    "artifact",
    "ask",
    "bash",
    "child",
    "goal",
    "log",
    "map_workflow",
    "now",
    "operation_id",
    "parallel",
    "pipeline",
    "prompt_file",
    "random",
    "secret",
    "select",
    "sleep",
    "step",
    "uuid4",
    "wait_for",
    "workflow",
]
