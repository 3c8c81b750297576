"""What reading receipts costs at the least: git hands their bytes over, and Python makes values of them.

python bench/cat_file.py REPOSITORY FILE_OF_IDS
"""

from __future__ import annotations

import json
import subprocess
import sys


def main() -> None:
    repository, listed = sys.argv[1:]
    count = 0
    with open(listed) as ids:
        command = ["git", "-C", repository, "cat-file", "--batch"]
        with subprocess.Popen(command, stdin=ids, stdout=subprocess.PIPE) as git:
            assert git.stdout is not None
            while header := git.stdout.readline():
                json.loads(git.stdout.read(int(header.split()[2])))
                git.stdout.read(1)
                count += 1
    print(count)


if __name__ == "__main__":
    main()
