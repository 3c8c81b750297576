"""Builds the sdist, the wheel from it, and tries the wheel outside the tree on each Python from 3.11 to 3.14 found.

    python scripts/test_package.py [--lowest] [--dist FOLDER]

Each Python gets an environment of its own in a temporary folder: the wheel and its dependencies are installed there,
every module is imported, the quickstart runs to its end, and the dashboard writes its pages.
`--lowest` does it once, on the oldest Python, with the lowest version of each dependency that pyproject.toml allows,
and lets the tests of `tests/core` and `tests/contract` judge the installed wheel as well.
Needs the package index, or a pip that is told where else wheels are.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("tests/core", "tests/contract")
# What tests need beside the package; their own lowest versions are nobody's promise.
TOOLS = ("pytest", "pytest-xdist", "pytest-randomly", "hypothesis", "freezegun", "httpx2", "cmarkgfm")
EVERY_MODULE = """
import importlib, pkgutil, sys, hermes_workflows
assert "site-packages" in hermes_workflows.__file__, hermes_workflows.__file__
for found in pkgutil.walk_packages(hermes_workflows.__path__, "hermes_workflows."):
    if not found.name.endswith(("__main__", "testing.plugin")):
        importlib.import_module(found.name)
"""
# What belongs into each: a module, what is no module, and in the sdist what makes and tests it.
IN_WHEEL = (
    "hermes_workflows/py.typed",
    "hermes_workflows/web/templates/run.html",
    "hermes_workflows/web/static/page.js",
)
IN_SDIST = (
    "pyproject.toml",
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "Makefile",
    "tests/golden/1/schema.json",
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lowest", action="store_true")
    parser.add_argument("--dist", type=Path, help="keep what was built there")
    given = parser.parse_args(arguments)
    pythons = dict(found_pythons())
    print("Found:", ", ".join(f"Python {version}" for version in pythons) or "no Python from 3.11 to 3.14")
    with tempfile.TemporaryDirectory(prefix="hermes-package.") as folder:
        wheel = build(Path(folder))
        if given.dist:
            shutil.copytree(wheel.parent, given.dist, dirs_exist_ok=True)
        for version in list(pythons)[:1] if given.lowest else pythons:
            here = Path(folder) / version
            here.mkdir()
            Trial(here, wheel, pythons[version], lowest=given.lowest).run()
            shutil.rmtree(here)
            print(f"Python {version}{' with the lowest versions' if given.lowest else ''}: fine", flush=True)
    return 0 if pythons else 1


def found_pythons() -> Iterator[tuple[str, str]]:
    """Each version once, by the first of its programs that starts and can make environments."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        kept = sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))
        # Each is started, not only looked up: version managers put commands on the path that refuse to run.
        code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
        for candidate in (f"python{version}", *kept):
            if shutil.which(candidate) and _said([candidate, "-c", code]).strip() == version:
                yield version, candidate
                break


def build(folder: Path) -> Path:
    """The wheel, made from the sdist alone: so what the sdist lacks is missed here and not by whoever installs it."""
    dist, tree = folder / "dist", folder / "tree"
    _run([sys.executable, "-m", "venv", folder / "build"])
    python = folder / "build" / "bin" / "python"
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    _run([python, "-m", "pip", "install", "-q", *wanted])
    _run([python, "-m", "hatchling", "build", "-t", "sdist", "-d", dist], cwd=ROOT)
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
        packed.extractall(tree, filter="data")
    _has(sdist, inside, IN_SDIST)
    (unpacked,) = tree.iterdir()
    _run([python, "-m", "hatchling", "build", "-t", "wheel", "-d", dist], cwd=unpacked)
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed_wheel:
        _has(wheel, set(packed_wheel.namelist()), IN_WHEEL)
    return wheel


def _has(file: Path, inside: set[str], wanted: Sequence[str]) -> None:
    if missing := [name for name in wanted if name not in inside]:
        raise SystemExit(f"{file.name} lacks {', '.join(missing)}")
    strange = [name for name in inside if name.endswith((".pyc", ".sqlite")) or "/.hermes/workflows.git" in name]
    if strange:
        raise SystemExit(f"{file.name} has {', '.join(strange[:5])}, which belongs to nobody")


def lowest(extra: str = "dashboard") -> list[str]:
    """Each dependency at the lowest version that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = []
    for wanted in (*project["dependencies"], *project["optional-dependencies"][extra]):
        match = re.match(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", wanted)
        if match is None:
            raise SystemExit(f"{wanted} has no lowest version")
        pins.append(f"{match[1]}=={match[2]}")
    return pins


class Trial:
    """One Python, one environment, one folder that has nothing to do with the tree."""

    def __init__(self, folder: Path, wheel: Path, python: str, *, lowest: bool) -> None:
        self.folder, self.wheel, self.lowest = folder, wheel, lowest
        self.bin = folder / "env" / "bin"
        _run([python, "-m", "venv", folder / "env"])
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONHASHSEED")
        self.env = {name: value for name, value in os.environ.items() if name not in hidden}
        self.env["PATH"] = f"{self.bin}{os.pathsep}{self.env['PATH']}"

    def run(self) -> None:
        pins = lowest() if self.lowest else []
        self.install(f"{self.wheel}[dashboard]", *pins)
        self.say("-m", "pip", "check")
        self.say("-c", EVERY_MODULE)
        demo = self.folder / "demo"
        shutil.copytree(ROOT / "examples", demo)
        # Its workspace is a new temporary folder; without HOME no setting of git's has a say.
        _run(
            ["bash", demo / "demo.sh"],
            cwd=self.folder,
            env=self.env | {"HOME": str(self.folder), "TMPDIR": str(self.folder)},
        )
        (workspace,) = self.folder.glob("hermes-demo.*")
        _run([self.bin / "hermes-workflows", "dashboard", "export", self.folder / "site"], cwd=workspace, env=self.env)
        if not (self.folder / "site" / "index.html").exists():
            raise SystemExit("the dashboard wrote no page")
        if self.lowest:
            self.install(*TOOLS, *pins)
            self.tests()

    def install(self, *wanted: str) -> None:
        _run([self.bin / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted], env=self.env)

    def say(self, *arguments: str) -> None:
        _run([self.bin / "python", *arguments], cwd=self.folder, env=self.env)

    def tests(self) -> None:
        """The tree's tests and nothing else of it: what they import is the wheel."""
        tree = self.folder / "tests-only"
        tree.mkdir()
        for name in ("tests", "examples", "docs", "scripts", "bench", "pyproject.toml", "README.md"):
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "pictures"))
            else:
                shutil.copy(ROOT / name, tree / name)
        # Old dependencies may warn of what new ones have mended.
        _run([self.bin / "python", "-m", "pytest", "-q", "-n", "auto", "-W", "default", *TESTS], cwd=tree, env=self.env)


def _said(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _run(command: Sequence[str | Path], **options: object) -> None:
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)  # type: ignore[call-overload]
    if done.returncode:
        print(done.stdout)
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
