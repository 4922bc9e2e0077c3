"""T-12: the hourly audit counts the faults that a tick does not see, and names the first."""

import logging
from dataclasses import replace

import pytest

from duetick.core.audit import MOST_NAMED, Audit, audit
from duetick.core.store import Store
from duetick.domain import rows
from duetick.domain.pausing import pause, resume
from duetick.domain.schedule import FLOW_USER
from duetick.testing.conformance.rebuild import drift
from duetick.testing.conformance.samples import BAD, DAY, HOUR, MINUTE, NOON, SOON, row, schedule
from duetick.testing.conformance.suite import StoreSuite, drain, must

BERLIN = "Europe/Berlin"


class AuditLines(logging.Handler):
    """The lines of an audit."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[dict[str, object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line."""
        self.told.append(vars(record))

    def list_named(self, finding: str) -> list[tuple[object, object]]:
        """Return the schedules and flows that the lines of a finding name."""
        errors = (one for one in self.told if one["levelno"] == logging.ERROR)
        return [(one["schedule"], one["flow"]) for one in errors if one["action"] == finding]


def run_audit(store: Store, now: int) -> tuple[Audit, AuditLines]:
    """Return the counts of an audit, and its lines."""
    lines, logger = AuditLines(), logging.getLogger("duetick.audit")
    logger.addHandler(lines)
    try:
        return audit(store, now), lines
    finally:
        logger.removeHandler(lines)


class AuditConformance(StoreSuite):
    """T-12: the hourly audit counts the faults that a tick does not see."""

    def test_t12_a_sound_store_has_active_schedules_and_no_findings(self, store: Store) -> None:
        store.schedules.put(schedule("on", timezone=BERLIN), now=NOON)
        store.schedules.put(schedule("off", enabled=False), now=NOON)
        store.schedules.put(schedule("mail/nightly", user=""), now=NOON)
        store.schedules.put(schedule("once", cron="at(2027-03-01T13:00:00)"), now=NOON)
        store.index.upsert(row("alone", at=NOON + DAY))
        assert audit(store, NOON) == Audit(active=4)
        drain(store, NOON + HOUR)
        counted, lines = run_audit(store, NOON + HOUR)
        assert (counted, lines.told) == (Audit(active=3), [])

    def test_t12_a_schedule_without_its_row_is_counted_and_named(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.index.remove("ada", "digest")
        counted, lines = run_audit(store, NOON)
        assert counted == Audit(unindexed=1)
        assert lines.list_named("unindexed") == [("ada/digest", "reminders")]

    def test_t12_a_row_that_waits_for_a_wrong_time_is_stale(self, store: Store) -> None:
        drift(store, NOON + HOUR)
        counted, lines = run_audit(store, NOON)
        assert counted == Audit(active=1, stale=1)
        assert lines.list_named("stale") == [("ada/digest", "reminders")]
        store.rebuild(now=NOON)
        assert audit(store, NOON) == Audit(active=1)

    def test_t12_a_row_that_should_not_be_there_is_stale(self, store: Store) -> None:
        store.schedules.put(schedule(enabled=False), now=NOON)
        store.index.upsert(row(at=NOON + DAY))
        assert audit(store, NOON) == Audit(active=1, stale=1)

    @pytest.mark.parametrize("late", [0, MINUTE, HOUR])
    def test_t12_a_row_that_a_tick_may_still_come_for_is_not_overdue(
        self, store: Store, late: int
    ) -> None:
        store.schedules.put(schedule(), now=NOON)
        assert audit(store, NOON + DAY + late) == Audit(active=1)

    def test_t12_a_row_that_is_due_for_more_than_an_hour_is_overdue(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(schedule("mail/nightly", user=""), now=NOON)
        store.index.upsert(row("alone", at=NOON + DAY))
        late = NOON + DAY + HOUR + 1
        counted, lines = run_audit(store, late)
        assert counted == Audit(active=3, overdue=3)
        told = {("nightly", "reminders"), ("ada/alone", ""), ("ada/digest", "reminders")}
        assert set(lines.list_named("overdue")) == told
        drain(store, late)
        assert audit(store, late) == Audit(active=3)

    def test_t12_what_cannot_be_read_is_counted_until_it_is_mended(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, timezone="Gone/Zone", next_fire_at=NOON))
        store.index.upsert(row("alone", cron=BAD))
        drain(store, SOON)
        for _hour in range(2):
            counted, lines = run_audit(store, SOON)
            assert counted == Audit(unreadable=2)
            assert {told for told, _ in lines.list_named("unreadable")} == {
                "ada/digest",
                "ada/alone",
            }
        assert store.index.restore("ada", "digest", now=SOON)
        store.index.remove("ada", "alone")
        assert audit(store, SOON) == Audit(active=1)

    def test_t12_an_active_schedule_of_an_older_tzdata_is_counted_until_it_is_defined_anew(
        self, store: Store
    ) -> None:
        made = store.schedules.put(schedule(timezone=BERLIN), now=NOON)
        store.schedules.put(schedule("everywhere"), now=NOON)
        store.schedules.put(schedule("off", timezone=BERLIN, enabled=False), now=NOON)
        store.index.upsert(row("alone", timezone=BERLIN, at=NOON + DAY))
        drain(store, NOON + HOUR)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "digest_of", lambda _zone: "other")
            counted, lines = run_audit(store, NOON + HOUR)
        assert counted == Audit(active=3, old_tzdata=1)
        assert lines.list_named("old_tzdata") == [("ada/digest", "reminders")]
        paused = store.schedules.put(pause(made, "", None, NOON + HOUR), now=NOON + HOUR)
        store.schedules.put(resume(paused), now=NOON + 2 * HOUR)
        assert audit(store, NOON + 2 * HOUR) == Audit(active=3)

    def test_t12_each_finding_names_the_first_of_many(self, store: Store) -> None:
        for number in range(MOST_NAMED + 2):
            store.index.upsert(row(f"k{number:02}", user=f"{FLOW_USER}x", at=NOON))
        counted, lines = run_audit(store, NOON + DAY)
        assert counted.overdue == MOST_NAMED + 2
        assert len(lines.list_named("overdue")) == MOST_NAMED
