"""Where in the author's code a run failed, out of what its end has recorded."""

from __future__ import annotations

import pytest

from hermes_workflows.core.tracebacks import place_in

OWN = 'File "/site/src/hermes_workflows/core/live.py", line 9, in step'
LIBRARY = 'File "/usr/lib/python3.11/asyncio/tasks.py", line 489, in wait_for'


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        (['File "/home/flows/visit.py", line 21, in visit'], "/home/flows/visit.py:21"),
        (['File "/home/flows/visit.py", line 21, in visit', OWN, LIBRARY], "/home/flows/visit.py:21"),
        (['File "/home/a.py", line 1, in a', 'File "/home/b.py", line 2, in b'], "/home/b.py:2"),
        (['File "/site/src/hermes_workflows/examples/draft.py", line 5, in f'],
         "/site/src/hermes_workflows/examples/draft.py:5"),
        ([OWN, LIBRARY, 'File "<string>", line 1, in <module>'], None),
    ],
)  # fmt: skip
def test_the_innermost_frame_of_the_author_is_the_place(frames: list[str], place: str | None) -> None:
    text = "Traceback (most recent call last):\n" + "".join(f"  {frame}\n    x\n" for frame in frames)
    assert place_in(f'{text}ValueError: File "no.py"\n') == place


def test_a_group_names_a_line_of_what_it_holds() -> None:
    assert place_in('  | Traceback\n    |   File "/home/flows/visit.py", line 7, in one\n') == "/home/flows/visit.py:7"


def test_without_a_traceback_there_is_no_place() -> None:
    assert place_in(None) is None
