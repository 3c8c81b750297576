"""Redaction: what is replaced, in which forms, and what is left alone."""

from __future__ import annotations

import base64
import json
import math
import random
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_workflows.core.encoding import Plain
from hermes_workflows.core.redaction import RedactingStream, Redactor
from hermes_workflows.core.token_shapes import base64_core

AWKWARD = 'pa"ss\\wo/rd é+x9Zq& 🔑'
TOKEN = "Zx81-abcDEF_0123/45+6"
LINES = "first-line-0123\nsecond line\n\nthird-line-4567"
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + ("Ab3/" * 16 + "\n") * 8 + "-----END RSA PRIVATE KEY-----\n"
GITHUB = "ghp_" + "a1B2" * 9

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": json.dumps,
    "JSON in JSON": lambda s: json.dumps(json.dumps(s)),
    "JSON without escapes for letters": lambda s: json.dumps(s, ensure_ascii=False),
    "JSON with escaped slashes": lambda s: json.dumps(s).replace("/", "\\/"),
    "URL": lambda s: urllib.parse.quote(s, safe=""),
    "URL path": urllib.parse.quote,
    "URL form": urllib.parse.quote_plus,
    "URL in a URL": lambda s: urllib.parse.quote(urllib.parse.quote(s, safe=""), safe=""),
    "HTML": lambda s: s.replace("&", "&amp;").replace('"', "&quot;"),
    "JSON pointer": lambda s: s.replace("~", "~0").replace("/", "~1"),
}


def hidden(secret: str) -> Redactor:
    return Redactor({"PW": secret})


def base64_of(secret: str, before: int, after: int) -> str:
    return base64.b64encode(b"u" * before + secret.encode() + b"v" * after).decode()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", [AWKWARD, TOKEN, "🔑🔑🔑", LINES])
def test_a_secret_is_found_in_every_form(secret: str, form: str) -> None:
    text = f"before {FORMS[form](secret)} after"
    clean = hidden(secret).text(text)
    assert "[redacted:PW]" in clean
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert len(clean) <= len('before "\\""[redacted:PW]"\\"" after')


@pytest.mark.parametrize("after", range(3))
@pytest.mark.parametrize("before", range(3))
@pytest.mark.parametrize("secret", [AWKWARD, TOKEN, "1234"])
def test_base64_is_found_at_every_alignment(secret: str, before: int, after: int) -> None:
    encoded = base64_of(secret, before, after)
    # Characters that the secret shares with its neighbours are replaced, too.
    first, last = 8 * before // 6, math.ceil(8 * (before + len(secret.encode())) / 6)
    clean = f"{encoded[:first]}[redacted:PW]{encoded[last:]}"
    assert hidden(secret).text(encoded) == clean
    assert hidden(secret).text(encoded.replace("+", "-").replace("/", "_")) == clean
    assert hidden(secret).text(urllib.parse.quote(encoded, safe="")) == clean.replace("=", "%3D")


@pytest.mark.parametrize("width", [16, 20, 57, 64, 76])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n"])
def test_base64_in_lines_is_found(width: int, end: str) -> None:
    encoded = base64.b64encode(b"some text before it " * 3 + TOKEN.encode() + b" and after it" * 5).decode()
    lines = end.join(encoded[i : i + width] for i in range(0, len(encoded), width))
    clean = hidden(TOKEN).text(lines)
    assert "[redacted:PW]" in clean
    remains = clean.replace(end, "").replace("[redacted:PW]", "")
    assert len(encoded) - len(remains) >= len(TOKEN) * 4 // 3


def test_overlapping_occurrences_leave_nothing() -> None:
    clean = hidden("abcXabc").text("abcXabcXabcXabc")
    assert clean == "[redacted:PW]"


def test_a_match_is_replaced_whole_when_two_secrets_overlap() -> None:
    redactor = Redactor({"A": "secret-one-two", "B": "two-three-four"})
    assert redactor.text("<secret-one-two-three-four>") == "<[redacted:A]>"


def test_every_line_of_a_secret_with_several_lines_is_one() -> None:
    assert hidden(LINES).text("  | third-line-4567") == "  | [redacted:PW]"


def test_a_line_end_around_a_secret_does_not_hide_it() -> None:
    assert hidden("s3cr3t-value\n").text("<s3cr3t-value>") == "<[redacted:PW]>"


