"""`/events`: one stream a tab that says when its page is out of date; what is new is read by loading the page.

`Last-Event-ID`, or `since` the first time, is what the reader has; if that is not the newest, it is told at once.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ..live import Looks, stream, ticks, version_of
from ..rendering import opened
from ..settings import WebSettings


async def show(request: Request) -> Response:
    given, state = request.query_params, request.app.state
    run, settings = given.get("run", ""), _settings(request)
    if run:
        # What is not there is said now; a stream has no status.
        await run_in_threadpool(opened(request).of_run(run).find, run)
    looks = getattr(state, "looks", None) or Looks(partial(version_of, opened(request)), settings.look_seconds)
    state.looks = looks
    last = request.headers.get("last-event-id") or given.get("since", "")
    beats = ticks(settings.look_seconds, settings.stream_seconds, state.ending)
    return StreamingResponse(stream(looks, run, last, beats), media_type="text/event-stream")


def _settings(request: Request) -> WebSettings:
    settings: WebSettings = request.app.state.settings
    return settings


ROUTES: Final = (Route("/events", show, name="events"),)
