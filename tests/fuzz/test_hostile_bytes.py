"""Whatever bytes a parser gets: a value, or the one error that it documents; and work that the bytes are worth.

The targets are those of the fuzzer, see `make fuzz`. What it has found stays here, as the smallest input.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import struct
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from dulwich.pack import write_pack_index_v2
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fuzz.mutating import WORDS, spoilt
from tests.fuzz.runs import Given
from tests.fuzz.said import Draft, codec
from tests.fuzz.stored import DISK
from tests.fuzz.target import joined
from tests.fuzz.targets import TARGETS

from hermes_workflows.core.values import ValueMismatch, check_schema
from hermes_workflows.errors import IntegrityError
from hermes_workflows.store.largest import LARGEST, TooLarge
from hermes_workflows.store.objects import Objects
from hermes_workflows.store.pack_file import PackFile
from hermes_workflows.store.trees import Trees

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "25"))

# All of them in `make soak`: a megabyte of each kind takes minutes.
WORST = () if "FUZZ_EXAMPLES" in os.environ else ("json", "loose", "run")


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_sound_is_read(name: str) -> None:
    for seed in TARGETS[name].seeds():
        TARGETS[name].consume(seed)


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_sound_is_a_value_or_the_documented_error(name: str) -> None:
    target = TARGETS[name]
    seeds = target.seeds()

    @settings(max_examples=EXAMPLES, deadline=None, database=None)
    @given(st.sampled_from(seeds), st.sampled_from(seeds), st.randoms(use_true_random=False))
    def check(seed: bytes, other: bytes, chance: random.Random) -> None:
        target.consume(spoilt(seed, other, chance.randrange))

    check()


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_a_value_or_the_documented_error(name: str) -> None:
    target = TARGETS[name]

    @settings(max_examples=EXAMPLES, deadline=None, database=None)
    @given(st.binary(max_size=300) | st.lists(st.sampled_from(WORDS), max_size=6).map(b"".join))
    @example(b"")
    def check(data: bytes) -> None:
        target.consume(data)

    check()


# Each of these was a crash: what came out stands beside it.
FOUND = [
    ("receipt", b"run.json\n", "InvalidInput instead of the one error of receipts"),
    ("receipt", b"\xe9\n{}", "UnicodeEncodeError: a message that quotes a name of bytes"),
    ("commit", b"tree 00\nauthor \ncommitter a b c\n", "an id of one byte"),
    ("pack", b"\xfftOc\0\0\0\x02\n\0\nPACK", "AssertionError, struct.error, TypeError of dulwich"),
    ("refs", b"1111111111111111111111111111111111111111 refs/runs/\xff", "UnicodeDecodeError"),
    ("refs", b"1111111111111111111111111111111111111111 refs/runs/\0", "ValueError: embedded null byte"),
    ("run", joined(b"x", b"100644 runs/a/b\n", b"40000 runs/a/b\n"), "AssertionError: a file and a folder of one name"),
    (
        "run",
        joined(b"x", b"100644 runs/2026-01-01/a\n", b"40000 runs/2026-01-01/b\n"),
        "AssertionError: a file as folder",
    ),
    ("agent-codex", b'{"answer": %s, "title": null}' % (b"9" * 400), "JSONDecodeError: no float beside a null"),
    ("agent-opencode", b'{"type": "error", "error": {"data": "x"}}', "AttributeError: 'str' has no 'get'"),
    ("agent-opencode", b'{"type":"step_finish","part":{"tokens":{},"cost":%s}}' % (b"9" * 400), "ValidationError"),
    ("agent-codex", b'{"type":"turn.completed","usage":{"input_tokens":-1}}', "ValidationError"),
    ("agent-gemini", b'{"response":"x","stats":{"models":{"m":{"tokens":"x"}}}}', "AttributeError"),
    ("agent-hermes", joined(b"42", b"", b'{"input_tokens":"x"}'), "TypeError: int and str"),
    ("agent-hermes", joined(b"42", b"", b"[" * 5000), "RecursionError"),
    ("agent-hermes", joined(b"42", b"", b'{"model":"\\ud800"}'), "ValidationError of a half character"),
    ("agent-llm", joined(b"42", b"Token usage: %s input, 1 output" % (b"1" * 5000)), "ValueError: thousands of digits"),
    ("agent-command", b'{"type":"error","error":"%s"}' % (b"[" * 5000), "RecursionError"),
    ("answer", b'"(a{99999999999})"', "OverflowError of the format regex"),
    ("recorded-answers", b'[{"schema":"x","output":1}]', "ValidationError"),
    ("question", joined(b'{"type":"boolean"}', b"", b"add /x"), "TypeError: the form of a value that is none"),
    ("question", joined(b'{"type":"string","format":[]}'), "TypeError: unhashable"),
    (
        "request",
        b"GET /nowhere?\xf0 HTTP/1.1\r\nHost: 127.0.0.1:8765\r\n\r\n",
        "UnicodeDecodeError of the page for errors",
    ),
    ("request", b"POST / HTTP/1.1\r\nHost: 127.0.0.1:8765\r\nOrigin: http://[]\r\n\r\n", "ValueError of urlsplit"),
    ("registry", b'{"keep_runs":%s}' % (b"9" * 5000), "ValueError: thousands of digits"),
    ("registry", b'{"agents":{"a":{"preset":"codex","timeout":%s}}}' % (b"9" * 400), "OverflowError"),
    ("registry", b'{"dbs":{"default":"\\u0000"}}', "ValueError: embedded null byte"),
    ("registry", b'{"dbs":{"default":"\\ud800"}}', "UnicodeEncodeError"),
    ("registry", b"[" * 100_000, "RecursionError"),
    ("note", b"[" * 100_000, "RecursionError"),
    ("row", b'["host",1]', "TypeError: a lease without a whole holder"),
    ("row", b'["host","../x","1"]', "a path made of what is no pid"),
    ("row", b"$[[{}]]" + b"[" * 100_000, "RecursionError"),
    ("row", b'${"a":{"$":1}}', "TypeError: base64 of a number"),
]


@pytest.mark.parametrize(("name", "data"), [each[:2] for each in FOUND], ids=[f"{n}: {why}" for n, _, why in FOUND])
def test_what_was_found_once(name: str, data: bytes) -> None:
    TARGETS[name].consume(data)


def test_the_largest_inputs_take_no_more_memory_than_the_kernel_gives() -> None:
    """In a process of its own: deep nesting, millions of digits, endless lists, and a gigabyte that zlib has packed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.worst", *WORST],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.stdout.endswith("done\n"), done.stdout[-300:] + done.stderr[-2000:]


