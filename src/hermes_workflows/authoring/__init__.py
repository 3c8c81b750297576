"""What authors of workflows reach for beyond the seven names of the front door."""

from ..core.retry import Retry
from .agent import agent
from .ask import ask
from .bash import BashResult, bash, secret
from .compose import parallel, pipeline
from .goal import goal
from .log import log
from .repeatable import now, random, uuid4
from .step import step
from .workflow import Workflow, workflow

__all__ = [
    "BashResult",
    "Retry",
    "Workflow",
    "agent",
    "ask",
    "bash",
    "goal",
    "log",
    "now",
    "parallel",
    "pipeline",
    "random",
    "secret",
    "step",
    "uuid4",
    "workflow",
]
