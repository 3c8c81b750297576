"""What in a workflow's body would make it decide otherwise when it is replayed: found by reading, told as warnings.

Only the body is looked at, with the plain functions of the project that it calls: a `@step` may do all of this.
A reader of source misses what is hidden behind objects. The replays of the test kit find that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .source_names import Function, SourceModule, locals_of


@dataclass(frozen=True, order=True)
class Impurity:
    """One place, and what to write instead."""

    path: str
    line: int
    what: str
    hint: str = field(compare=False)


_CLOCK = "use now() from hermes_workflows.authoring, or read the clock in a @step"
_CHANCE = "use random() or uuid4() from hermes_workflows.authoring"
_PLACE = "pass it with the input, or read it in a @step"
_FILES = "read and write files in a @step; prompts have prompt_file()"
_NETWORK = "talk to the network in a @step"
_PROCESS = "use bash(), or a @step"
_SLEEP = "use asyncio.sleep(), which is a durable timer"

# The longest prefix decides; None is a name below a refused one that is fine.
_ORIGINS: Mapping[str, str | None] = {
    **dict.fromkeys(
        ("time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.localtime",
         "time.gmtime", "time.ctime", "time.strftime", "datetime.datetime.now", "datetime.datetime.utcnow",
         "datetime.datetime.today", "datetime.date.today"), _CLOCK),
    "time.sleep": _SLEEP,
    **dict.fromkeys(("random", "secrets", "uuid.uuid1", "uuid.uuid4", "os.urandom", "numpy.random"), _CHANCE),
    "random.Random": None,
    **dict.fromkeys(
        ("os.environ", "os.getenv", "os.getcwd", "os.getpid", "os.uname", "os.cpu_count", "platform", "sys.argv",
         "getpass", "pathlib.Path.cwd", "pathlib.Path.home", "locale", "id"), _PLACE),
    **dict.fromkeys(
        ("open", "input", "io.open", "os.listdir", "os.scandir", "os.walk", "os.stat", "os.remove", "os.mkdir",
         "os.makedirs", "os.rename", "os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.getmtime",
         "os.path.getsize", "glob", "shutil", "tempfile", "sqlite3"), _FILES),
    **dict.fromkeys(
        ("socket", "ssl", "requests", "httpx", "aiohttp", "urllib.request", "urllib3", "http.client", "smtplib",
         "ftplib", "websockets", "boto3", "openai", "anthropic", "asyncio.open_connection"), _NETWORK),
    **dict.fromkeys(
        ("subprocess", "os.system", "os.popen", "os.fork", "multiprocessing", "threading", "concurrent.futures",
         "asyncio.to_thread", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"), _PROCESS),
}  # fmt: skip
_FILE_METHODS = frozenset({"read_text", "read_bytes", "write_text", "write_bytes"})
# These give the same whatever order they are given things in.
_ORDERLESS = frozenset({"sorted", "set", "frozenset", "sum", "min", "max", "any", "all", "len", "dict"})
_LISTING = frozenset({"list", "tuple", "enumerate", "iter", "next", "map", "zip", "parallel", "pipeline"})
_SET_HINT = "sort it: only a set of texts has the same order in every process"


def impurities(modules: Iterable[SourceModule]) -> list[Impurity]:
    """What the bodies of all workflows in these modules had better not do, in the order of places."""
    return sorted(set(_Reader({module.name: module for module in modules}).found()))


class _Reader:
    def __init__(self, modules: Mapping[str, SourceModule]) -> None:
        self._modules = modules
        self._seen: set[ast.AST] = set()

    def found(self) -> Iterator[Impurity]:
        for module in self._modules.values():
            for function in module.functions.values():
                if "workflow" in _decorators(function):
                    yield from self._function(module, function)

    def _function(self, module: SourceModule, function: Function) -> Iterator[Impurity]:
        if function in self._seen:
            return
        self._seen.add(function)
        body = _Body(module, function)
        yield from body.found()
        for origin in body.called():
            home, _, name = origin.rpartition(".")
            other = self._modules.get(home)
            called = other.functions.get(name) if other else None
            if other and called and not _decorators(called) & {"step", "workflow"}:
                yield from self._function(other, called)


class _Body:
    """One function, with those inside it."""

    def __init__(self, module: SourceModule, function: Function) -> None:
        self._module = module
        self._local = locals_of(function)
        self._nodes = list(_inside(function))
        self._sets: frozenset[str] = frozenset()
        self._sets = frozenset(
            target.id
            for node in self._nodes
            if isinstance(node, ast.Assign) and self._is_set(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        )

    def called(self) -> Iterator[str]:
        """The dotted names of all functions that it mentions: a callback is called, too."""
        for node in self._nodes:
            if isinstance(node, ast.Name | ast.Attribute) and (origin := self._origin(node)):
                yield origin

    def found(self) -> Iterator[Impurity]:
        harmless = {id(each) for node in self._nodes for each in self._orderless(node)}
        for node in self._nodes:
            yield from self._names(node)
            yield from self._prompts(node)
            if id(node) not in harmless:
                yield from self._orders(node)

    def _names(self, node: ast.AST) -> Iterator[Impurity]:
        if not isinstance(node, ast.Name | ast.Attribute):
            return
        origin = self._origin(node)
        if origin and (hint := _refused(origin)):
            yield self._at(node, origin, hint)
        elif isinstance(node, ast.Attribute) and node.attr in _FILE_METHODS:
            yield self._at(node, f".{node.attr}()", _FILES)
        elif (name := _first(node)) and name in self._module.mutable_globals and name not in self._local:
            yield self._at(node, f"the global {name}, which changes,", "keep it in a local, or pass it as an argument")

    def _prompts(self, node: ast.AST) -> Iterator[Impurity]:
        if isinstance(node, ast.Call) and node.args and (self._origin(node.func) or "").endswith("prompt_file"):
            name = node.args[0]
            if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                yield self._at(
                    node, "prompt_file() of a computed name", "name it by a literal, so that a change is seen"
                )

    def _orders(self, node: ast.AST) -> Iterator[Impurity]:
        for iterated in self._iterated(node):
            if self._is_set(iterated):
                yield self._at(iterated, "iterating over a set", _SET_HINT)

    def _iterated(self, node: ast.AST) -> Iterator[ast.expr]:
        if isinstance(node, ast.For | ast.AsyncFor):
            yield node.iter
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
            yield from (each.iter for each in node.generators)
        elif isinstance(node, ast.Call) and self._last(node.func) in _LISTING:
            yield from node.args

    def _orderless(self, node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.Call) and self._last(node.func) in _ORDERLESS:
            yield from node.args

    def _is_set(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Set | ast.SetComp):
            return True
        if isinstance(node, ast.BinOp):
            return self._is_set(node.left) and self._is_set(node.right)
        if isinstance(node, ast.Name):
            return node.id in self._sets
        return isinstance(node, ast.Call) and self._origin(node.func) in ("set", "frozenset")

    def _last(self, node: ast.expr) -> str:
        return (self._origin(node) or "").rpartition(".")[2]

    def _origin(self, node: ast.expr) -> str | None:
        return self._module.origin(node, self._local)

    def _at(self, node: ast.expr, what: str, hint: str) -> Impurity:
        return Impurity(self._module.path, node.lineno, f"{what} in a workflow's body", hint)


def _refused(origin: str) -> str | None:
    parts = origin.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((_ORIGINS[prefix] for prefix in prefixes if prefix in _ORIGINS), None)


def _first(node: ast.expr) -> str | None:
    """The first name of a dotted one; None for an attribute of anything else."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _inside(function: Function) -> Iterator[ast.AST]:
    """Every node of a function, dotted names as one, but for the steps that are defined in it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "step" in _decorators(node):
            continue
        yield node
        if not (isinstance(node, ast.Attribute) and _first(node)):
            todo += ast.iter_child_nodes(node)


def _decorators(function: Function) -> set[str]:
    called = (each.func if isinstance(each, ast.Call) else each for each in function.decorator_list)
    return {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in called}
