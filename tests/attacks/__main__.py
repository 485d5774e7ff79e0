"""Run the attacks of the security review against an installed product, by number.

python -m tests.attacks                         all of them, against this environment
python -m tests.attacks 1 19                    these alone
python -m tests.attacks --product VENV/bin/python
"""

import argparse
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks", description="Attack an installed Cairn, by number of the finding."
    )
    parser.add_argument("numbers", nargs="*", type=int, help="of findings; all by default")
    parser.add_argument("--product", help="the Python of the environment in which Cairn is installed")
    options = parser.parse_args()
    known: dict[int, list[str]] = {}
    for path in sorted(HERE.glob("test_[0-9][0-9]_*.py")):
        known.setdefault(int(path.name.split("_")[1]), []).append(str(path))
    if unknown := sorted(set(options.numbers) - set(known)):
        parser.error(f"there is no attack {unknown[0]}; there are {', '.join(map(str, sorted(known)))}")
    chosen = [path for number in (options.numbers or sorted(known)) for path in known[number]]
    more = ["--product", options.product] if options.product else []
    return int(pytest.main(["-p", "no:cacheprovider", "-v", "--tb=short", *more, *chosen]))


if __name__ == "__main__":
    sys.exit(main())
