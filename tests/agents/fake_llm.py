"""A model that says what a test wants, behind the HTTP interfaces of three providers, on loopback.

It lets real agent CLIs run without an account or a network: Anthropic's messages, OpenAI's chat completions and
responses, Google's generateContent; streaming and not. Each request is remembered, so that a test can see what
reached the model: how long the prompt was, which tools were on offer, which schema was asked for.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

REFUSAL = "refused by the fake model"
INPUT_TOKENS, OUTPUT_TOKENS = 11, 7


@dataclass(frozen=True)
class Request:
    """One request to the model. `text` is everything that was said to it; `tools` the names it may call."""

    path: str
    text: str
    tools: tuple[str, ...]
    body: Json


@dataclass
class FakeModel:
    """Answers `answer`, as text or, where a tool for structured output is offered, through that tool.

    With `status` other than 200 every question gets that HTTP status and `REFUSAL`.
    """

    answer: Any
    status: int = 200
    url: str = ""
    requests: list[Request] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.answer if isinstance(self.answer, str) else json.dumps(self.answer)

    @contextmanager
    def serving(self) -> Iterator[FakeModel]:
        """`url` is set while it serves."""
        handler = type("Handler", (_Handler,), {"model": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: FakeModel

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "fake-model", "object": "model"}], "models": []})

    def do_HEAD(self) -> None:
        self._send({})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if "ount" in self.path and "okens" in self.path:  # countTokens, count_tokens
            self._send({"input_tokens": INPUT_TOKENS, "totalTokens": INPUT_TOKENS})
            return
        self.model.requests.append(Request(self.path, _said(body), _tools(body), body))
        if self.model.status != 200:
            error = {"type": "invalid_request_error", "message": REFUSAL}
            self._send({"type": "error", "error": error}, self.model.status)
            return
        speak = next(speak for part, speak in _DIALECTS.items() if part in self.path)
        whole, events = speak(self.model, body)
        if body.get("stream") or "stream" in self.path:
            self._stream(events)
        else:
            self._send(whole)

    def _send(self, document: Json, status: int = 200) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events: list[Json | str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            named = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            data = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"{named}data: {data}\n\n".encode())
        self.close_connection = True


def _said(value: Any) -> str:
    """All texts of a request, joined: where each provider puts the prompt does not matter then."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(_said(each) for each in value.values())
    return "\n".join(_said(each) for each in value) if isinstance(value, list) else ""


def _tools(body: Json) -> tuple[str, ...]:
    names: list[str] = []
    for tool in body.get("tools") or []:
        functions = tool.get("functionDeclarations") or [tool.get("function") or tool]
        names += [str(each.get("name") or each.get("type")) for each in functions]
    return tuple(names)


# -- how each provider says it: the whole response, and the same as a stream -----------------------------------------


def _messages(model: FakeModel, body: Json) -> tuple[Json, list[Json | str]]:
    structured = "StructuredOutput" in _tools(body) and not isinstance(model.answer, str)
    if structured:
        block: Json = {"type": "tool_use", "id": "tool_1", "name": "StructuredOutput", "input": model.answer}
        empty = block | {"input": {}}
        delta: Json = {"type": "input_json_delta", "partial_json": model.text}
    else:
        block = {"type": "text", "text": model.text}
        empty = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": model.text}
    reason = "tool_use" if structured else "end_turn"
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"), "stop_sequence": None}
    whole = {**start, "content": [block], "stop_reason": reason, "usage": usage}
    begun = {**start, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    return whole, [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def _responses(model: FakeModel, body: Json) -> tuple[Json, list[Json | str]]:
    content = [{"type": "output_text", "text": model.text, "annotations": []}]
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    begun = {"id": "resp_1", "object": "response", "created_at": 1, "model": body.get("model"), "output": []}
    whole = {**begun, "status": "completed", "output": [item], "usage": usage}
    return whole, [
        {"type": "response.created", "response": {**begun, "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]


def _chat(model: FakeModel, body: Json) -> tuple[Json, list[Json | str]]:
    start = {"id": "c1", "created": 1, "model": "fake-model"}
    tokens = INPUT_TOKENS + OUTPUT_TOKENS
    usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": tokens}
    message = {"role": "assistant", "content": model.text}
    chunk = {**start, "object": "chat.completion.chunk"}
    whole = {
        **start,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }
    return whole, [
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
        "[DONE]",
    ]


def _generate(model: FakeModel, body: Json) -> tuple[Json, list[Json | str]]:
    usage = {
        "promptTokenCount": INPUT_TOKENS,
        "candidatesTokenCount": OUTPUT_TOKENS,
        "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    content = {"role": "model", "parts": [{"text": model.text}]}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake-model"}
    return whole, [whole]


_DIALECTS = {"/messages": _messages, "/responses": _responses, "enerateContent": _generate, "/chat/": _chat}
