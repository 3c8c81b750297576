"""What calls said: drafts, which are texts in their outputs, and transcripts of how they came to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .receipts import Receipt

# Characters of a draft that are shown: the whole of it is in the receipt.
_TEXT = 20_000


class Text(NamedTuple):
    """A text that a call said or was shown: `title` is the place in its output, or the name of a stream."""

    title: str
    text: str


def transcript_of(receipt: Receipt, most: int | None = None, *, streams: bool = False) -> Iterator[Text]:
    """What was said while a call was executed, a stream or file at a time, cut in the middle to `most` characters.

    What a command printed is its output; with `streams` it is told as well.
    """
    output, told = receipt.output, receipt.execution.transcript or {}
    if streams and receipt.kind == "bash" and isinstance(output, Mapping):
        told = {**told, **{name: output[name] for name in ("stdout", "stderr") if isinstance(output.get(name), str)}}
    for name in ("prompt", "stdout", "stderr", "traceback"):
        if isinstance(text := told.get(name), str) and text.strip():
            yield Text(name, shortened(text, most))
    files = told.get("files")
    for name, text in files.items() if isinstance(files, Mapping) else ():
        yield Text(str(name), shortened(str(text), most))


def texts_of(value: Any) -> tuple[Text, ...]:
    """Texts of more than one line in a value and in the fields of its first level."""
    return tuple(_texts(value))


def _texts(output: Any, place: str = "") -> Iterator[Text]:
    if isinstance(output, str):
        if "\n" in output.strip():
            yield Text(place, shortened(output, _TEXT))
    elif isinstance(output, Mapping) and not place:
        for name, value in output.items():
            if isinstance(value, str):
                yield from _texts(value, str(name))


def shortened(text: str, most: int | None) -> str:
    """A text without its middle, when it has more than `most` characters."""
    if most is None or len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters …]\n{text[-half:]}"
