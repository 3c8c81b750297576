"""A workspace on disk with a runner that is a process of its own, and the dashboard over both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.workspaces import Site
from tests.web.browser import TOKEN
from tests.web.real.tabs import DEADLINE, tab

from hermes_workflows.clock import SystemClock
from hermes_workflows.core.clock import Clock
from hermes_workflows.registry import load
from hermes_workflows.web.app import create_app
from hermes_workflows.web.settings import WebSettings
from hermes_workflows.workspace import Surroundings

FLOWS = '''
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from hermes_workflows import agent, ask, bash, parallel, workflow

HERE = Path(__file__).parent


class Channel(Enum):
    BLOG = "blog"
    MAIL = "mail"


@dataclass
class Link:
    title: str
    address: str


@dataclass
class Topic:
    topic: str
    audience: Literal["everybody", "developers"] = "everybody"
    sections: list[str] = field(default_factory=list)
    urgent: bool = False


@dataclass
class Draft:
    title: str
    body: str


@dataclass
class Verdict:
    """What may go out, and how."""

    action: Literal["approve", "revise"]
    tone: Literal["plain", "warm"]
    channel: Channel
    notify: bool
    copies: int
    headline: Annotated[str, Field(max_length=80)]
    feedback: str
    day: date
    contact: Link
    links: list[Link]
    later: bool | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@workflow
async def launch(inputs: Topic) -> dict[str, Any]:
    """Draft an announcement, check it, and ask a person whether it may go out."""
    draft = await agent(
        "writer",
        f"Announce {inputs.topic} to {inputs.audience}.",
        returns=Draft,
        mock_output=Draft(f"{inputs.topic} is here", f"**{inputs.topic}** is here.\\n\\n- quick\\n- small"),
    )
    await parallel([bash(f"echo {name}", name=name) for name in ("links", "spelling")])
    await bash(f"until test -e {HERE}/go; do sleep 0.05; done", name="wait")
    verdict = await ask("May it go out?", key="review", input=draft, returns=Verdict)
    return {"title": verdict.headline, "by": verdict.channel.value, "links": len(verdict.links)}
'''


@dataclass
class Studio:
    site: Site

    def go(self) -> None:
        """Let the run's slow command end."""
        (self.site.root / "go").touch()

    def status(self, run_id: str) -> str:
        return str(self.site.status(run_id)["status"])

    def until(self, true: Callable[[], Any]) -> None:
        until = time.monotonic() + DEADLINE
        while not true():
            assert time.monotonic() < until
            time.sleep(0.05)


def studio(folder: Path) -> Studio:
    return Studio(Site(folder, flows=FLOWS))


@contextmanager
def working(made: Studio) -> Iterator[None]:
    """A runner that lives as long as this lasts."""
    runner = made.site.runner()
    try:
        yield
    finally:
        runner.kill()


@contextmanager
def visited(chromium: Any, made: Studio, **options: Any) -> Iterator[Any]:
    """A tab at the inbox of the dashboard over `made`."""
    with dashboard(chromium, made.site, SystemClock(), **options) as page:
        yield page


@contextmanager
def dashboard(chromium: Any, site: Site, clock: Clock, **options: Any) -> Iterator[Any]:
    registry = load(site.root / ".hermes" / "workflows.registry.json")
    around = Surroundings(clock, {})
    settings = WebSettings(registry, tuple(registry.dbs.values()), around, TOKEN, by="ana", kind="human")
    with tab(chromium, create_app(settings), **options) as page:
        yield page
