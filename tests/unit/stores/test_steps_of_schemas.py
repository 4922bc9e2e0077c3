"""J-01: a database's schema has its own steps and those of all databases, each with a number."""

from pathlib import Path

import pytest
from duetick.stores.sql import queries


def test_j01_a_step_of_all_databases_is_a_step_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sql/migrations/003_both.sql", "here/migrations/001_a.sql"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"-- oldest_code: 1\n{name}")
    monkeypatch.setattr(queries, "_STORES", tmp_path)
    steps = {where: queries.migrations.__wrapped__(where) for where in ("here", "there")}
    assert [one.version for one in steps["here"]] == [1, 3]
    assert [one.sql for one in steps["there"]] == ["sql/migrations/003_both.sql"]


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_j01_no_two_steps_have_one_number(backend: str) -> None:
    versions = [step.version for step in queries.migrations(backend)]
    assert versions == sorted({*versions})
