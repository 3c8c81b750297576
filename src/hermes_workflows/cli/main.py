"""`hermes-workflows`: the one entry point, for the installed script, `python -m`, and `name.run()` in a file.

`status` and `list` in a script are asked again and again. They are answered here when they can be, before even click
is imported, which takes longer than all the rest of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

# These decide whatever they are asked for; their own modules see to those who decide only sometimes.
_DECIDING = ("fork", "replay", "reproduce", "retry")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (DESIGN §5). `argv` is without the program's name."""
    if _is_loading():
        # A file that ends with `name.run()` was imported to be found, not to be run.
        return 0
    _fill_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in ("status", "list"):
        # Not above: nobody else waits for what knows of runs.
        from . import quick

        if (document := quick.answer(arguments)) is not None:
            return _write(document)
    own_process = argv is None or _is_script(arguments)
    if own_process and arguments and arguments[0] in _DECIDING:
        from .hashseed import start_again

        start_again(arguments, os.environ)
    from .commands import run_command

    return run_command(arguments, own_process=own_process)


def _write(document: bytes) -> int:
    try:
        sys.stdout.buffer.write(document + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:
        from .output import silence

        silence()
    except OSError as error:
        from .commands import disk_failed
        from .output import Output, silence

        silence()
        return disk_failed(Output(json=True), error)
    return 0


def _fill_streams() -> None:
    """Started without a stdin, stdout or stderr, a program would open its files there, and talk into them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), mode))  # noqa: SIM115  # until the end


def _is_loading() -> bool:
    importing = sys.modules.get("hermes_workflows.importing")
    return importing is not None and bool(importing.loading())


def _is_script(arguments: Sequence[str]) -> bool:
    """Whether this process is `python file.py`, and the run is of that file's workflow."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return script is not None and len(arguments) > 1 and arguments[1].startswith(f"{script}:")


if __name__ == "__main__":
    sys.exit(main())