def test_an_empty_secret_replaces_nothing() -> None:
    assert Redactor({"EMPTY": "", "BLANK": " \n"}).text("some text") == "some text"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "0123456789abcdef"),
        ("DB_PASSWORD", "Tr0ub4dor&3"),
        ("PGPASSWORD", "correct-horse-battery"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("STORAGE_KEY", "/K7MDENGbPxRfiCYEXAMPLEKEYwJalrXUtnFEMI/"),
        ("GMAIL_PASS", "abcdefghijklmnop"),
        ("SENTRY_DSN", "https://0123abcd@sentry.example/1"),
        ("dbPassword", "x9x9x9x9x9"),
    ],
)
def test_variables_that_look_secret_are_hidden(name: str, value: str) -> None:
    assert Redactor({}, {name: value}).text(f"value={value};") == f"value=[redacted:{name}];"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_TOKEN", "short12"),
        ("API_TOKEN", "development"),
        ("API_TOKEN", "1234567890"),
        ("MAX_TOKENS", "2026-11-29"),
        ("TOKEN_FILE", "/run/secrets/token-1"),
        ("SSH_AUTH_SOCK", "/run/user/0/ssh-XXXX1a2b/agent.1234"),
        ("AUTH_PATH", "./config/auth.json"),
        ("HOME", "x9x9x9x9x9x9"),
        ("KEYBOARD", "x9x9x9x9x9x9"),
        ("AWS_ACCESS_KEY_COUNTRY", ""),
    ],
)
def test_ordinary_values_and_names_are_left_alone(name: str, value: str) -> None:
    text = f"value={value};"
    assert Redactor({}, {name: value}).text(text) == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"token {GITHUB}.", "token [redacted:github-token]."),
        (f'{{"out": "x\\n{GITHUB}"}}', '{"out": "x\\n[redacted:github-token]"}'),
        ("github_pat_" + "A1" * 30, "[redacted:github-token]"),
        ("glpat-" + "a1B2c" * 4, "[redacted:gitlab-token]"),
        ("xoxb-123456789012-abcdefABCDEF", "[redacted:slack-token]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted:aws-access-key]"),
        ("aws_secret_access_key = " + "wJalr/XUtn" * 4, "aws_secret_access_key = [redacted:aws-secret-key]"),
        ("sk-ant-api03-" + "a1B2-_" * 8, "[redacted:api-key]"),
        ("k=sk-" + "a1B2" * 12, "k=[redacted:api-key]"),
        ("q%3Dsk-" + "a1B2" * 12, "q%3D[redacted:api-key]"),
        ("AIza" + "a1B2c" * 7, "[redacted:google-api-key]"),
        ("npm_" + "a1B2" * 9, "[redacted:npm-token]"),
        ("pypi-" + "AgEIcHlwaS5vcmc" * 5, "[redacted:pypi-token]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP", "[redacted:jwt]"),
        ("x\\neyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP", "x\\n[redacted:jwt]"),
        (PEM, "[redacted:private-key]\n"),
        (json.dumps(PEM), '"[redacted:private-key]\\n"'),
        (urllib.parse.quote(PEM), "[redacted:private-key]%0A"),
        ("origin  https://u:t0ken@h/a (fetch)", "origin  https://u:[redacted:url-password]@h/a (fetch)"),
        ("https://0123456789abcdef0123@host/x", "https://[redacted:url-password]@host/x"),
        ("postgres:\\/\\/u:p4ss@db", "postgres:\\/\\/u:[redacted:url-password]@db"),
        ("u=https%3A%2F%2Fu%3Ap4ss%40host", "u=https%3A%2F%2Fu%3A[redacted:url-password]%40host"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic [redacted:authorization]"),
        ('"authorization": "Bearer 0123456789abcdef0123"', '"authorization": "Bearer [redacted:authorization]"'),
    ],
)  # fmt: skip
def test_well_known_shapes_are_replaced(text: str, clean: str) -> None:
    assert Redactor().text(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "task-2026-11-29-something-quite-long and risk-averse-people-with-long-words",
        "sk-learn-with-some-more-words",
        "https://git@github.com/owner/name and ssh://git@host",
        "git push https://x:${TOKEN}@host https://user:token@host https://x:{token}@host",
        "npm_config_registry=https://registry.example/ ghp_short eyJ.eyJ.x",
        "-----BEGIN PRIVATE KEY-----\n… the key …\n-----END PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----\n" + "Ab3/" * 16 + "\n-----END CERTIFICATE-----",
        "Authorization: Bearer $TOKEN",
        "a sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ],
)
def test_what_only_resembles_a_token_is_left_alone(text: str) -> None:
    assert Redactor().text(text) == text
    assert not Redactor().finds(text.encode())


