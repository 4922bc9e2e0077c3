"""Every statement of the contract that stores have to keep has a test that carries its id."""

import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PLACES: Final = ("tests", "layers/duetick/duetick/testing")
NAMED: Final = re.compile(r"def test_([a-z]\d\d)_")

STORES: Final = [
    *(f"i{number:02}" for number in range(1, 19)),
    *("m01", "m02", "m03", "m04", "m05", "m07"),
    *(f"g{number:02}" for number in range(1, 9)),
    *("j01", "j02", "j03", "j05", "j13"),
    *("t05", "t06", "t07"),
    "a01",
]
"""I: the index. M: mirroring. G: DynamoDB. J: the ledger. T: leases. A: accounting."""


@cache
def carried() -> dict[str, list[str]]:
    """Return the tests of each id: file and line."""
    found: dict[str, list[str]] = {}
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*.py")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if match := NAMED.search(line):
                    where = f"{path.relative_to(ROOT)}:{number}"
                    found.setdefault(match.group(1), []).append(where)
    return found


@pytest.mark.parametrize("statement", STORES)
def test_a_statement_that_stores_keep_is_carried_by_a_test(statement: str) -> None:
    assert carried().get(statement), f"no test is named test_{statement}_…"


def test_an_id_that_no_test_carries_would_be_noticed() -> None:
    assert "z99" not in carried()
