"""The table of docs/security.md names tests that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def test_every_test_that_the_table_names_exists_and_every_promise_has_one() -> None:
    named = re.findall(r"`(tests/[\w/.]+)::(test_\w+)`", TABLE)
    assert len(named) > 50
    lost = [
        f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8")
    ]
    assert lost == []
    rows = [line for line in TABLE.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert [row for row in rows if "::test_" not in row] == []