@pytest.mark.parametrize("before", range(3))
@pytest.mark.parametrize(
    "token", [GITHUB, "glpat-" + "a1B2c" * 4, "sk-ant-api03-" + "a1B2" * 9, "AKIAIOSFODNN7EXAMPLE", PEM]
)
def test_well_known_shapes_are_found_inside_base64(token: str, before: int) -> None:
    encoded = base64.b64encode(b"x" * before + token.encode() + b" and more").decode()
    clean = Redactor().text(f'{{"auth": "{encoded}"}}')
    assert "[redacted:" in clean
    assert len(clean) < len('{"auth": ""}') + len("[redacted:aws-access-key]") + 20


def test_a_key_that_was_cut_off_is_replaced_as_far_as_it_goes() -> None:
    clean = Redactor().text("\n".join(PEM.splitlines()[:4]) + "\nnext line")
    assert clean == "[redacted:private-key]\nnext line"


def test_the_name_of_a_named_secret_wins_over_a_shape() -> None:
    assert Redactor({"MINE": GITHUB}).text(f"<{GITHUB}>") == "<[redacted:MINE]>"


def test_placeholders_survive() -> None:
    redactor = Redactor({"redacted": "redacted", "X": "[red", "KEY": TOKEN})
    once = redactor.text(f"redacted {TOKEN} https://u:{TOKEN}@h [redacted:KEY]")
    assert once == "[redacted:redacted] [redacted:KEY] https://u:[redacted:KEY]@h [redacted:KEY]"
    assert redactor.text(once) == once


def test_a_forged_placeholder_hides_nothing() -> None:
    assert hidden(TOKEN).text(f"[redacted:{TOKEN}]") == "[redacted:[redacted:PW]]"


def test_each_placeholder_is_counted_once() -> None:
    counts: Counter[str] = Counter()
    hidden(TOKEN).text(f"{TOKEN} {GITHUB} {TOKEN}", counts)
    assert counts == {"PW": 2, "github-token": 1}


def test_values_are_redacted_down_to_keys_bytes_and_numbers() -> None:
    redactor = Redactor({"PW": TOKEN, "PIN": "4821"})
    counts: Counter[str] = Counter()
    value: Plain = {"list": [TOKEN, {TOKEN: None}], "bytes": TOKEN.encode(), "pin": 4821, "other": 48215, "flag": True}
    assert redactor.plain(value, counts) == {
        "list": ["[redacted:PW]", {"[redacted:PW]": None}],
        "bytes": b"[redacted:PW]",
        "pin": "[redacted:PIN]",
        "other": 48215,
        "flag": True,
    }
    assert counts == {"PW": 3, "PIN": 1}


def test_two_keys_that_become_one_keep_their_values() -> None:
    redactor = Redactor({"A": "first-secret", "B": "other-secret"})
    assert redactor.plain({"first-secret": 1, "[redacted:A]": 2}) == {"[redacted:A]-2": 1, "[redacted:A]": 2}


def test_a_clean_value_is_the_same_object() -> None:
    value: Plain = {"text": "nothing here", "list": [1, 2.5, None, b"x"]}
    assert hidden(TOKEN).plain(value) is value


def test_a_text_that_was_once_without_secrets_is_looked_at_again_by_who_knows_more() -> None:
    value: Plain = {"name": "swordfish", "4711": ["swordfish"]}
    redactor = hidden(TOKEN)
    assert redactor.plain(value) is value
    assert redactor.plain(value) is value
    assert redactor.extended({"NEW": "swordfish"}).plain(value) == {
        "name": "[redacted:NEW]",
        "4711": ["[redacted:NEW]"],
    }
    assert redactor.plain({"name": TOKEN, "swordfish": b"swordfish"}) == {
        "name": "[redacted:PW]",
        "swordfish": b"swordfish",
    }


