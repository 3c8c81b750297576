"""Running commands: that it always comes back, leaves nothing behind, and keeps what matters."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_workflows.core.redaction import Redactor
from hermes_workflows.runner.capture import Capture, Stream
from hermes_workflows.runner.processes import Command, Outcome, StopSignal, run_command

NOW = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)
SECRET = "hunter2-hunter2"
MARK = "HERMES_TEST_MARK"


def run(
    tmp_path: Path,
    *argv: str,
    stop: StopSignal | None = None,
    on_line: Callable[[str, str], None] | None = None,
    **fields: Any,
) -> Outcome:
    env = {"PATH": os.environ["PATH"], MARK: str(tmp_path)}
    command = Command(argv=argv, cwd=fields.pop("cwd", tmp_path), env=env, **fields)
    redactor = Redactor({"PW": SECRET})
    return run_command(command, stop=stop or StopSignal(), redactor=redactor, now=lambda: NOW, on_line=on_line)


def bash(tmp_path: Path, script: str, **fields: Any) -> Outcome:
    return run(tmp_path, "/bin/bash", "-c", script, **fields)


def left_alive(tmp_path: Path) -> list[str]:
    """Processes of this test that still run, by the mark in their environment; a killed one may take a moment to go."""
    deadline = time.monotonic() + 2
    while (found := list(marked(f"{MARK}={tmp_path}".encode()))) and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    return found


def marked(mark: bytes) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                yield (process / "cmdline").read_text()


def test_an_exit_status_and_both_streams_come_back(tmp_path: Path) -> None:
    outcome = bash(tmp_path, "echo out; echo err >&2; exit 3")
    assert (outcome.ended, outcome.exit_code, outcome.signal, outcome.reason) == ("exited", 3, None, None)
    assert (outcome.stdout.whole, outcome.stderr.whole) == (b"out\n", b"err\n")
    assert outcome.started_at == NOW
    assert 0 < outcome.duration_seconds < 60


def test_death_by_a_signal_is_told_apart_from_an_exit_status(tmp_path: Path) -> None:
    outcome = bash(tmp_path, "kill -9 $$")
    assert (outcome.ended, outcome.exit_code, outcome.signal) == ("exited", None, 9)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("sleep 300 & echo hi; wait", "timed_out"),
        ("sh -c 'sleep 300 & exit 0'; echo hi", "exited"),
        ("echo hi; sleep 300 >/dev/null 2>&1 &", "exited"),
        ("trap '' INT TERM; echo hi; while :; do sleep 0.1; done", "timed_out"),
        ("trap '' INT TERM; sleep 300 & echo hi; wait; wait", "timed_out"),
    ],
)
def test_the_deadline_holds_and_no_process_is_left(tmp_path: Path, script: str, ended: str) -> None:
    begin = time.monotonic()
    outcome = bash(tmp_path, script, timeout=1.0)
    assert time.monotonic() - begin < 3
    assert (outcome.ended, outcome.stdout.whole) == (ended, b"hi\n")
    assert left_alive(tmp_path) == []


def test_a_timed_out_command_gets_the_chance_to_clean_up(tmp_path: Path) -> None:
    outcome = bash(tmp_path, "trap 'echo cleaned; exit 4' INT; while :; do sleep 0.05; done", timeout=0.5)
    assert (outcome.ended, outcome.exit_code, outcome.stdout.whole) == ("timed_out", 4, b"cleaned\n")
    assert outcome.reason == "timed out after 0.5 s"


def test_a_flood_does_not_hide_the_deadline(tmp_path: Path) -> None:
    outcome = run(tmp_path, "yes", timeout=0.3)
    assert outcome.ended == "timed_out"
    assert outcome.duration_seconds < 3


def test_a_stop_from_another_thread_ends_it_at_once(tmp_path: Path) -> None:
    stop = StopSignal()
    # Late enough that the command is silent by then: nothing but the signal can wake whoever watches it.
    timer = threading.Timer(0.3, stop.set, ["cancelled by ana"])
    timer.start()
    outcome = bash(tmp_path, "sleep 30", stop=stop)
    timer.join()
    assert (outcome.ended, outcome.reason) == ("stopped", "cancelled by ana")
    assert outcome.duration_seconds < 3


def test_a_stop_that_came_before_starts_nothing(tmp_path: Path) -> None:
    stop = StopSignal()
    stop.set("cancelled")
    stop.set("a second reason changes nothing")
    outcome = bash(tmp_path, "touch started", stop=stop)
    assert (outcome.ended, outcome.reason) == ("stopped", "cancelled")
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"argv": ("no-such-command",)}, "no-such-command: there is no such command"),
        ({"argv": ("ls",), "cwd": Path("/no/such")}, "/no/such: there is no such folder to run ls in"),
        ({"argv": ("echo", "x" * 200_000)}, "echo: the command line is too long (its longest word has 200000 bytes)"),
        ({"argv": ("echo", "a\0b")}, "the command cannot be run: embedded null byte"),
        ({"argv": ()}, "the command cannot be run: it is empty"),
        ({"argv": (SECRET,)}, "[redacted:PW]: there is no such command"),
    ],
)
def test_what_cannot_start_says_why(tmp_path: Path, fields: dict[str, Any], reason: str) -> None:
    outcome = run(tmp_path, *fields.pop("argv"), **fields)
    assert (outcome.ended, outcome.exit_code) == ("not_started", None)
    assert outcome.reason is not None
    assert outcome.reason.startswith(reason)


def test_standard_input_is_closed_unless_given(tmp_path: Path) -> None:
    read, write = os.pipe()
    own = os.dup(0)
    os.dup2(read, 0)
    try:
        # Ours stays open and silent: a command that inherited it would wait for ever.
        assert bash(tmp_path, "cat; echo done", timeout=20).stdout.whole == b"done\n"
        assert run(tmp_path, "cat", stdin=b"given\n", timeout=20).stdout.whole == b"given\n"
    finally:
        os.dup2(own, 0)
        for fd in (read, write, own):
            os.close(fd)


def test_a_large_input_is_given_whole_while_output_is_read(tmp_path: Path) -> None:
    data = b"line of input\n" * 400_000
    outcome = run(tmp_path, "cat", stdin=data)
    assert outcome.stdout.sha256 == hashlib.sha256(data).hexdigest()


def test_a_command_may_ignore_its_input(tmp_path: Path) -> None:
    outcome = bash(tmp_path, "exec <&-; echo done", stdin=b"x" * 5_000_000)
    assert (outcome.exit_code, outcome.stdout.whole) == (0, b"done\n")


@pytest.mark.parametrize("printed", [b"\xf0", b"a\r\nb\r\n", b"a\0b", b"\x1b[31mred\x1b[0m", b"no end of line", b""])
def test_output_is_kept_byte_for_byte(tmp_path: Path, printed: bytes) -> None:
    outcome = run(tmp_path, "cat", stdin=printed)
    assert outcome.stdout == Stream(printed, b"", len(printed), hashlib.sha256(printed).hexdigest())
    assert outcome.stdout.whole == printed


def test_ten_megabytes_in_one_line_keep_head_tail_size_and_hash(tmp_path: Path) -> None:
    outcome = bash(tmp_path, "echo begin; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end", keep_bytes=100)
    whole = b"begin\n" + b"x" * 10_000_000 + b"\nend\n"
    stream = outcome.stdout
    assert (stream.head, stream.tail) == (whole[:100], whole[-100:])
    assert (stream.total_bytes, stream.sha256) == (len(whole), hashlib.sha256(whole).hexdigest())
    assert b"\n[... 9999811 bytes left out ...]\n" in stream.whole


def test_a_hundred_megabytes_pass_in_bounded_memory(tmp_path: Path) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = bash(tmp_path, "yes 'a line of output' | head -c 100000000")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert outcome.stdout.total_bytes == 100_000_000
    assert grown * (1 if sys.platform == "darwin" else 1024) < 20_000_000


def test_secrets_are_replaced_before_size_hash_and_cut(tmp_path: Path) -> None:
    outcome = bash(tmp_path, f"printf '%s' xx{SECRET}; printf '%s\\n' {SECRET} >&2", keep_bytes=5)
    clean = b"xx[redacted:PW]"
    assert (outcome.stdout.head, outcome.stdout.tail) == (clean[:5], clean[-5:])
    assert (outcome.stdout.total_bytes, outcome.stdout.sha256) == (len(clean), hashlib.sha256(clean).hexdigest())
    assert (outcome.stdout.redactions, outcome.stderr.redactions) == ({"PW": 1}, {"PW": 1})


def test_what_env_and_git_remote_print_is_redacted(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "DEPLOY_TOKEN": "Zx81abcDEF0123456", "GIT_CONFIG_GLOBAL": "/dev/null"}
    script = "env | grep DEPLOY; git init -q .; git remote add origin https://me:t0ken9@host/a; git remote -v >&2"
    command = Command(("/bin/bash", "-c", script), tmp_path, env)
    outcome = run_command(command, stop=StopSignal(), redactor=Redactor({}, env), now=lambda: NOW)
    assert outcome.stdout.whole == b"DEPLOY_TOKEN=[redacted:DEPLOY_TOKEN]\n"
    assert outcome.stdout.sha256 == hashlib.sha256(outcome.stdout.whole).hexdigest()
    assert outcome.stderr.whole.splitlines()[-1] == b"origin\thttps://me:[redacted:url-password]@host/a (push)"


def test_live_lines_are_redacted_and_come_before_the_end(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def on_line(name: str, line: str) -> None:
        seen.append((name, line))
        # The command waits for this: so the line came while it was running.
        (tmp_path / "seen").touch()

    script = f"echo {SECRET}; while [ ! -e seen ]; do sleep 0.02; done; printf 'two\\r\\nthree'"
    outcome = bash(tmp_path, script, on_line=on_line, timeout=20)
    assert outcome.ended == "exited"
    assert seen == [("stdout", "[redacted:PW]"), ("stdout", "two"), ("stdout", "three")]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_listener_that_raises_leaves_no_process(tmp_path: Path) -> None:
    def on_line(name: str, line: str) -> None:
        raise RuntimeError("a broken listener")

    with pytest.raises(RuntimeError, match="a broken listener"):
        bash(tmp_path, "echo hi; sleep 300", on_line=on_line)
    assert left_alive(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(2):
        bash(tmp_path, "sleep 300 & exit 0", stdin=b"x" * 200_000)
        run(tmp_path, "no-such-command")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_command_has_a_session_of_its_own(tmp_path: Path) -> None:
    script = "import os; print(os.getsid(0) == os.getpgid(0) == os.getpid(), os.isatty(0))"
    assert run(tmp_path, sys.executable, "-c", script).stdout.whole == b"True False\n"


# -- capture -----------------------------------------------------------------------------------------------------


def captured(data: bytes, keep: int, size: int = 7) -> Stream:
    capture = Capture(Redactor(), keep)
    for start in range(0, len(data), size):
        capture.feed(data[start : start + size])
    return capture.close()


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("keep", [0, 1, 10, 49, 50, 99, 100, 200])
def test_head_and_tail_are_the_ends_of_the_whole(keep: int, size: int) -> None:
    data = bytes(range(32, 127)) + b"\nend\n"
    stream = captured(data, keep, size)
    assert stream.head == data[:keep]
    assert stream.tail == data[max(keep, len(data) - keep) :]
    assert stream.dropped_bytes == max(0, len(data) - 2 * keep)
    assert (stream.whole == data) == (2 * keep >= len(data))


@pytest.mark.parametrize("keep", range(1, 12))
def test_a_cut_never_makes_text_look_like_binary_data(keep: int) -> None:
    stream = captured("aé漢🔑é漢🔑é漢🔑é漢🔑z".encode(), keep)
    assert stream.whole.decode().startswith("aé漢🔑"[: len(stream.head.decode())])
    assert stream.dropped_bytes > 0


@pytest.mark.parametrize("keep", [3, 10, 30, 60])
def test_trimming_is_the_same_as_keeping_less(keep: int) -> None:
    data = "é漢🔑".encode() * 8
    assert captured(data, 1000).trimmed(keep) == captured(data, keep)
    assert captured(data, 33).trimmed(3) == captured(data, 3)


def test_a_very_long_line_reaches_the_listener_in_parts() -> None:
    seen: list[str] = []
    capture = Capture(Redactor(), 10, seen.append)
    capture.feed(b"x" * 400_000 + b"\nlast")
    capture.close()
    assert "".join(seen) == "x" * 400_000 + "last"
    assert max(map(len, seen)) <= 16 * 1024
