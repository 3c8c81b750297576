"""Runs targets against bytes that a fuzzer makes: `python -m tests.fuzz [TARGET …]`, or `make fuzz`.

With atheris, which watches what the bytes reach. Without it the same targets run against random mutations of the
seeds; that is said, and finds less. Each target has FUZZ_SECONDS (20), and a process of its own; what it fails at is
kept under build/fuzz/TARGET, and is given again with `python -m tests.fuzz TARGET FILE`.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import itertools
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

KEPT = Path("build/fuzz")
# Of one process, all of the program included.
MEGABYTES = 2048
LONGEST = 1 << 16
# Lines of the log of a target that failed.
_SHOWN = 40


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    arguments.add_argument("names", nargs="*", metavar="TARGET|FILE")
    arguments.add_argument("--seconds", type=int, default=int(os.environ.get("FUZZ_SECONDS", "20")))
    arguments.add_argument("--seed", type=int, default=int(os.environ.get("FUZZ_SEED", "0")))
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.one:
        return fuzz(given.one, given.seconds, given.seed)
    files = [name for name in given.names if Path(name).is_file()]
    names = [name for name in given.names if name not in files]
    if files:
        return again(names[0], files)
    return every(names or listed(), given.seconds, given.seed)


def listed() -> list[str]:
    from tests.fuzz.targets import TARGETS

    return list(TARGETS)


def every(names: list[str], seconds: int, seed: int) -> int:
    seed = seed or int.from_bytes(os.urandom(4), "big") or 1
    if not has_atheris():
        print(
            "atheris is not installed for this Python: random mutations are tried, and nobody watches what they reach."
        )
        print("`pip install atheris` gets it where there is a wheel, otherwise with clang.")
    print(f"{len(names)} targets, {seconds} s each, seed {seed}", flush=True)
    failed = []
    for name in names:
        options = ["--one", name, "--seconds", str(seconds), "--seed", str(seed)]
        (KEPT / name).mkdir(parents=True, exist_ok=True)
        log = KEPT / name / "log"
        # A process each: one that dies, hangs or grows takes no other with it.
        with log.open("wb") as file:
            done = subprocess.run(
                [sys.executable, "-m", "tests.fuzz", *options], stdout=file, stderr=subprocess.STDOUT, check=False
            )
        print(f"{name}: {'failed' if done.returncode else 'ok'}", flush=True)
        if done.returncode:
            print(*log.read_text(errors="replace").splitlines()[-_SHOWN:], sep="\n", flush=True)
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}; what they failed at lies in {KEPT}")
    return bool(failed)


def has_atheris() -> bool:
    return importlib.util.find_spec("atheris") is not None


def again(name: str, files: list[str]) -> int:
    from tests.fuzz.targets import TARGETS

    for file in files:
        TARGETS[name].consume(Path(file).read_bytes())
    return 0


def fuzz(name: str, seconds: int, seed: int) -> int:
    folder = KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    return with_atheris(name, folder, seconds, seed) if has_atheris() else without(name, folder, seconds, seed)


def with_atheris(name: str, folder: Path, seconds: int, seed: int) -> int:
    import atheris

    with atheris.instrument_imports(include=["hermes_workflows", "json", "dulwich"]):
        from tests.fuzz.mutating import chance, spoilt
        from tests.fuzz.targets import TARGETS
    target = TARGETS[name]
    seeds = target.seeds()
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for data in seeds:
        (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)

    def mutated(data: bytes, most: int, number: int) -> bytes:
        """Half by what knows JSON, half by what knows bytes."""
        if number % 2:
            return bytes(atheris.Mutate(data, most))
        return spoilt(data, seeds[number % len(seeds)], chance(number))[:most]

    options = [f"-max_total_time={seconds}", f"-seed={seed}", f"-rss_limit_mb={MEGABYTES}", "-timeout=30"]
    options += [f"-max_len={LONGEST}", f"-artifact_prefix={folder}/", "-print_final_stats=0", "-verbosity=0"]
    atheris.Setup([name, *options, str(corpus)], target.consume, custom_mutator=mutated)
    atheris.Fuzz()  # ends the process
    return 0


def without(name: str, folder: Path, seconds: int, seed: int) -> int:
    from tests.fuzz.mutating import chance, spoilt
    from tests.fuzz.targets import TARGETS

    target, choose = TARGETS[name], chance(seed)
    seeds, until = target.seeds(), time.monotonic() + seconds
    for number in itertools.count():
        if time.monotonic() > until:
            print(f"{name}: {number} inputs")
            return 0
        data = spoilt(seeds[choose(len(seeds))], seeds[choose(len(seeds))], choose)[:LONGEST]
        try:
            target.consume(data)
        except Exception:
            kept = folder / f"crash-{hashlib.sha1(data).hexdigest()}"
            kept.write_bytes(data)
            traceback.print_exc()
            print(f"kept as {kept}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
