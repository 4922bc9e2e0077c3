"""M-05, D-05: a row may have any name; one that no path carries ends at once, and says why."""

import pytest
from duetick import Flow
from duetick.core.store import Store
from duetick.domain.errors import StoreUnavailable
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import IndexRow
from duetick.domain.states import Reason, State
from duetick.testing import FakeClock, Stage
from duetick.testing.conformance.samples import HOSTILE

from tests.delivery.scene import MINUTE, NINE

UNCARRIED = [
    ("a/b", "c", "a slash would make part of it look like the key"),
    ("", "nightly", "a row without a user is a static schedule's"),
    ("", "mail/nightly", "It names its flow"),
    ("ann", "", "''"),
    ("ann", "..", "'..'"),
    ("ann", "a//b", "''"),
    ("ann", " ", "blank"),
    ("ann", "tab\there", "U+0009"),
    ("ann", "x" * 200, "128 are allowed"),
]


def row(user_id: str, key: str, flow: str = "") -> IndexRow:
    """Return a row that is due at nine and tries again after each failure."""
    policies = Policies(delivery=Delivery.AT_LEAST_ONCE)
    return IndexRow(user_id, key, "0 9 * * *", None, NINE, flow, policies=policies)


def staged(store: Store) -> tuple[Stage, list[str]]:
    """Return a stage whose rows run an action, and the ids of the schedules that ran."""
    flow, ran = Flow("mail"), list[str]()
    flow.action("send")(lambda _given, ctx: ran.append(ctx.schedule_id))
    return Stage(flow, clock=FakeClock(NINE), store=store, row_flow="mail/send"), ran


def test_m05_a_row_that_no_path_carries_ends_rejected_at_its_first_delivery(
    each_store: Store,
) -> None:
    stage, ran = staged(each_store)
    for user_id, key, _ in UNCARRIED:
        each_store.index.upsert(row(user_id, key))
    each_store.index.upsert(row("ann", "good"))
    report = stage.tick()
    assert (report.failed, report.rejected, report.delivered) == (9, 9, 1)
    assert ran == ["ann/good"]
    for user_id, key, why in UNCARRIED:
        (dead,) = each_store.ledger.find(user_id, key)
        assert (dead.state, dead.reason, dead.attempts) == (State.DEAD, Reason.REJECTED, 1)
        assert why in str(dead.error)
        assert "Put the row under another name." in str(dead.error)
    assert stage.tick(MINUTE).claimed == 0


def test_m05_so_does_one_whose_flow_no_path_carries(store: Store) -> None:
    stage, _ = staged(store)
    store.index.upsert(row("ann", "digest", "mail?x=/../"))
    assert stage.tick().rejected == 1
    assert store.ledger.find("ann", "digest")[0].reason is Reason.REJECTED


def test_d05_a_row_with_a_hostile_name_is_delivered(each_store: Store) -> None:
    stage, ran = staged(each_store)
    for name in HOSTILE:
        each_store.index.upsert(row(name, f"{name}/{name}"))
    assert stage.tick().rejected == 0
    assert sorted(ran) == sorted(f"{name}/{name}/{name}" for name in HOSTILE)


def test_t12_what_the_tick_rejects_is_logged_as_dead(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    stage, _ = staged(store)
    store.index.upsert(row("a/b", "c"))
    stage.tick()
    (line,) = [one for one in caplog.records if one.name == "duetick.deaths"]
    assert (line.__dict__["user"], line.__dict__["reason"]) == ("a/b", Reason.REJECTED)


def test_t07_what_cannot_be_rejected_now_is_at_its_next_delivery(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("The database did not answer.")

    stage, _ = staged(store)
    store.index.upsert(row("a/b", "c"))
    with monkeypatch.context() as patch:
        patch.setattr(store.ledger, "begin", away)
        assert (stage.tick().failed, stage.tick().rejected) == (1, 0)
    stage.tick(MINUTE)
    assert store.ledger.find("a/b", "c")[0].reason is Reason.REJECTED
