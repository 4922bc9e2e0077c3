"""T-12: a line that the runbook looks for is in the log of the function that it names."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, TypeAlias, cast

import pytest
from duetick.core.managed.trigger import Trigger, keep_trigger
from duetick.core.store import Store
from duetick.core.wire import delivery_json
from duetick.domain import rows as domain_rows
from duetick.domain.errors import StoreUnavailable
from duetick.domain.schedule import IndexRow, Json, Schedule
from duetick.runtime import wiring
from duetick.runtime.managed import Managed
from flows import reminders

from tests.documents import OPERATORS, section
from tests.integration.events.recorded import Handle, event
from tests.integration.local_product import NINE, Clock

if TYPE_CHECKING:
    from duetick.ports.bells import Bells

RUNBOOK = section(OPERATORS, "Runbook")
LOOKS = sorted(set(re.findall(r"look (\w+)Log (\w+)", RUNBOOK)))
"""The functions, and how their logs are searched."""

Scene: TypeAlias = tuple[Store, Clock, pytest.MonkeyPatch]
Before: TypeAlias = Callable[[Scene], dict[str, object]]
"""What has to be so; the event that then comes."""


def raises(*_: object, **__: object) -> NoReturn:
    """Raise StoreUnavailable for any question."""
    raise StoreUnavailable("not now")


def put(scene: Scene) -> None:
    """Put a reminder of ann's at nine; it is nine."""
    store, clock, _ = scene
    given: Json = {"text": "good morning"}
    store.schedules.put(Schedule("ann", "hello", "0 9 * * *", "reminders", "remind", input=given))
    clock.now = NINE


def a_tick(_scene: Scene) -> dict[str, object]:
    """Nothing is due."""
    return event("scheduler")


def a_tick_without_a_store(scene: Scene) -> dict[str, object]:
    """Return the event of a tick that cannot claim."""
    put(scene)
    store, _, patch = scene
    patch.setattr(store.index, "claim_due", raises)
    return event("scheduler")


def a_tick_without_an_endpoint(scene: Scene) -> dict[str, object]:
    """Nothing listens where it delivers to."""
    put(scene)
    return event("scheduler")


def a_tick_with_a_bad_row(scene: Scene) -> dict[str, object]:
    """Its cron cannot be read."""
    put(scene)
    store, _, _ = scene
    store.index.upsert(IndexRow("ann", "hello", "99 * * * *", None, NINE))
    return event("scheduler")


def a_dispatch_that_fails(scene: Scene) -> dict[str, object]:
    """The action raises, at most once."""
    put(scene)
    store, _, patch = scene
    patch.setattr(reminders.logger, "info", raises)
    (claimed,) = store.index.claim_due(NINE)
    path = "/api/flows/reminders/schedules/ann~2Fhello/dispatch"
    return event("dispatch-iam") | {"path": path, "body": json.dumps(delivery_json(claimed))}


def an_audit_of_what_is_lost(scene: Scene) -> dict[str, object]:
    """A schedule has no row."""
    put(scene)
    store, _, _ = scene
    store.index.remove("ann", "hello")
    return event("audit")


def an_audit_of_a_wrong_time(scene: Scene) -> dict[str, object]:
    """A row waits for a time that nobody named."""
    put(scene)
    store, _, _ = scene
    kept = store.index.get("ann", "hello")
    assert kept
    store.index.upsert(replace(kept, next_fire_at=NINE + 60_000))
    return event("audit")


def an_audit_of_what_cannot_be_read(scene: Scene) -> dict[str, object]:
    """A tick has found it."""
    a_tick_with_a_bad_row(scene)
    store, _, _ = scene
    assert not store.index.claim_due(NINE)
    return event("audit")


def an_audit_of_what_is_late(scene: Scene) -> dict[str, object]:
    """No tick came for more than an hour."""
    put(scene)
    _, clock, _ = scene
    clock.now = NINE + 3_700_000
    return event("audit")


def an_audit_after_its_flow_went(scene: Scene) -> dict[str, object]:
    """The deployment has no such flow any more."""
    put(scene)
    store, _, _ = scene
    kept = store.schedules.get("ann", "hello")
    assert kept
    store.schedules.put(replace(kept, flow="absent"))
    return event("audit")


def an_audit_of_what_never_fired(scene: Scene) -> dict[str, object]:
    """Its row was moved by hand."""
    put(scene)
    store, clock, _ = scene
    kept = store.index.get("ann", "hello")
    assert kept
    store.index.upsert(replace(kept, next_fire_at=NINE + 86_400_000))
    clock.now = NINE + 3_700_000
    return event("audit")


