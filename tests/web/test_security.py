"""Every route stands behind the same gate, static files included: who is there, what it is called, who has entered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.contract.workspaces import Desk, desk
from tests.web.browser import BASE, HERE, TOKEN, app_of, browser, csrf_in, waiting_desk

from hermes_workflows.web.security import BODY_LIMIT, HEADERS

_PARAMETERS = {"run": "wf", "key": "ok", "other": "wf", "verb": "cancel", "name": "x", "sha256": "0" * 64}
_ALSO = ["/enter", "/static/style.css", "/static/nothing", "/nowhere", "/openapi.json"]


def _paths(app: Starlette) -> list[str]:
    paths = list(_ALSO)
    for route in app.routes:
        if isinstance(route, Mount):
            paths.append(f"{route.path}/page.js")
        elif isinstance(route, Route):
            path = route.path
            for name in route.param_convertors:
                path = path.replace(f"{{{name}:path}}", "{" + name + "}").replace("{" + name + "}", _value(name))
            paths.append(path)
    return paths


def _value(name: str) -> str:
    return _PARAMETERS.get(name, "x")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return waiting_desk(tmp_path_factory.mktemp("web"))


@pytest.fixture
def app(made: Desk) -> Starlette:
    return app_of(made)


@pytest.fixture
def entered(app: Starlette) -> Iterator[TestClient]:
    with browser(app) as client:
        yield client


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "path" in metafunc.fixturenames:
        root = Path(metafunc.config.rootpath)
        metafunc.parametrize("path", sorted(set(_paths(_bare_app(root)))))


def _bare_app(root: Path) -> Starlette:
    """The routes alone: nothing is opened."""
    from hermes_workflows.clock import SystemClock
    from hermes_workflows.registry import parse
    from hermes_workflows.web.app import create_app
    from hermes_workflows.web.settings import WebSettings
    from hermes_workflows.workspace import Surroundings

    known = parse("{}", root / ".hermes" / "workflows.registry.json")
    return create_app(WebSettings(known, (), Surroundings(SystemClock(), {}), TOKEN), [])


def _is_protected(response: Any) -> bool:
    sent = {name.lower(): value for name, value in response.headers.items()}
    right = all(sent.get(name.lower()) for name in HEADERS)
    policy = sent.get("content-security-policy", "")
    no_inline = "unsafe" not in policy and "frame-ancestors 'none'" in policy
    return right and no_inline and not any(name.startswith("access-control-") for name in sent)


def test_a_foreign_host_is_refused(app: Starlette, path: str) -> None:
    with browser(app) as client:
        for host in (
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "",
            "[::2]",
            "0.0.0.0",
            "localhost:80.evil.example",
        ):
            answer = client.get(path, headers={"Host": host})
            assert answer.status_code == 400, host
            assert _is_protected(answer)


def test_somebody_on_another_machine_is_refused(app: Starlette, path: str) -> None:
    for peer in (("192.168.1.7", 4000), ("::ffff:10.0.0.1", 4000), None):
        with browser(app, entered=False, peer=peer) as client:
            answer = client.get(path, headers={"X-Forwarded-For": "127.0.0.1"})
            assert answer.status_code == 403
            assert _is_protected(answer)


def test_nobody_is_let_in_without_a_session(app: Starlette, path: str) -> None:
    with browser(app, entered=False) as client:
        for cookie in ("", "hermes_workflows_8765=guessed", "hermes_workflows_8765"):
            for method in ("GET", "HEAD", "POST"):
                answer = client.request(
                    method, path, data={"a": "b"} if method == "POST" else None, headers=_same(Cookie=cookie)
                )
                assert answer.status_code == 401, (method, cookie)
                assert _is_protected(answer)
                assert "set-cookie" not in answer.headers


def test_a_post_from_another_site_is_refused(entered: TestClient, path: str) -> None:
    mark = csrf_in(entered.get("/").text)
    for origin in ("http://evil.example", "null", "", "http://127.0.0.1:1", f"{BASE}.evil.example", f"{BASE}/"):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            answer = entered.request(method, path, data={"_csrf": mark}, headers={"Origin": origin})
            assert answer.status_code == 403, (method, origin)
            assert _is_protected(answer)


def test_a_post_without_the_mark_of_the_session_is_refused(entered: TestClient, path: str) -> None:
    if path == "/enter":
        return  # the door is for those who have no session yet
    for mark in ("", "0" * 64, "ü"):
        answer = entered.post(path, data={"_csrf": mark}, headers=_same())
        assert answer.status_code == 403
        assert _is_protected(answer)


def test_a_body_without_end_is_cut_off(entered: TestClient, path: str) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(BODY_LIMIT // 65536 + 2):
            yield b"a" * 65536

    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = entered.post(path, content=endless(), headers=_same(**form))
    assert answer.status_code == 413
    assert _is_protected(answer)


def test_only_forms_are_taken(entered: TestClient, path: str) -> None:
    for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
        answer = entered.post(path, content=b"{}", headers=_same(**{"Content-Type": kind}))
        assert answer.status_code == 415


def test_every_page_carries_the_headers_and_none_opens_itself_to_others(entered: TestClient, path: str) -> None:
    answer = entered.get(path, headers={"Origin": "http://evil.example"})
    assert _is_protected(answer)
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_page_has_a_script_or_a_style_within_it(entered: TestClient, path: str) -> None:
    text = entered.get(path).text
    assert "<style" not in text
    assert " style=" not in text
    assert " onclick=" not in text
    assert text.count("<script") == text.count('<script type="module" src="/static/page.js">')


def test_the_token_is_exchanged_once_for_a_strict_cookie(app: Starlette) -> None:
    with browser(app, entered=False) as first, browser(app, entered=False) as second:
        assert first.head(f"/enter?token={TOKEN}").status_code == 401
        cookie = first.get(f"/enter?token={TOKEN}").headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert TOKEN not in cookie
        assert first.get("/").status_code == 200
        # Who is in already is not sent away by the address that let him in.
        once_more = first.get(f"/enter?token={TOKEN}")
        assert (once_more.status_code, "set-cookie" in once_more.headers) == (200, False)
        again = second.get(f"/enter?token={TOKEN}")
        assert again.status_code == 401
        assert "used already" in again.text


def test_a_token_of_the_operators_own_lets_in_every_time_also_through_the_door(made: Desk) -> None:
    app = app_of(made, lasting=True)
    with browser(app) as first, browser(app, entered=False) as second:
        answer = second.post("/enter", data={"token": TOKEN}, headers=_same())
        assert answer.status_code == 200
        assert second.get("/").status_code == first.get("/").status_code == 200
        assert first.cookies["hermes_workflows_8765"] != second.cookies["hermes_workflows_8765"]


def test_other_machines_are_served_when_the_operator_says_so_by_the_names_he_gives(made: Desk) -> None:
    app = app_of(made, remote=True, lasting=True, hosts=("desk.example",))
    with browser(app, base="http://desk.example:8765", peer=("192.168.1.7", 4000)) as client:
        assert client.get("/").status_code == 200
        assert client.get("/", headers={"Host": "other.example"}).status_code == 400


def test_one_sessions_mark_is_no_good_in_another(made: Desk) -> None:
    app = app_of(made, lasting=True)
    with browser(app) as first, browser(app) as second:
        mark = csrf_in(first.get("/").text)
        assert second.post("/", data={"_csrf": mark}, headers=_same()).status_code == 403
        assert first.post("/", data={"_csrf": mark}, headers=_same()).status_code == 405


def test_an_origin_that_a_browser_keeps_to_itself_is_taken_from_a_page_of_ours_only(entered: TestClient) -> None:
    mark = csrf_in(entered.get("/").text)
    for site, status in (("same-origin", 405), ("same-site", 403), ("cross-site", 403), ("none", 403)):
        headers = {"Origin": "null", "Sec-Fetch-Site": site}
        assert entered.post("/", data={"_csrf": mark}, headers=headers).status_code == status


def test_a_static_file_is_never_found_by_a_path_that_leaves_its_folder(entered: TestClient) -> None:
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/static/..%2fapp.py"):
        assert entered.get(path).status_code in (404, 405)


def test_a_websocket_is_refused(app: Starlette) -> None:
    with (
        TestClient(app, base_url=BASE, client=HERE) as client,
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/"),
    ):
        pass


def test_a_fault_of_ours_tells_nothing_and_keeps_the_headers(
    made: Desk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = desk(tmp_path)
    with browser(app_of(other)) as client:
        other.workspace.queue = None  # type: ignore[assignment]
        answer = client.get("/")
    assert answer.status_code == 500
    assert _is_protected(answer)
    assert "Traceback" not in answer.text
    assert "AttributeError" not in answer.text


def _same(**more: str) -> dict[str, str]:
    return {"Origin": BASE, **more}
