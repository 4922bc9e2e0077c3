"""A-02: each fault that is planted in the ledger or in the definitions is found and named."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pytest
from duetick.core.store import Store
from duetick.core.verify import NOTE, Progress, verify
from duetick.domain.accounts import MOST_FAULTS, Problem
from duetick.domain.expression import learn, next_fire, rules_of
from duetick.domain.occurrence import Occurrence, ScheduleName
from duetick.domain.pausing import pause, resume
from duetick.domain.schedule import Schedule
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE, NOON
from duetick.testing.conformance.suite import drain, must

from tests.conformance.memory_shelf import MemoryShelf

NAME: ScheduleName = ("ada", "digest")
END = NOON + 4 * DAY
PAUSED, RESUMED = NOON + DAY + 5, NOON + DAY + 6 * HOUR + 5

Plant: TypeAlias = Callable[[MemoryShelf], None]


def lived() -> tuple[Store, MemoryShelf]:
    """Four days of an hourly schedule with a pause and a time without ticks, and another beside."""
    shelf = MemoryShelf()
    store = Store(shelf)
    for key in ("digest", "other"):
        store.schedules.put(Schedule("ada", key, "0 * * * *", "flow", "act"), now=NOON)
    for hour in range(1, 97):
        at = NOON + hour * HOUR + 1_000
        if hour == 25:
            made = must(store.schedules.get(*NAME))
            store.schedules.put(pause(made, "", None, PAUSED), now=PAUSED)
        if hour == 31:
            store.schedules.put(resume(must(store.schedules.get(*NAME))), now=RESUMED)
        if not 50 < hour < 56:
            drain(store, at)
    return store, shelf


def one(shelf: MemoryShelf, hour: int) -> Occurrence:
    return shelf.ledger[(*NAME, NOON + hour * HOUR, "schedule")]


def ranges(shelf: MemoryShelf, reason: str) -> Occurrence:
    found = [o for o in shelf.ledger.values() if o.range_end and o.reason == reason]
    return next(o for o in found if o.key == "digest")


def a_deleted_entry(shelf: MemoryShelf) -> None:
    del shelf.ledger[one(shelf, 10).identity]


def a_shifted_time(shelf: MemoryShelf) -> None:
    moved = one(shelf, 10)
    del shelf.ledger[moved.identity]
    after = replace(moved, nominal_at=moved.nominal_at + MINUTE)
    shelf.ledger[after.identity] = after


def an_entry_that_no_expression_names(shelf: MemoryShelf) -> None:
    extra = replace(one(shelf, 10), nominal_at=NOON + 10 * HOUR + 7 * MINUTE)
    shelf.ledger[extra.identity] = extra


def an_unrecorded_pause(shelf: MemoryShelf) -> None:
    del shelf.ledger[ranges(shelf, "paused").identity]


def an_unrecorded_downtime(shelf: MemoryShelf) -> None:
    del shelf.ledger[ranges(shelf, "missed").identity]


def a_range_that_counts_too_little(shelf: MemoryShelf) -> None:
    whole = ranges(shelf, "missed")
    shelf.ledger[whole.identity] = replace(whole, count=whole.count - 1)


def a_doubled_range(shelf: MemoryShelf) -> None:
    whole = ranges(shelf, "missed")
    longer = replace(whole, range_end=must(whole.range_end) + 3 * HOUR, count=whole.count + 3)
    shelf.ledger[whole.identity] = longer


def fired(shelf: MemoryShelf, hour: int) -> None:
    made = replace(one(shelf, 10), nominal_at=NOON + hour * HOUR)
    shelf.ledger[made.identity] = replace(made, state=State.SUCCEEDED, reason=Reason.FIRED)


def an_occurrence_that_fired_in_a_pause(shelf: MemoryShelf) -> None:
    """The ranges leave the occurrence out, as the end of a pause leaves out what it finds."""
    whole = ranges(shelf, "paused")
    assert (whole.nominal_at, whole.range_end) == (NOON + 25 * HOUR, NOON + 30 * HOUR)
    before = replace(whole, range_end=NOON + 27 * HOUR, count=3)
    after = replace(whole, nominal_at=NOON + 29 * HOUR, count=2)
    shelf.ledger |= {each.identity: each for each in (before, after)}
    fired(shelf, 28)


def an_occurrence_that_fired_after_the_delete(shelf: MemoryShelf) -> None:
    for hour in range(86, 97):
        del shelf.ledger[one(shelf, hour).identity]
    Store(shelf).schedules.delete(*NAME, now=NOON + 85 * HOUR + 5)
    fired(shelf, 92)


def a_range_whose_bounds_were_shifted(shelf: MemoryShelf) -> None:
    whole = ranges(shelf, "missed")
    moved = replace(whole, range_end=must(whole.range_end) + 20 * MINUTE)
    shelf.ledger[whole.identity] = moved


def a_purged_day(shelf: MemoryShelf) -> None:
    for hour in range(60, 84):
        shelf.ledger.pop((*NAME, NOON + hour * HOUR, "schedule"), None)


def a_lost_row(shelf: MemoryShelf) -> None:
    book = shelf.books[NAME]
    shelf.books[NAME] = replace(book, row=replace(must(book.row), next_fire_at=END + DAY))
    for hour in range(90, 97):
        shelf.ledger.pop((*NAME, NOON + hour * HOUR, "schedule"), None)


def an_altered_definition(shelf: MemoryShelf) -> None:
    dated = shelf.definitions[NAME]
    dated[0] = dated[0]._replace(cron="30 * * * *")


def an_altered_newest_definition(shelf: MemoryShelf) -> None:
    dated = shelf.definitions[NAME]
    dated[-1] = dated[-1]._replace(cron="30 * * * *")


def a_definition_that_is_gone(shelf: MemoryShelf) -> None:
    del shelf.definitions[NAME]


FAULTS: dict[str, tuple[Plant, Problem, int]] = {
    "a deleted entry": (a_deleted_entry, "missing", 1),
    "a shifted time": (a_shifted_time, "unexpected", 1),
    "an entry that no expression names": (an_entry_that_no_expression_names, "unexpected", 1),
    "an unrecorded pause": (an_unrecorded_pause, "missing", 6),
    "an unrecorded downtime": (an_unrecorded_downtime, "missing", 5),
    "a range that counts too little": (a_range_that_counts_too_little, "miscounted", 4),
    "a doubled range": (a_doubled_range, "doubled", 1),
    "a fire in a pause": (an_occurrence_that_fired_in_a_pause, "unexpected", 1),
    "a fire after the delete": (an_occurrence_that_fired_after_the_delete, "unexpected", 1),
    "a range with other bounds": (a_range_whose_bounds_were_shifted, "miscounted", 5),
    "a purged day": (a_purged_day, "missing", 24),
    "a lost row": (a_lost_row, "missing", 7),
    "an altered definition": (an_altered_definition, "unexpected", 1),
    "an altered newest definition": (an_altered_newest_definition, "undefined", 1),
    "a definition that is gone": (a_definition_that_is_gone, "undefined", 1),
}


def test_a02_a_life_with_a_pause_and_without_ticks_adds_up() -> None:
    store, _ = lived()
    found = verify(store, 0, END, now=END)
    assert (found.schedules, found.times, found.found) == (2, 192, {})


@pytest.mark.parametrize("fault", FAULTS)
def test_a02_each_planted_fault_is_found_and_named(fault: str) -> None:
    store, shelf = lived()
    plant, problem, count = FAULTS[fault]
    plant(shelf)
    found = verify(store, 0, END, now=END)
    named = [(schedule, one.counted) for schedule, one in found.faults if one.problem == problem]
    assert named[0] == ("ada/digest", count)
    assert {schedule for schedule, _ in found.faults} == {"ada/digest"}


def test_a02_times_are_told_under_the_rules_that_the_definition_names() -> None:
    """The zone's clock has changed since: the store has the old rules, the package does not."""
    shelf = MemoryShelf()
    store = Store(shelf)
    store.schedules.put(Schedule("ada", "digest", "0 9 * * *", "f", "a", "Europe/Berlin"), now=NOON)
    for day in range(1, 5):
        drain(store, NOON + day * DAY)
    rules = rules_of("Asia/Tokyo")
    name = learn(rules)
    shelf.zones[name.removeprefix("@")] = rules
    dated = shelf.definitions[NAME]
    assert verify(store, 0, END, now=END).found == {}
    dated[-1] = dated[-1]._replace(zone=name.removeprefix("@"))
    assert must(next_fire("0 9 * * *", name, NOON)) % DAY == 0
    for identity in [i for i in shelf.ledger if i[0] == "ada"]:
        moved = shelf.ledger.pop(identity)
        late = replace(moved, nominal_at=moved.nominal_at - 8 * HOUR)
        shelf.ledger[late.identity] = late
    assert verify(store, 0, END, now=END).found == {}


