"""Paths and refs out of anybody's names."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests import hostile

from hermes_workflows.core.names import (
    MAX_KEY,
    check_name,
    check_run_id,
    clean_key,
    fan_out,
    is_one_line,
    run_component,
    slug,
    source_paths,
)
from hermes_workflows.errors import InvalidInput

DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}

# Letters that make trouble together: dots, case, dashes, digits, slashes, what git, Windows and macOS treat apart.
NASTY = st.text(st.sampled_from("aAbB.-_0159 /\\~:*?[@{}^\x00\n\u0301éÉ日😀ßſK\ud800"), max_size=12)
ENDINGS = ("", ".json", ".lock", ".start", ".attempt-1", ".late-3", ".", "..", " ")
WORDS = st.builds(
    lambda word, end: word + end,
    st.sampled_from(["con", "Aux", "request", "a", "git", ".git", ".."]),
    st.sampled_from(ENDINGS),
)
NAMES = st.one_of(NASTY, WORDS, st.text(max_size=120), hostile.NAMES, hostile.TEXTS)


def is_safe_component(name: str) -> bool:
    """The rules of git, Windows and FORMAT §3, written down a second time."""
    return bool(
        re.fullmatch(r"[a-z0-9_][a-z0-9._-]*", name)
        and len(name) <= 100
        and ".." not in name
        and not name.endswith((".", ".lock"))
        and name.split(".")[0] not in DEVICES
    )


@settings(deadline=None)
@given(NAMES)
def test_every_name_becomes_a_component_that_is_safe_everywhere(name: str) -> None:
    component = slug(name)
    assert is_safe_component(component)
    assert len(component) <= 80
    assert component not in {"request", "response", "start", "fired"}
    assert not re.search(r"\.(json|start|attempt-\d+|late-\d+)$", component)


@settings(deadline=None)
@given(NAMES)
def test_a_component_stays_as_it_is(name: str) -> None:
    assert slug(slug(name)) == slug(name)


@settings(deadline=None)
@given(NAMES, NAMES)
def test_two_names_never_share_a_component(one: str, other: str) -> None:
    assume(unicodedata.normalize("NFC", one) != unicodedata.normalize("NFC", other))
    assert slug(one) != slug(other)


@settings(deadline=None)
@given(st.lists(NASTY, min_size=2, max_size=4, unique_by=lambda name: unicodedata.normalize("NFC", name)))
def test_no_two_components_meet_on_a_disk_that_folds_case(names: list[str]) -> None:
    folded = {slug(name).casefold() for name in names}
    assert len(folded) == len(names)


@pytest.mark.parametrize(
    "name", ["draft", "draft-2", "a.b_c-d", "0", "_private", "result", "run", "x" * 80, "2026-11-29"]
)
def test_a_safe_name_is_its_own_component(name: str) -> None:
    assert slug(name) == name


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("Draft", "draft-"),
        ("Café au lait", "cafe-au-lait-"),
        ("con", "con-"),
        ("aux.txt", "aux-txt-"),
        ("Report.v2", "report.v2-"),
    ],
)
def test_a_changed_name_stays_readable(name: str, readable: str) -> None:
    assert re.fullmatch(re.escape(readable) + "[g-z]{12}", slug(name))


@pytest.mark.parametrize(
    "name", ["", "..", ".git", "😀", "日" * 300, "-x", "a..b", "x.", "x.lock", "x.json", "request", "x.attempt-12"]
)
def test_a_hostile_name_gets_a_digest(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*-[g-z]{12}", slug(name))


def test_accents_written_in_two_ways_are_one_name() -> None:
    assert slug("cafe\u0301") == slug("caf\u00e9") != slug("cafe")


def test_components_are_the_same_in_every_release() -> None:
    assert slug("Draft") == "draft-yvzhjyzmqwzn"
    assert slug("日本語") == "x-qqqhgtyxwqmy"
    assert run_component("WF_A") == "wf_a-knxtkhjjrrpy"


def test_the_newest_accents_do_not_move_a_name_when_python_is_upgraded() -> None:
    # Combining marks of Unicode 15, which only Python 3.12 and later put in order.
    assert slug("a\U0001e4ef\U0001e4ee") == "a-jjgtrnrxhxmy"
    assert slug("a\U0001e4ee\U0001e4ef") == "a-wvsxgjjwywth"


def test_a_key_is_cleaned_component_by_component() -> None:
    assert clean_key("parallel/docs/draft") == "parallel/docs/draft"
    assert clean_key("/a//b/") == "a/b"
    assert clean_key("a/../B") == f"a/{slug('..')}/{slug('B')}"
    assert clean_key(clean_key("Ä/x.json")) == clean_key("Ä/x.json")


@pytest.mark.parametrize("key", ["", "/", "///", "a/" * MAX_KEY])
def test_a_key_that_names_nothing_or_too_much_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput):
        clean_key(key)


def test_a_key_that_is_no_text_is_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidInput, match="not int") as refusal:
        clean_key(5)  # type: ignore[arg-type]
    assert "key=str" in (refusal.value.hint or "")


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("tick-99", "tick-99"),
        ("tick-100", "tick-1xx/tick-100"),
        ("tick-250", "tick-2xx/tick-250"),
        ("tick-12345", "tick-123xx/tick-12345"),
        ("tick-0250", "tick-2xx/tick-0250"),
        ("tick-0001", "tick-0001"),
        ("250", "2xx/250"),
        ("a-100/b-7/c-200", "a-1xx/a-100/b-7/c-2xx/c-200"),
        ("v1.250", "v1.2xx/v1.250"),
        ("250-a", "250-a"),
    ],
)
def test_numbered_siblings_lie_in_folders_of_a_hundred(key: str, path: str) -> None:
    assert fan_out(key) == path


KEYS = st.lists(st.from_regex(r"(a-|b|1)?[0-9]{1,4}(xx)?", fullmatch=True), min_size=1, max_size=4).map("/".join)


@settings(deadline=None)
@given(KEYS, KEYS)
def test_two_keys_never_share_a_path(one: str, other: str) -> None:
    assume(one != other)
    assert fan_out(one) != fan_out(other)


def test_no_folder_of_ten_thousand_siblings_holds_more_than_a_hundred() -> None:
    folders = Counter(fan_out(f"tick-{n}").rpartition("/")[0] for n in range(10_000))
    assert max(folders.values()) == 100
    assert len(folders) == 100


@pytest.mark.parametrize("run_id", ["a", "wf_launch", "WF.2", "0", "a" * 100, "con", "a..b", "x.lock", "a."])
def test_an_id_is_taken_as_given(run_id: str) -> None:
    assert check_run_id(run_id) == run_id


@pytest.mark.parametrize("run_id", ["", ".a", "-a", "_a", "a b", "a/b", "é", "a\n", "a" * 101, "a:b", "\ud800"])
def test_a_bad_id_is_refused_with_what_is_allowed(run_id: str) -> None:
    with pytest.raises(InvalidInput, match="is not a run id") as refusal:
        check_run_id(run_id)
    assert "letters" in (refusal.value.hint or "")
    assert len(refusal.value.message) < 130


RUN_IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True)
TROUBLE = st.sampled_from(["con", "CON", "Con", "aux.1", "a..b", "x.lock", "a.", "wf_a", "WF_A", "Wf_a", "a" * 100])


@settings(deadline=None)
@given(st.one_of(RUN_IDS, TROUBLE), st.one_of(RUN_IDS, TROUBLE))
def test_two_ids_never_meet_in_a_ref_or_folder(one: str, other: str) -> None:
    assume(one != other)
    assert is_safe_component(run_component(one))
    assert run_component(one).casefold() != run_component(other).casefold()


@pytest.mark.parametrize("run_id", ["wf_launch", "0", "a-b.c", "request", "x.start", "a" * 100])
def test_a_lower_case_id_names_its_ref(run_id: str) -> None:
    assert run_component(run_id) == run_id


@settings(deadline=None)
@given(st.lists(NAMES, max_size=4).map("/".join))
def test_a_key_is_refused_or_made_of_safe_components_and_never_leaves_its_folder(key: str) -> None:
    if not key.replace("/", ""):
        return
    safe = "/".join(slug(part) for part in key.split("/") if part)
    if len(safe) > MAX_KEY:
        with pytest.raises(InvalidInput, match="bytes"):
            clean_key(key)
        return
    cleaned = clean_key(key)
    assert all(map(is_safe_component, cleaned.split("/")))
    assert clean_key(cleaned) == cleaned
    assert all(is_safe_component(part) for part in fan_out(cleaned).split("/"))


@settings(deadline=None)
@given(NAMES)
def test_a_name_that_is_kept_as_it_is_written_is_one_line_or_refused(name: str) -> None:
    if not is_one_line(name):
        with pytest.raises(InvalidInput) as refusal:
            check_name(name, "signal")
        assert refusal.value.message.isprintable()
    elif name.replace("/", ""):
        assert check_name(name, "signal") == name
        name.encode()
        assert len(name.splitlines()) <= 1
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", name)


PARTS = NAMES.filter(lambda part: part not in ("", ".", "..") and "/" not in part and "\0" not in part)
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


def portable(part: str) -> bool:
    """What git refuses on HFS+ and NTFS, and what Windows makes another name of, written down a second time."""
    seen = re.sub("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]", "", part).lower()
    bare = seen.split(":")[0].split("\\")[0].rstrip(" .")
    return (
        bare not in ("", ".git", "git~1", ".gitmodules", ".gitattributes")
        and re.split(r"[. ]", seen)[0] not in DEVICES
        and not re.search(r'[\x00-\x1f<>:"|?*\\]', part)
        and part.rstrip(" .") == part
        and len(part.encode()) <= 255
    )


@settings(deadline=None)
@given(st.lists(PATHS, min_size=1, max_size=4, unique=True))
def test_a_projects_files_have_names_that_every_clone_can_hold_and_that_never_meet(paths: list[str]) -> None:
    names = source_paths(paths)
    assert list(names) == paths
    assert all(portable(part) for name in names.values() for part in name.split("/"))
    assert len({unicodedata.normalize("NFC", name).casefold() for name in names.values()}) == len(paths)


@pytest.mark.parametrize("path", ["flows.py", "My Flows/Prüfung v2.md", "日本/__init__.py", "a.git/x.py", ".hidden/x"])
def test_a_file_that_can_lie_everywhere_keeps_its_name(path: str) -> None:
    assert source_paths([path]) == {path: path}


@pytest.mark.parametrize(
    "part", [".git", ".GiT ", "git~1", ".g\u200cit", "aux.py", "COM1", "a:b", "x.", "a\\b", "a\nb"]
)
def test_a_file_that_some_system_cannot_hold_gets_another_name(part: str) -> None:
    (name,) = source_paths([f"prompts/{part}"]).values()
    assert re.fullmatch(r"prompts/[a-z0-9][a-z0-9._-]*-[g-z]{12}", name)


def test_files_that_differ_by_case_alone_are_told_apart() -> None:
    names = source_paths(["p/Draft.md", "p/draft.md", "p/other.md"])
    assert names["p/other.md"] == "p/other.md"
    assert len({name.lower() for name in names.values()}) == 3
