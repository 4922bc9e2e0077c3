"""The items of a source: each of its lines, jobs or schedules, and its fate here."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, TypeAlias

from duetick.domain.expression import InvalidExpression, InvalidTimezone
from duetick.domain.identity import InvalidId, check_schedule_key
from duetick.domain.schedule import Json

LONGEST_SLUG: Final = 48
WHOLE: Final = re.compile(r"-?\d{1,15}(\.0*)?")
"""A whole number, also as a column of decimals has it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of a schedule here: the fields of its definition that the source decides."""

    cron: str
    timezone: str | None = None
    policies: Mapping[str, Json] = field(default_factory=dict)
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class SourceItem:
    """An item that can be a schedule here.

    `place` and `text` show it to a reader of the report. `name` is the source's own name, which
    stays the same when the item changes. Rules match the `facts`, and templates use them. `notes`
    say the differences here. `given` has the source's own fields of the schedule, such as its flow
    and action in a CSV file.
    """

    place: str
    text: str
    name: str
    timing: Timing
    facts: Mapping[str, Json] = field(default_factory=dict)
    notes: Sequence[str] = ()
    given: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """An item that cannot be a schedule here, the reason, and the text to write instead."""

    place: str
    text: str
    why: str
    instead: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A part of the source that is no schedule, and its fate."""

    place: str
    text: str
    why: str


SourcePart: TypeAlias = SourceItem | RefusedItem | Remark

FileReader: TypeAlias = Callable[[str, str], Iterable[SourcePart]]
"""A function that yields the items of a file, by its name and its text."""


class NotReadable(Exception):
    """A part of an item without a counterpart here: the reason, and the text to write instead."""

    def __init__(self, why: str, instead: str) -> None:
        super().__init__(why)
        self.why = why
        self.instead = instead


HINT: Final = re.compile(r"(.*?)(?:; write (.*?))?(?:; for example[:,] (.*))?", re.DOTALL)
"""A message of the reader of expressions: what is wrong, what to write, an example."""


def unreadable(problem: InvalidExpression | InvalidTimezone, instead: str) -> NotReadable:
    """Return the refusal of a source's expression or zone, with the text to write instead."""
    found = HINT.fullmatch(str(problem))
    why, right, example = found.groups() if found else (str(problem), None, None)
    return NotReadable(why, right or example or instead)


def read_number(name: str, value: object) -> int:
    """Return an option of a source that is a whole number. Raises NotReadable if it is none."""
    text = str(value)
    if not WHOLE.fullmatch(text):
        shown = text[:LONGEST_SLUG]
        raise NotReadable(f"{name}: expected a whole number, got {shown!r}", f'"{name}": 5')
    return int(text.partition(".")[0])


def digest(text: str, size: int = 8) -> str:
    """Return a short digest of a text."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:size]


def slug(text: str) -> str:
    """Return the words of a text with hyphens between them."""
    words = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")
    return words[:LONGEST_SLUG].rstrip("-.") or "item"


def key_of(name: str, user_id: str) -> str:
    """Return the key of a schedule with that name: the name itself, if it can be a key."""
    try:
        check_schedule_key(user_id, name)
    except InvalidId:
        return f"{slug(name)}-{digest(name)}"
    return name
