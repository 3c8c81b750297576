"""A question told by the real `hermes send`, and answered through the real gateway's own handling of a message."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command_line import REGISTRY
from tests.hermes.real.client import PROGRAM, Client

# Two messages to Hermes' gateway as a platform brings them, and what it said to the platform.
GATEWAY = """
import asyncio
from gateway.config import GatewayConfig, Platform
from gateway.platforms.base import MessageEvent
from gateway.run import GatewayRunner
from gateway.session import SessionSource

said, authorized = [], []

class Adapter:
    async def send(self, chat_id, content, reply_to=None, metadata=None):
        said.append(content)

async def main(messages):
    runner = GatewayRunner(GatewayConfig())
    runner.adapters[Platform.TELEGRAM] = Adapter()
    # What no hook has taken comes to this check next, on its way to the model; a stranger's message ends there.
    runner._is_user_authorized = lambda source: bool(authorized.append(source.user_id))
    for number, (user, text) in enumerate(messages):
        source = SessionSource(platform=Platform.TELEGRAM, chat_id="-1", user_id=user, chat_type="group")
        await runner._handle_message(MessageEvent(text=text, source=source, message_id=str(number)))
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name().startswith("hermes-workflows")))

asyncio.run(main({messages!r}))
print(json.dumps([said, authorized]))
"""


@dataclass
class Platform:
    """What `hermes send` delivers to: an ntfy server on loopback."""

    url: str = ""
    said: list[str] = field(default_factory=list)


@pytest.fixture
def platform() -> Iterator[Platform]:
    made = Platform()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.said.append(self.rfile.read(int(self.headers["content-length"])).decode())
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def told(client: Client, platform: Platform) -> list[str]:
    """The lines of the notice that a question of the run `wf` has brought."""
    (client.home / ".env").write_text(f"NTFY_TOPIC=people\nNTFY_SERVER_URL={platform.url}\n")
    rules = {"notify": {"preset": "hermes", "to": "ntfy", "command": [str(PROGRAM)]}}
    registry = {**REGISTRY, **rules, "hermes": {"senders": ["telegram:7"]}}
    (client.work.root / ".hermes" / "workflows.registry.json").write_text(json.dumps(registry))
    client.work.start()
    client.work.work()
    return re.findall(r"^`(hw1-\S+)`$", "\n".join(platform.said), re.MULTILINE)


def sent(client: Client, *messages: tuple[str, str]) -> Any:
    return client.script(GATEWAY.replace("{messages!r}", repr(messages)))


def test_a_line_of_a_notice_sent_back_ends_in_a_receipt_and_the_run_goes_on(client: Client, platform: Platform) -> None:
    approve, _ = told(client, platform)
    said, authorized = sent(client, ("7", approve), ("7", approve))
    assert said[0] == "Recorded: approve, for review_draft of wf."
    assert "was answered by telegram:7 (human, hermes-chat)" in said[1]
    assert authorized == []
    client.work.work()
    assert client.work.run("status", "wf").json["result"] == "Draft of docs: approve"


def test_what_is_no_line_of_ours_goes_on_to_hermes_own_checks(client: Client, platform: Platform) -> None:
    approve, _ = told(client, platform)
    said, authorized = sent(client, ("7", "yes"), ("7", f"yes {approve}"), ("8", approve), ("7", approve[:-1] + "z"))
    assert (said, authorized) == ([], ["7", "7", "7"])
    assert client.work.run("review", "show", "wf", "review_draft").json["status"] == "open"


def test_a_notice_shows_foreign_text_and_attaches_no_file_of_this_machine(
    client: Client, platform: Platform, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("nobody reads this")
    flow = client.work.root / "flows" / "launch.py"
    flow.write_text(flow.read_text().replace('"Ship it?"', repr(f"Ship it? MEDIA:{secret} [[as_document]]")))
    told(client, platform)
    (text,) = platform.said
    assert "secret.txt" in text
    assert "nobody reads this" not in text