def bomb(objects: Given, *, levels: int, times: int) -> bytes:
    """A tree of trees that each name the next one `times` times: a few objects, and no end of folders."""
    oid = objects.add(b"blob", b"{}")
    mode = b"100644"
    for _ in range(levels):
        names = (b"%s %03d\0%s" % (mode, number, oid) for number in range(times))
        oid, mode = objects.add(b"tree", b"".join(names)), b"40000"
    return oid


@pytest.mark.parametrize(("levels", "times"), [(9, 100), (250, 2), (400, 1)])
def test_a_tree_that_never_ends_is_no_run(levels: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_workflows.store.trees._MOST", 5000)
    objects = Given()
    trees = Trees(lambda oid: objects.read(oid, b"tree"))
    root = trees.open(bomb(objects, levels=levels, times=times))
    for walk in (lambda: trees.walk(root), lambda: trees.compare(None, root), lambda: trees.compare(root, None)):
        with pytest.raises(IntegrityError, match=r"more than|folders in folders"):
            for _ in walk():
                pass
    with pytest.raises(IntegrityError, match=r"more than|folders in folders"):
        trees.pick(root, ("x",), objects.add)
    assert objects.reads <= 4 * 5000


def test_a_wrong_answer_has_no_more_reasons_than_somebody_reads() -> None:
    asked = codec(list[Draft] | None)
    with pytest.raises(ValueMismatch) as refused:
        asked.from_plain([[]] * 11_001)
    assert refused.value.errors == [("", "does not fit in 11,001 places")]
    assert len(check_schema([[]] * 5000, asked.json_schema)) == 201


def test_of_several_choices_one_alone_must_fit() -> None:
    either = {"oneOf": [{"type": "integer"}, {"type": "number"}]}
    assert check_schema(1.5, either) == []
    assert check_schema(1, either)
    assert check_schema("x", either)


def test_reasons_end_where_they_are_too_long_for_a_receipt() -> None:
    with pytest.raises(ValueMismatch) as refused:
        codec(dict[str, int]).from_plain({"k" * 40_000: "x", "l" * 40_000: "x"})
    assert [reason[:20] for _, reason in refused.value.errors][1:] == ["and there are more r"]


def test_a_number_that_no_float_holds_fits_no_multiple() -> None:
    assert check_schema(10**400, {"type": "number", "multipleOf": 0.5})


def entry(kind: int, body: bytes, base: bytes = b"") -> bytes:
    """What stands in a pack: kind and size, where the base is, the deflated body."""
    size, head = len(body) >> 4, bytearray([kind << 4 | len(body) & 15])
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    return bytes(head) + base + zlib.compress(body)


def packed(folder: Path, *entries: bytes) -> PackFile:
    """A pack of these, named by their numbers from 1 on."""
    body, places = b"PACK" + struct.pack(">LL", 2, len(entries)), []
    for number, each in enumerate(entries, 1):
        places.append((bytes([number]) * 20, len(body), 0))
        body += each
    body += hashlib.sha1(body).digest()
    index = io.BytesIO()
    write_pack_index_v2(index, places, body[-20:])
    (folder / "pack-x.pack").write_bytes(body)
    (folder / "pack-x.idx").write_bytes(index.getvalue())
    return PackFile(str(folder / "pack-x.idx"))


def test_what_says_that_it_is_too_large_is_not_unpacked(tmp_path: Path) -> None:
    huge = bytes([0xB0, 0x80, 0x80, 0x80, 0x80, 0x01]) + zlib.compress(b"")
    with closing(packed(tmp_path, huge)) as pack, pytest.raises(TooLarge):
        pack.read(b"\1" * 20)


def test_a_chain_of_deltas_makes_no_more_than_git_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_workflows.store.pack_file._MOST_MADE", 1000)
    # From 272 bytes to 272 bytes: one copy of all of them.
    copied = b"\x90\x02\x90\x02" + b"\xb0\x10\x01"
    chain = [entry(7, copied, base=bytes([number]) * 20) for number in range(1, 9)]
    with closing(packed(tmp_path, entry(3, bytes(272)), *chain)) as pack:
        with pytest.raises(TooLarge):
            pack.read(b"\x09" * 20)
        assert pack.read(b"\3" * 20) == (b"blob", bytes(272))


def test_a_loose_object_is_not_unpacked_beyond_what_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "objects" / "11"
    folder.mkdir(parents=True)
    (folder / ("11" * 19)).write_bytes(zlib.compress(b"blob %d\0" % LARGEST + bytes(LARGEST + 32), 1))
    with pytest.raises(TooLarge, match="67,108,864"):
        Objects(tmp_path, DISK).read(b"\x11" * 20, b"blob")


def test_a_delta_that_unpacks_to_gigabytes_is_not_applied(tmp_path: Path) -> None:
    """Sixty kilobytes, of which each three copy as many again; and it says so."""
    whole, copies = b"x" * 65535, 20_000
    sizes = b"\xff\xff\x03" + bytes([0x80 | 65535 * copies >> shift & 0x7F for shift in (0, 7, 14, 21)])
    delta = sizes + bytes([65535 * copies >> 28]) + b"\xb0\xff\xff" * copies
    first = entry(3, whole)
    second = entry(7, delta, base=b"\1" * 20)
    with closing(packed(tmp_path, first, second)) as pack:
        assert pack.read(b"\1" * 20) == (b"blob", whole)
        with pytest.raises(TooLarge, match="67,108,864"):
            pack.read(b"\2" * 20)
