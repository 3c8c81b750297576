"""`prompt_file("review.md").render(topic=…)`: prompts in files of their own, whose placeholders must all be filled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from ..core.calls import current_run
from ..core.sites import caller_site
from ..core.values import plain
from ..errors import InvalidInput, NotInAWorkflow, UnstorableValue

_WORKSPACE = ".hermes"
# An escaped opening, a whole placeholder, an opening that never closes.
_PLACEHOLDER = re.compile(r"(\\\{\{)|\{\{([^{}\n]*)\}\}|(\{\{)")


class PromptFile:
    """A text with `{{name}}` in it. It is read once, when it is first rendered; a changed file is a changed workflow.

    `folder` is that of the code that names it.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder

    def __repr__(self) -> str:
        return f"prompt_file({self.name!r})"

    @cached_property
    def text(self) -> str:
        """What stands in the file, with `\\n` at its line ends. Raises InvalidInput when it cannot be read."""
        path = find(self.name, self._folder, _root(self._folder))
        try:
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidInput(f"prompt file {self.name} is no UTF-8 text") from None
        except OSError as error:
            raise InvalidInput(f"prompt file {self.name}: {error.strerror}") from None

    def render(self, /, **values: Any) -> str:
        """The text with every `{{name}}` replaced: texts as they are, other values as JSON; `\\{{` stands for `{{`.

        What is put in is not looked at again. Raises InvalidInput naming every placeholder without a value, every
        value without a placeholder, and every `{{` that is neither, with their lines.
        """
        self._check(values)
        written = {name: _written(self.name, name, value) for name, value in values.items()}
        return _PLACEHOLDER.sub(lambda found: "{{" if found[1] else written[found[2].strip()], self.text)

    def _check(self, values: Mapping[str, Any]) -> None:
        wanted: dict[str, int] = {}
        wrong: list[str] = []
        for found in _PLACEHOLDER.finditer(self.text):
            line = self.text.count("\n", 0, found.start()) + 1
            if found[2] is not None and found[2].strip().isidentifier():
                wanted.setdefault(found[2].strip(), line)
            elif not found[1]:
                wrong.append(f"line {line}: {found[0]} is no placeholder")
        wrong += [f"line {line}: no value for {name}" for name, line in wanted.items() if name not in values]
        wrong += [f"there is no {{{{{name}}}}} in it" for name in values if name not in wanted]
        if wrong:
            raise InvalidInput(
                f"prompt file {self.name}: {'; '.join(wrong)}",
                hint="write {{name}} for a value, and \\{{ for the braces",
            )


def prompt_file(name: str) -> PromptFile:
    """A prompt in a file, named from the folder of the code that calls this, or from the workspace's root.

    Name it by a literal: a runner then knows that the file belongs to the workflow, keeps it among the run's sources,
    and loads the workflow again when it changes.
    """
    return PromptFile(name, Path(caller_site().code.co_filename).parent)


def find(name: str, folder: Path, root: Path | None) -> Path:
    """The file that `name` means. Raises InvalidInput when there is none."""
    if PurePath(name).is_absolute():
        raise InvalidInput(f"prompt_file({name!r}): name it relative to the workspace")
    places = [folder, *([root] if root else [])]
    for place in places:
        if (place / name).is_file():
            return place / name
    looked = " or ".join(dict.fromkeys(str(place) for place in places))
    raise InvalidInput(f"prompt_file({name!r}): no such file", hint=f"put it into {looked}")


def _root(folder: Path) -> Path | None:
    try:
        root = current_run("prompt_file()").root
    except NotInAWorkflow:
        # In a test of the prompt alone: the workspace around the code.
        return next((each for each in _upwards(folder) if (each / _WORKSPACE).is_dir()), None)
    return Path(root) if root else None


def _upwards(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.parents


def _written(file: str, name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(plain(value), ensure_ascii=False, indent=2)
    except (UnstorableValue, TypeError) as error:
        raise InvalidInput(f"prompt file {file}: {name} is no text and has no JSON: {error}") from None
