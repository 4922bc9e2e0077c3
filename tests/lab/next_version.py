"""A version of Duetick that comes after this one: a copy of the tree, with a release's changes.

It has one more step of the schema, one more policy, and a begin that writes the new column. Tests
run it beside this version, on one database.
"""

import shutil
from pathlib import Path
from typing import Final

from duetick.stores.dynamodb import schema
from duetick.stores.sql.queries import migrations
from duetick.version import VERSION

from tests.lab.cache import TOP

NEXT: Final = "0.2.0"
PARTS: Final = ("functions", "layers/deps", "layers/duetick", "template.yaml")
STEP: Final = max(migrations(one)[-1].version for one in ("sqlite", "postgres")) + 1
COLUMN: Final = "begun_by"
"""The column of occurrences, and the attribute `vb`: which version began it last."""

POLICY: Final = "mood"

EXPAND: Final = f"-- oldest_code: 1\n\nALTER TABLE occurrences ADD COLUMN {COLUMN} text;\n"


def make_next(folder: Path) -> Path:
    """Make the tree of the next version in a folder. Return the folder of its package."""
    for part in PARTS:
        source, target = TOP / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    layer = folder / "layers/duetick"
    package = layer / "duetick"
    _change(package / "version.py", f'"{VERSION}"', f'"{NEXT}"')
    _change(folder / "template.yaml", f'Value: "{VERSION}"', f'Value: "{NEXT}"')
    _change(layer / "CHANGELOG.md", "# Changes\n", f"# Changes\n\n## {NEXT}\n\nA mood.\n")
    _step(package).parent.mkdir(exist_ok=True)
    _step(package).write_text(EXPAND)
    _write_column(package)
    _write_attribute(package)
    field = "    on_failure: str | None = None\n"
    _change(package / "domain/policies.py", field, f"{field}    {POLICY}: str | None = None\n")
    return package


def contract(package: Path) -> None:
    """Let the schema of the next version serve no older code."""
    _change(_step(package), "-- oldest_code: 1\n", f"-- oldest_code: {STEP}\n")
    newest = schema.VERSION + 1
    oldest = f"OLDEST_CODE: Final = {schema.OLDEST_CODE}"
    _change(package / "stores/dynamodb/schema.py", oldest, f"OLDEST_CODE: Final = {newest}")


def _step(package: Path) -> Path:
    """Return the step of both databases."""
    return package / f"stores/sql/migrations/{STEP:03}_{COLUMN}.sql"


def _write_column(package: Path) -> None:
    begun = "SET state = 'processing', attempts = o.attempts + 1,"
    with_version = f"{begun} {COLUMN} = '{NEXT}',"
    _change(package / "stores/sql/queries.sql", begun, with_version)


def _write_attribute(package: Path) -> None:
    newest = f"VERSION: Final = {schema.VERSION}\n"
    _change(package / "stores/dynamodb/schema.py", newest, newest.replace(
        str(schema.VERSION), str(schema.VERSION + 1)
    ))  # fmt: skip
    quick = package / "stores/dynamodb/quick.py"
    _change(quick, '"SET #o.#i.#q = :to, #o.#i.a', '"SET #o.#i.vb = :vb, #o.#i.#q = :to, #o.#i.a')
    _change(
        quick,
        '        ":none": text("{}"),\n',
        f'        ":none": text("{{}}"),\n        ":vb": text("{NEXT}"),\n',
    )


def _change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert text.count(before) == 1, f"{path} has {text.count(before)} of {before!r}"
    path.write_text(text.replace(before, after))