def an_audit_after_new_rules(scene: Scene) -> dict[str, object]:
    """The package has another tzdata than when the schedule was put."""
    put(scene)
    store, _, patch = scene
    kept = store.schedules.get("ann", "hello")
    assert kept
    store.schedules.put(replace(kept, timezone="Europe/Berlin"))
    patch.setattr(domain_rows, "digest_of", lambda _zone: "other")
    return event("audit")


class Mute:
    """A queue to which messages go back, and bells that EventBridge does not take."""

    def put_back(self, receipt: str, seconds: int) -> None:
        """Let the message come again."""

    def names(self, prefix: str) -> tuple[str, ...]:
        """It has none."""
        return ()

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        return raises


def a_pack(scene: Scene) -> dict[str, object]:
    """Return the event of a pack whose occurrences do not exist."""
    _, _, patch = scene
    patch.setattr(wiring, "queue", Mute)
    return event("packs")


def a_pack_that_cannot_be_read(scene: Scene) -> dict[str, object]:
    """Return the event of a pack that somebody else has sent."""
    made = a_pack(scene)
    (message,) = event("packs")["Records"]
    return made | {"Records": [message | {"body": "hello"}]}


def a_pack_that_fails(scene: Scene) -> dict[str, object]:
    """Something is wrong with us."""
    _, _, patch = scene
    patch.setattr(wiring, "run_message", raises)
    return a_pack(scene)


def a_bell_that_cannot_be_made(scene: Scene) -> None:
    """The bell of a row is pending, and EventBridge does not take it."""
    put(scene)
    store, _, patch = scene
    keep_trigger(store, Trigger("", "bells", "role", "dispatch", "tick", None, settled=True))
    store.shelf.make_bells_pending([("ann", "hello")], NINE)
    patch.setattr(wiring, "is_managed", lambda: True)
    patch.setattr(
        wiring, "bells", lambda: Managed(store, bells=lambda _trigger: cast("Bells", Mute()))
    )


def a_tick_beside_such_a_bell(scene: Scene) -> dict[str, object]:
    """It tries again."""
    a_bell_that_cannot_be_made(scene)
    return event("scheduler")


def an_audit_beside_such_a_bell(scene: Scene) -> dict[str, object]:
    """It tries again, too."""
    a_bell_that_cannot_be_made(scene)
    return event("audit")


WRITTEN: dict[tuple[str, str], Before] = {
    ("Tick", "tick"): a_tick,
    ("Tick", "claim_failed"): a_tick_without_a_store,
    ("Tick", "delivery_failed"): a_tick_without_an_endpoint,
    ("Tick", "dead"): a_tick_with_a_bad_row,
    ("Dispatch", "dead"): a_dispatch_that_fails,
    ("Dispatch", "action_failed"): a_dispatch_that_fails,
    ("Dispatch", "pack"): a_pack,
    ("Dispatch", "pack_unreadable"): a_pack_that_cannot_be_read,
    ("Dispatch", "pack_failed"): a_pack_that_fails,
    ("Tick", "bell_failed"): a_tick_beside_such_a_bell,
    ("Migrate", "bell_failed"): an_audit_beside_such_a_bell,
    ("Migrate", "unindexed"): an_audit_of_what_is_lost,
    ("Migrate", "audit"): an_audit_of_what_is_lost,
    ("Migrate", "stale"): an_audit_of_a_wrong_time,
    ("Migrate", "unreadable"): an_audit_of_what_cannot_be_read,
    ("Migrate", "overdue"): an_audit_of_what_is_late,
    ("Migrate", "old_tzdata"): an_audit_after_new_rules,
    ("Migrate", "unaccounted"): an_audit_of_what_never_fired,
    ("Migrate", "gone"): an_audit_after_its_flow_went,
}


@pytest.fixture
def scene(handle: Handle, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The store that the handler uses, and its clock."""
    return store, clock, monkeypatch


@pytest.mark.parametrize(("function", "action"), LOOKS)
def test_t12_a_line_that_the_runbook_looks_for_is_in_that_log(
    handle: Handle,
    scene: Scene,
    caplog: pytest.LogCaptureFixture,
    function: str,
    action: str,
) -> None:
    given = WRITTEN[function, action](scene)
    caplog.clear()
    with caplog.at_level("INFO"), suppress(StoreUnavailable):
        handle(function.lower(), given)
    assert action in [vars(record).get("action") for record in caplog.records]
