"""The commands: finds one, runs it, and turns every error into one line and an exit code (DESIGN §5).

Each is imported when it is called, so nobody waits for what another command needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from ..core.spelling import nearest
from ..errors import HermesError
from .output import Output, readable
from .session import Session, output_options

_INTERRUPTED = 130
_USAGE = 2
# sysexits.h: a fault of this program, and one of the disk.
_SOFTWARE = 70
_IO = 74

# Name → (module, function, one line): the help of the whole program without importing all of it.
_COMMANDS: Mapping[str, tuple[str, str, str]] = {
    "init": ("registry", "init", "Make a registry and its database here."),
    "run": ("run", "run", "Record the start of a workflow and queue it."),
    "runner": ("runner", "runner", "Execute what is queued: run, once, status, doctor."),
    "worker": ("runner", "worker", "The older name of `runner run`."),
    "status": ("status", "status", "Show one run."),
    "list": ("listing", "list_runs", "Show runs, newest first."),
    "watch": ("watch", "watch", "Show runs and runners as they move."),
    "log": ("log", "log", "List the receipts of a run, or the runs."),
    "show": ("look", "show", "Show a run, or one of its calls with all it says."),
    "signal": ("signal", "signal", "Send a run an event it waits for."),
    "review": ("review", "review", "Questions for people: list, show, respond, import."),
    "dashboard": ("dashboard", "dashboard", "Show runs and questions in a browser; export: as files."),
    "hermes": ("hermes", "hermes", "The plugin for Hermes Agent: install, uninstall, doctor."),
    "publish": ("publish", "publish", "Push a run as a branch, to be reviewed."),
    "artifact": ("artifact", "artifact", "Files that runs have kept: list, get."),
    "cancel": ("run", "cancel", "Ask a run to end."),
    "pause": ("pause", "pause", "Let a run start nothing for a while."),
    "resume": ("pause", "resume", "Let a paused run go on."),
    "resolve": ("decisions", "resolve", "Say what became of an at-most-once step."),
    "accept": ("decisions", "accept", "Keep a recorded answer for a changed request."),
    "fork": ("fork", "fork", "Begin a run with the receipts of another one."),
    "reproduce": ("reproduce", "reproduce", "Run once more what a run was given."),
    "retry": ("fork", "retry", "Try a stuck, failed or cancelled run again."),
    "diff": ("compare", "diff", "Show what two runs did differently."),
    "replay": ("compare", "replay", "Prove that the present code decides as recorded."),
    "registry": ("registry", "registry", "The workspace's workflows: list, show, doctor, discover."),
    "index": ("upkeep", "index", "The status index: rebuild."),
    "verify": ("upkeep", "verify", "Check receipts against the rules of the store."),
    "push": ("exchange", "push", "Send own runs to a remote."),
    "fetch": ("exchange", "fetch", "Bring others' runs here, to be looked at."),
    "sync": ("exchange", "sync", "Fetch, then push."),
    "export": ("exchange", "export", "Write a run into one file."),
    "import": ("exchange", "import_", "Take the runs of a git bundle in."),
    "maintenance": ("maintenance", "maintenance", "Keep the receipts repository small: run."),
    "doctor": ("doctor", "doctor", "Look for what is wrong, say what to do, and mend what is safe to mend."),
    "completion": ("completion", "completion", "Print the completion script of a shell."),
}


class _Commands(click.Group):
    """A group whose commands are imported one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, function, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"hermes_workflows.cli.{module}"), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in _COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0] if args else ""
        if name and name not in _COMMANDS and not name.startswith("-"):
            near = nearest(name, _COMMANDS)
            raise click.UsageError(f"no command {name!r}" + (f", did you mean {near!r}?" if near else ""), ctx)
        return super().resolve_command(ctx, args)


def _show_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        from ..versions import version_of

        click.echo(f"hermes-workflows {version_of('hermes-workflows')}")
        context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show it.")
@output_options
def commands() -> None:
    """Durable Python workflows whose every step is a receipt in git."""


def run_command(arguments: Sequence[str], *, own_process: bool) -> int:
    """Run one command and return its exit code; `own_process` says that the program is nothing but this."""
    output = Output(json=_wants_json(arguments), debug="--debug" in arguments)
    session = Session(list(arguments), os.environ, output, own_process)
    output.clean = session.clean
    return _run(session)


def _run(session: Session) -> int:
    output = session.output
    try:
        code = commands.main(session.arguments, "hermes-workflows", standalone_mode=False, obj=session)
    except (KeyboardInterrupt, click.Abort):
        output.fail("interrupted", "interrupted", None)
        return _INTERRUPTED
    except click.ClickException as error:
        return _usage(output, error)
    except HermesError as error:
        _trace(output)
        output.fail(error.code, error.message, error.hint)
        return error.exit_code
    except OSError as error:
        return disk_failed(output, error)
    except UnicodeEncodeError as error:
        return _unreadable(session, error)
    except Exception as error:
        return _faulty(output, error)
    return code if isinstance(code, int) else 0


def _faulty(output: Output, error: Exception) -> int:
    _trace(output)
    output.fail("internal", f"{type(error).__name__}: {error}", "a fault of this program; --debug shows where")
    return _SOFTWARE


def _unreadable(session: Session, error: UnicodeEncodeError) -> int:
    """An argument may be any bytes, as a file's name is; whatever is looked up by it has a name in UTF-8."""
    bad = next((each for each in session.arguments if _is_no_text(each)), None)
    if bad is None:
        return _faulty(session.output, error)
    _trace(session.output)
    session.output.fail("usage", f"{bad!r} is no text in UTF-8", "only names of files and folders may be other bytes")
    return _USAGE


def _is_no_text(argument: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in argument)


def disk_failed(output: Output, error: OSError) -> int:
    """Tell of what a disk, or a stream, did not take; the exit code."""
    _trace(output)
    where = f"{error.filename}: " if error.filename else ""
    output.fail("store_failure", f"{where}{error.strerror or error}", "check the disk and its permissions")
    return _IO


def _usage(output: Output, error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return _USAGE
    hint = f"see `{context.command_path} --help`" if context else None
    output.fail("usage", error.format_message(), hint)
    return error.exit_code


def _trace(output: Output) -> None:
    if output.debug:
        import traceback

        click.echo(readable(output.clean(traceback.format_exc())), err=True, nl=False)


def _wants_json(arguments: Sequence[str]) -> bool:
    # `review respond --json VALUE` is an answer; the option's own callback knows the rest once it is parsed.
    return not sys.stdout.isatty() or (bool(arguments) and arguments[0] == "--json")