_TEXTS = st.sampled_from(["name", "swordfish", "a sword", "fish", "x" * 65, TOKEN, f"is {TOKEN}", GITHUB, "4711"])
_VALUES = st.recursive(
    _TEXTS | st.sampled_from([None, True, 4711, 1.5, b"fish", TOKEN.encode()]),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(_TEXTS, each, max_size=3),
)


@given(st.lists(_VALUES, max_size=6))
def test_what_was_looked_at_before_changes_nothing(values: list[Plain]) -> None:
    redactor = Redactor({"PW": TOKEN, "PIN": "4711"})
    assert [redactor.plain(value) for value in values] == [
        Redactor({"PW": TOKEN, "PIN": "4711"}).plain(value) for value in values
    ]


def test_of_the_texts_that_were_looked_at_few_and_short_ones_are_remembered() -> None:
    redactor = hidden(TOKEN)
    for number in range(5000):
        redactor.plain([f"text {number}", "long " * 20 + str(number)])
    assert sum(map(len, redactor._known)) < 30_000


def test_extended_knows_old_and_new_secrets() -> None:
    redactor = Redactor({"A": "first-secret"}, {"X_TOKEN": "env-secret-1"})
    more = redactor.extended({"A": "second-secret", "B": "other-secret"})
    assert more.text("first-secret second-secret other-secret env-secret-1") == (
        "[redacted:A] [redacted:A] [redacted:B] [redacted:X_TOKEN]"
    )
    assert redactor.text("second-secret") == "second-secret"


def test_finds_says_whether_bytes_hold_a_secret() -> None:
    redactor = hidden(TOKEN)
    assert redactor.finds(b"\xff\xfe" + TOKEN.encode())
    assert redactor.finds(b"x" * 3_000_000 + TOKEN.encode() + b"x" * 3_000_000)
    assert not redactor.finds(b"x" * 3_000_000)
    assert not redactor.finds(b"[redacted:PW]")


def test_what_is_no_utf8_is_redacted_and_kept() -> None:
    redactor = Redactor({"PW": "caf\udce9-secret"})
    assert redactor.data(b"\xff caf\xe9-secret \xf0") == b"\xff [redacted:PW] \xf0"
    assert redactor.text("\ud800 text") == "\ud800 text"


def test_a_secret_is_not_shown_by_the_redactor_itself() -> None:
    redactor = hidden(TOKEN)
    assert TOKEN not in repr(redactor)
    assert "PW" in repr(redactor)


# -- streams -----------------------------------------------------------------------------------------------------


def streamed(redactor: Redactor, data: bytes, sizes: Iterator[int]) -> tuple[bytes, RedactingStream]:
    stream, out, at = redactor.stream(), b"", 0
    while at < len(data):
        size = next(sizes)
        out += stream.feed(data[at : at + size])
        at += size
    return out + stream.close(), stream


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_secrets_across_the_borders_of_pieces_are_found(size: int) -> None:
    redactor = Redactor({"PW": AWKWARD, "ML": LINES})
    data = f"one {AWKWARD}\n{json.dumps(AWKWARD)} {base64_of(AWKWARD, 1, 1)}\n{LINES}\n{PEM}https://u:pw9@h".encode()
    clean, stream = streamed(redactor, data, iter(lambda: size, 0))
    assert clean == redactor.data(data)
    assert stream.counts == {"PW": 3, "ML": 1, "private-key": 1, "url-password": 1}


