"""Crontabs of users, and of the system with a user in each line.

The rule for clocks that change and for days is that of Debian's cron, which is Duetick's own.
Additions of cronie and others are read, or refused with the text to write instead.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from duetick.cli.transfer.documents import lines_of
from duetick.cli.transfer.items import (
    NotReadable,
    RefusedItem,
    Remark,
    SourceItem,
    SourcePart,
    Timing,
    digest,
    slug,
    unreadable,
)
from duetick.domain.errors import say_count
from duetick.domain.expression import InvalidExpression, InvalidTimezone, check_zone, parse
from duetick.domain.redaction import redact_text

if TYPE_CHECKING:
    from duetick.domain.schedule import Json

FIELDS: Final = 5
VARIABLE: Final = re.compile(
    r"""\s*(?P<quote>["']?)(?P<name>[^\s"'=]+)(?P=quote)\s*=\s*(?P<value>.*?)\s*$"""
)
HALF_A_RANGE: Final = re.compile(r"(^|,)\d+/")
ZONE: Final = "CRON_TZ"
KEY: Final = "key"
NAMED: Final = re.compile(rf"#\s*{KEY}:\s*(\S.*)")
"""A comment that names the line below it, also one that is switched off: `# key: nightly`."""

REMARKS: Final = {
    ZONE: "the time zone of the lines below it",
    "TZ": "cron gives it to the command, and fires by the machine's zone; it is in {environment}",
    "MAILTO": "no mail is sent here: the history has each outcome, and the policy onFailure tells "
    "somebody of failures",
    "MAILFROM": "no mail is sent here",
    "RANDOM_DELAY": "no random delay is added here: the policy spread gives each schedule a fixed "
    "place in a window (--policies '{\"spread\": 300}')",
}
"""The treatment of a variable. Any other is a fact of the lines below it."""

MEANT: Final = {
    "@reboot": NotReadable(
        "nothing here boots, so the line names no time",
        "run the action where the machine starts: duetick schedules run KEY, or enqueue a job",
    ),
    "@every_minute": "* * * * *",
    "@every_second": NotReadable(
        "cron here resolves to the minute",
        "rate(1 second) in a deployment with look-ahead, or * * * * *",
    ),
}
"""Macros of other crons, and what they are here."""


@dataclass(slots=True)
class CrontabReader:
    """The reader of one crontab. `timezone` is the zone of its machine; None is UTC."""

    timezone: str | None = None
    with_user: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    _seen: Counter[str] = field(default_factory=Counter)
    _blank: int = 0
    _key: str | None = None

    def read(self, name: str, text: str) -> Iterator[SourcePart]:
        """Yield the items of a crontab."""
        for number, line in enumerate(lines_of(text), 1):
            found = self._read_line(f"{name}:{number}", line.strip())
            if found:
                yield found
        if self._blank:
            yield Remark(name, say_count(self._blank, "line"), "blank, or comments")

    def _read_line(self, place: str, line: str) -> SourcePart | None:
        if not line or line.startswith("#"):
            self._blank += 1
            named = NAMED.fullmatch(line)
            if named or _is_schedule(line.lstrip("#")):
                self._key = named[1] if named else None
            return None
        variable = VARIABLE.match(line)
        if variable:
            return self._set(place, line, variable["name"], variable["value"])
        try:
            return self._schedule(place, line)
        except NotReadable as problem:
            return RefusedItem(place, line, problem.why, problem.instead)

    def _set(self, place: str, line: str, name: str, value: str) -> Remark:
        plain = value[1:-1] if value[:1] == value[-1:] and value[:1] in ('"', "'") else value
        self.environment[name] = plain
        if name == ZONE:
            return Remark(place, line, REMARKS[ZONE])
        why = REMARKS.get(name, "the lines below have it in {environment}")
        return Remark(place, line, why)

    def _schedule(self, place: str, line: str) -> SourceItem:
        cron, rest, notes = _split_times(line)
        runs_as = None
        if self.with_user:
            runs_as, rest = (*rest.split(None, 1), "", "")[:2]
        if not rest:
            wanted = "times, a user and a command" if self.with_user else "times and a command"
            raise NotReadable(f"the line has too few parts: {wanted} are needed", HINT_OF_USER)
        command, stdin = split_command(rest)
        facts: dict[str, Json] = {
            "command": command,
            "stdin": stdin,
            "runs_as": runs_as,
            "environment": {**self.environment},
            "place": place,
        }
        timing = Timing(_check_cron(cron), self._zone())
        return SourceItem(place, line, self._name(runs_as, command), timing, facts, notes)

    def _zone(self) -> str | None:
        zone = self.environment.get(ZONE) or self.timezone
        try:
            check_zone(zone)
        except InvalidTimezone as problem:
            raise unreadable(problem, "a zone in CRON_TZ, or by --timezone") from None
        return zone

    def _name(self, runs_as: str | None, command: str) -> str:
        """Return a name that stays when the times of the line change.

        It is the key in the comment above the line, else one made of the command without its
        secrets.
        """
        key, self._key = self._key, None
        if key:
            return key
        named = f"{runs_as or ''}\0{redact_text(command)}"
        self._seen[named] += 1
        again = f"-{self._seen[named]}" if self._seen[named] > 1 else ""
        return f"{slug(_program(command))}-{digest(named)}{again}"


HINT_OF_USER: Final = (
    "--system for a crontab whose lines name a user (/etc/crontab, /etc/cron.d), --no-system for "
    "any other"
)


def _program(command: str) -> str:
    """Return the program of a command, without its folder and without variables before it."""
    words = [word for word in command.split() if "=" not in word] or ["command"]
    return words[0].rpartition("/")[2] or words[0]


def _split_times(line: str) -> tuple[str, str, Sequence[str]]:
    """Return the times of a line, the rest of the line, and the notes of differences here."""
    notes: list[str] = []
    if line.startswith("-"):
        line = line[1:].lstrip()
        notes.append("the hyphen before the minute kept cron from logging; here all is logged")
    if line.startswith("@"):
        macro, _, rest = line.replace("\t", " ").partition(" ")
        return _macro(macro.lower()), rest.strip(), notes
    parts = line.split(None, FIELDS)
    if any(HALF_A_RANGE.search(part) for part in parts[:FIELDS]):
        notes.append("Debian's cron reads no 5/15; here it is from 5 to the end, each fifteenth")
    if len(parts) < FIELDS:
        raise NotReadable(
            f"the line has {len(parts)} parts; five fields and a command are needed",
            "minute hour day-of-month month day-of-week command",
        )
    return " ".join(parts[:FIELDS]), parts[FIELDS] if len(parts) > FIELDS else "", notes


def _macro(name: str) -> str:
    meant = MEANT.get(name)
    if isinstance(meant, NotReadable):
        raise meant
    if meant is None and name[1:].isdigit():
        raise NotReadable(
            f"{name} waits from the end of one run to the begin of the next",
            f"rate({name[1:]} seconds), which counts from begin to begin (60 or more)",
        )
    return str(meant or name)


def _check_cron(cron: str) -> str:
    """Return the expression. Raises NotReadable with what to write instead."""
    if "~" in cron:
        raise NotReadable(
            "a range with ~ is a time that cron chooses at random",
            "one time, and the policy spread for a fixed place after it",
        )
    try:
        return parse(cron)
    except InvalidExpression as problem:
        raise unreadable(problem, "five fields such as 0 9 * * 1-5") from None


def _is_schedule(line: str) -> bool:
    """Return True if a comment is a line that is switched off."""
    try:
        cron, command, _ = _split_times(line.strip())
        return bool(command and _check_cron(cron))
    except NotReadable:
        return False


def split_command(text: str) -> tuple[str, str | None]:
    r"""Return the command, and its standard input: the text after the first %. `\%` is a %."""
    parts = re.split(r"(?<!\\)%", text)
    command, *lines = (part.replace(r"\%", "%") for part in parts)
    return command.rstrip(), "\n".join(lines) if lines else None