def test_a02_a_pause_that_ended_after_the_last_pass_is_verified_as_a_whole() -> None:
    """Its range is missing: only a verification that begins with the pause can see that."""
    store, shelf = lived()
    an_unrecorded_pause(shelf)
    found = verify(store, RESUMED - HOUR, END, now=END)
    assert [(one.problem, one.counted) for _, one in found.faults] == [("missing", 6)]


def test_a02_a_range_that_reaches_into_the_span_is_counted_as_a_whole() -> None:
    store, shelf = lived()
    whole = ranges(shelf, "missed")
    shelf.ledger[whole.identity] = replace(whole, count=1_000)
    found = verify(store, whole.nominal_at + HOUR, END, now=END)
    assert [one.problem for _, one in found.faults] == ["miscounted"]


def test_a02_definitions_of_an_earlier_release_owe_nothing() -> None:
    store, shelf = lived()
    shelf.definitions[NAME] = [one._replace(standing="unknown") for one in shelf.definitions[NAME]]
    a_purged_day(shelf)
    assert verify(store, 0, END, now=END).found == {}


def test_a02_the_faults_of_one_schedule_are_bounded() -> None:
    store, shelf = lived()
    an_altered_definition(shelf)
    found = verify(store, 0, END, now=END)
    assert sum(found.found.values()) <= MOST_FAULTS + 2


def test_a02_a_note_of_a_newer_release_is_read_in_part() -> None:
    shelf = MemoryShelf()
    shelf.keep_note(NOTE, '{"verified_until": 5, "of a newer one": 1}')
    assert Progress.load(Store(shelf)) == Progress(verified_until=5)
