"""The check of the house's limits finds what is over them."""

import subprocess
import sys
from pathlib import Path

SIZES = Path(__file__).parents[2] / "scripts" / "sizes.py"


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SIZES, folder], capture_output=True, text=True, check=False)


def test_a_module_of_400_lines_passes_and_one_of_401_does_not(tmp_path: Path) -> None:
    module = tmp_path / "long.py"
    module.write_text("x = 1\n" * 400)
    assert check(tmp_path).returncode == 0
    module.write_text("x = 1\n" * 401)
    found = check(tmp_path)
    assert found.returncode == 1
    assert f"{module}: 401 lines" in found.stdout


def test_a_function_of_60_lines_passes_and_one_of_61_does_not(tmp_path: Path) -> None:
    module = tmp_path / "deep.py"
    module.write_text("async def f():\n" + "    x = 1\n" * 59)
    assert check(tmp_path).returncode == 0
    module.write_text("async def f():\n" + "    x = 1\n" * 60)
    assert f"{module}:1: f has 61 lines" in check(tmp_path).stdout


def test_a_folder_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    assert check(tmp_path / "bench").returncode == 0
