"""Definitions in files: CSV with a header, and JSON Lines. The fields are those of the API.

A cell of CSV that holds an object is JSON. The fields that the API shows and nobody can set are
left out: so a list of the API can be read too.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from duetick.cli.problem import CliProblem
from duetick.cli.transfer.documents import objects
from duetick.cli.transfer.items import NotReadable, RefusedItem, SourceItem, SourcePart, Timing
from duetick.core.wire import WRITABLE, require_json
from duetick.domain.errors import InvalidSchedule, kind_of
from duetick.domain.expression import InvalidExpression, from_day_map
from duetick.domain.schedule import Json

NAMES: Final = ("user", "key", *WRITABLE)
AS_JSON: Final = frozenset({"input", "policies", "labels", "principal"})
"""The columns of CSV that hold JSON."""

KINDS: Final[Mapping[str, tuple[type, str, str]]] = {
    "enabled": (bool, "true or false", "false for a schedule that is paused"),
    "policies": (dict, "an object", '{"spread": 60}'),
    "labels": (dict, "an object", '{"team": "garden"}'),
}
"""The kinds of the fields that an import reads itself, each with an example. The API looks at all
others.
"""

SHOWN: Final = frozenset(
    {
        *("state", "paused", "heldBy", "version", "createdAt", "updatedAt", "nextFireAt"),
        *("lastRunAt", "doneAt", "runs", "defect", "dryRun"),
    }
)
"""The fields that the API shows and nobody sets."""

WITHHELD: Final = "[withheld]"


def read_json_lines(name: str, text: str) -> Iterator[SourcePart]:
    """Yield the items of JSON objects: one to a line, or in a list."""
    for line, one in objects(name, text):
        if isinstance(one, dict):
            yield _read_item(f"{name}:{line}", one)


def read_csv(name: str, text: str) -> Iterator[SourcePart]:
    """Yield the items of a CSV file, whose first line has the names of the columns."""
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        titles = [title.strip() for title in next(rows, [])]
        unknown = [title for title in titles if title not in {*NAMES, *SHOWN}]
        if unknown or "cron" not in titles:
            known = ", ".join(NAMES)
            what = (
                f"does not know the column {unknown[0]!r}" if unknown else "needs the column cron"
            )
            raise CliProblem(f"{name}: this {what}; the columns are {known}.")
        twice = next((title for title in titles if titles.count(title) > 1), None)
        if twice:
            raise CliProblem(f"{name}: the column {twice} comes twice; leave one of them out.")
        for cells in rows:
            if any(cell.strip() for cell in cells):
                place = f"{name}:{rows.line_num}"
                yield _of_cells(place, titles, cells)
    except csv.Error as problem:
        raise CliProblem(f"{name}:{rows.line_num} is not CSV: {problem}.") from None


def _of_cells(place: str, titles: list[str], cells: list[str]) -> SourcePart:
    text = ",".join(cells)
    if len(cells) != len(titles):
        why = f"the line has {len(cells)} cells, and the first line {len(titles)}"
        return RefusedItem(place, text, why, "one cell for each column, in quotes if it has commas")
    given: dict[str, Json] = {}
    for title, cell in zip(titles, cells, strict=True):
        if cell == "":
            continue
        try:
            given[title] = _cell(title, cell)
        except InvalidSchedule as problem:
            return RefusedItem(
                place, text, str(problem), f'JSON in the column {title}, such as {{"a": 1}}'
            )
    return _read_item(place, given)


def _cell(title: str, cell: str) -> Json:
    if title in AS_JSON or (title == "cron" and cell.lstrip().startswith("{")):
        return require_json(cell, f"the column {title}")
    if title == "enabled":
        return {"true": True, "false": False}.get(cell.strip().lower(), cell)
    return cell


def _read_item(place: str, given: Mapping[str, Json]) -> SourcePart:
    text = " ".join(str(given.get(name) or "-") for name in ("key", "cron", "timezone"))
    try:
        return _item(place, text, given)
    except NotReadable as problem:
        return RefusedItem(place, text, problem.why, problem.instead)


def _item(place: str, text: str, given: Mapping[str, Json]) -> SourceItem:
    unknown = [name for name in given if name not in {*NAMES, *SHOWN}]
    if unknown:
        raise NotReadable(f"{unknown[0]!r} is no field", f"the fields are {', '.join(NAMES)}")
    if not given.get("key") or not given.get("cron"):
        raise NotReadable("it has no key or no cron", "both: the key names the schedule for good")
    if not isinstance(given["key"], str | int):
        raise NotReadable(f"key: expected text, got {kind_of(given['key'])}", '"nightly"')
    _check_kinds(given)
    if _holds_withheld(given.get("input")):
        raise NotReadable(
            f"its input holds {WITHHELD}: an operator's export has no secrets of users",
            "the export of the user, or the input in a rule",
        )
    kept = {name: given[name] for name in NAMES if given.get(name) is not None}
    cron, zone = _cron(kept.pop("cron")), kept.pop("timezone", None)
    policies, enabled = kept.pop("policies", {}), kept.pop("enabled", True)
    name = str(kept.pop("key"))
    timing = Timing(
        cron,
        None if zone is None else str(zone),
        policies if isinstance(policies, dict) else {},
        enabled=bool(enabled),
    )
    facts: dict[str, Json] = {"key": name, "user": kept.get("user"), "input": kept.get("input")}
    return SourceItem(place, text, name, timing, facts, (), kept)


def _check_kinds(given: Mapping[str, Json]) -> None:
    """Raise NotReadable if a field that an import reads itself is of another kind. If it left out
    an `enabled` that says `no`, the schedule would fire.
    """
    for name, (kind, wanted, example) in KINDS.items():
        value = given.get(name)
        if value is not None and not isinstance(value, kind):
            got = repr(value) if isinstance(value, str) else kind_of(value)
            raise NotReadable(f"{name}: expected {wanted}, got {got}", example)


def _cron(value: Json) -> str:
    """Return the text of a cron, which may be a day map."""
    if not isinstance(value, dict):
        return str(value)
    try:
        return from_day_map(value)
    except (InvalidExpression, ValueError) as problem:
        raise NotReadable(str(problem), '{"mon": "09:00"}') from None


def _holds_withheld(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_withheld, value.values()))
    if isinstance(value, list):
        return any(map(_holds_withheld, value))
    return value == WITHHELD


def csv_lines(definitions: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Yield the lines of definitions as CSV, without the columns that none of them has."""
    titles = [name for name in NAMES if any(name in one for one in definitions)]
    yield _csv_line(titles)
    for one in definitions:
        yield _csv_line([_csv_cell(name, one.get(name)) for name in titles])


def _csv_line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _csv_cell(name: str, value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) and name not in AS_JSON else json.dumps(value)