def hostile_piece(rng: random.Random) -> bytes:
    secret = rng.choice([AWKWARD, TOKEN, LINES]).encode()
    encoded = base64.b64encode(b"x" * rng.randrange(80) + secret + b"y" * rng.randrange(90))
    width = rng.choice([16, 20, 33, 76])
    return rng.choice(
        [
            secret,
            secret[: rng.randrange(len(secret))],
            json.dumps(secret.decode()).encode(),
            encoded,
            b"\n".join(encoded[i : i + width] for i in range(0, len(encoded), width)),
            PEM.encode()[: rng.randrange(len(PEM) + 1)],
            b"[redacted:PW]",
            b"https://u:" + secret + b"@h",
            rng.choice([b"sk-", b"ghp_", b"eyJ", b"Authorization: Bearer "]) + b"a1B2" * rng.randrange(2, 12),
            b"x" * rng.choice([1, 100, 1500]),
            bytes(rng.choices(b'abAB12 \r\n/+:@"\\[]-=', k=rng.randrange(1, 60))),
        ]
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_result_does_not_depend_on_where_pieces_were_cut(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # With the real sizes, only megabytes of text would ever be cut inside a line.
    monkeypatch.setattr("hermes_workflows.core.redaction._BLOCK", 300)
    rng = random.Random(seed)
    redactor = Redactor({"PW": AWKWARD, "T": TOKEN, "ML": LINES})
    redactor.reach = 2500
    data = b"".join(hostile_piece(rng) for _ in range(rng.randrange(1, 60)))
    largest = rng.choice([1, 3, 30, 400, 5000])
    counts: Counter[str] = Counter()
    whole = redactor.scrub(data, 0, counts)
    clean, stream = streamed(redactor, data, iter(lambda: rng.randrange(1, largest + 1), 0))
    assert clean == whole
    assert stream.counts == counts
    assert redactor.scrub(whole, 0) == whole


def test_whole_lines_pass_at_once() -> None:
    stream = hidden(LINES).stream()
    assert stream.feed(b"a line\nthe beginning of ") == b"a line\n"
    assert stream.feed(b"the next\n") == b"the beginning of the next\n"
    assert stream.feed(b"first-line-0123\n") == b""


def test_a_line_without_an_end_is_held_back_in_bounded_memory() -> None:
    stream = hidden(TOKEN).stream()
    passed = fed = 0
    for _ in range(64):
        passed += len(stream.feed(b"z" * 65536))
        fed += 65536
        assert fed - passed < 512 * 1024
    assert passed + len(stream.close()) == fed


def test_a_secret_far_into_one_long_line_is_found() -> None:
    data = b"z" * 700_000 + TOKEN.encode() + b"z" * 700_000
    clean, stream = streamed(hidden(TOKEN), data, iter(lambda: 10_000, 0))
    assert clean == b"z" * 700_000 + b"[redacted:PW]" + b"z" * 700_000
    assert stream.counts == {"PW": 1}


@pytest.mark.parametrize("empty", ["", " ", "\n"])
def test_a_secret_of_white_space_is_none(empty: str) -> None:
    assert Redactor({"NOTHING": empty}).text(f"a{empty}b") == f"a{empty}b"


def test_a_short_secret_is_found_in_clear_and_not_in_every_base64() -> None:
    assert Redactor({"PIN": "7q"}).text("7q N3E=") == "[redacted:PIN] N3E="


@pytest.mark.parametrize("secret", ["pw?~pw?~pw", "pw>>pw>>pw"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_both_alphabets_of_base64_are_one(secret: str, encode: Callable[[bytes], bytes]) -> None:
    for before in (b"", b"a", b"ab"):
        assert "[redacted:NAME]" in Redactor({"NAME": secret}).text(encode(before + secret.encode()).decode())


def test_a_secret_that_is_no_unicode_is_found() -> None:
    secret = "\ud800xyz-secret"
    assert Redactor({"NAME": secret}).text(f"a {secret} b") == "a [redacted:NAME] b"


def test_the_middle_of_encoded_text_is_no_beginning_of_a_token() -> None:
    # What stands before it decides how it is read; here nothing, or nothing of base64, does.
    core = base64_core(b"ghp_" + b"a1" * 16, 1).decode()
    assert [Redactor().text(before + core) for before in ("", "!")] == [core, "!" + core]


def test_a_name_that_is_told_again_makes_no_other_redactor() -> None:
    redactor = Redactor({"NAME": "hunter2-hunter2"})
    assert redactor.extended({"NAME": "hunter2-hunter2"}) is redactor


def test_a_text_that_shows_another_token_at_each_look_is_looked_at_four_times() -> None:
    # Each of these begins a word only when the one before it is gone, and may be 4,096 characters long.
    tokens = "".join("sk-" + "a1" * 2048 for _ in range(6))
    assert Redactor().text(tokens) == "[redacted:api-key]" * 4 + tokens[4 * 4099 :]
