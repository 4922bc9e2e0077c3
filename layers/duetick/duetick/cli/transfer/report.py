"""The report of an import: a line for each part of the source, with its fate here."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from duetick.cli.showing import field
from duetick.cli.transfer.plan import Here, ImportPlan, PlannedPut
from duetick.cli.transfer.sending import PutResult, is_taken
from duetick.domain.redaction import redact_text

COLUMNS: Final = (
    field("PLACE", "place"),
    field("SOURCE", "text"),
    field("WHAT", "what"),
    field("KEY", "key"),
    field("CRON", "cron"),
    field("HOW, OR WHY NOT", "how"),
)

WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "new": ("would be new", "new"),
    "changed": ("would change", "changed"),
    "same": ("stays", "stays"),
    "edited": ("stays, edited here", "stays, edited here"),
    "refused": ("refused", "refused"),
    "no schedule": ("no schedule", "no schedule"),
    "gone": ("gone from the source", "gone from the source"),
    "removed": ("would be removed", "removed"),
}
"""Each verdict in words: of a dry run, and of the import."""

WRITING: Final = ("new", "changed", "removed")
"""The verdicts by which something is written."""

TAKEN: Final = (
    "its key is taken here by a schedule that no import of this source made: --prefix names the "
    "imported ones otherwise, --take-over replaces that one"
)
MOVED: Final = "the schedule was changed here while this ran: import again"
OVERWRITTEN: Final = "it was changed here too, and is as in the source now"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report. `verdict` is a word of `WORDS`."""

    place: str
    text: str
    verdict: str
    user: str | None = None
    key: str | None = None
    cron: str | None = None
    how: str | None = None

    def show(self, *, dry_run: bool) -> dict[str, Any]:
        """Return the line as a table and a JSON document show it, without secrets."""
        return {
            "place": self.place,
            "text": redact_text(self.text),
            "what": WORDS[self.verdict][0 if dry_run else 1],
            "verdict": self.verdict,
            "user": self.user,
            "key": self.key,
            "cron": self.cron,
            "how": redact_text(self.how),
        }


def lines(plan: ImportPlan, outcomes: Sequence[PutResult], left: Mapping[Here, str]) -> list[Line]:
    """Return the lines of a report: the puts, the schedules that are gone, the items that are none.

    `left` are the schedules that are gone from the source, each with its verdict.
    """
    put = {id(one.planned.wanted): one for one in outcomes}
    found = [_line(one, put.get(id(one.wanted))) for one in plan.planned]
    found += [
        Line(one.place, one.text, "refused", how=f"{one.why}. Instead: {one.instead}.")
        for one in plan.refused
    ]
    found += [Line(one.place, one.text, "no schedule", how=one.why) for one in plan.remarks]
    found += [
        Line("-", "-", verdict, one.user, one.key, how=_of_gone(verdict))
        for one, verdict in left.items()
    ]
    return found


def _of_gone(verdict: str) -> str | None:
    if verdict == "gone":
        return "it is not in the source any more; --remove deletes it"
    return None


def _line(one: PlannedPut, outcome: PutResult | None) -> Line:
    wanted = one.wanted
    place, text = wanted.item.place, wanted.item.text
    named = wanted.user, wanted.key
    if outcome and outcome.error:
        return Line(place, text, "refused", *named, how=_why(outcome.error, one))
    made = outcome.schedule if outcome else None
    cron = str((made or wanted.definition).get("cron"))
    notes = [*wanted.item.notes]
    if one.was_edited:
        notes.append(OVERWRITTEN)
    if outcome and outcome.warning:
        notes.append(outcome.warning)
    return Line(place, text, one.step, *named, cron, "; ".join(notes) or None)


def _why(error: Mapping[str, Any], one: PlannedPut) -> str:
    if is_taken(error):
        return TAKEN if one.step == "new" else MOVED
    return str(error["message"])


def count_verdicts(found: Sequence[Line]) -> Counter[str]:
    """Count the lines by their verdict."""
    return Counter(one.verdict for one in found)


def sum_up(found: Sequence[Line], *, dry_run: bool) -> str:
    """Return the sentence at the end of a report."""
    numbers = count_verdicts(found)
    parts = [f"{numbers[word]:,} {said[0 if dry_run else 1]}" for word, said in WORDS.items()]
    told = [part for part, word in zip(parts, WORDS, strict=True) if numbers[word]]
    end = " --yes does it." if dry_run and any(numbers[word] for word in WRITING) else ""
    return f"{', '.join(told) or 'Nothing was found'}.{end}"
