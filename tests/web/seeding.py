"""A week of a real store, with every state and most reasons."""

from typing import Final

from duetick.client import Client, Fields
from duetick.core.static import register
from duetick.domain.attempts import Begun
from duetick.domain.schedule import IndexRow, Json
from duetick.operators import Operators
from duetick.runtime import wiring

from tests.integration.local_product import NINE, Product
from tests.web.mailing import HOSTILE

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
TUESDAY: Final = NINE - HOUR
"""2026-12-01T08:00:00Z: nine o'clock in Berlin."""

NOW: Final = NINE + DAY + HOUR
"""2026-12-02T10:00:00Z, a Wednesday."""

HOSTILE_USER: Final = '"><img src=x onerror="window.hacked=\'user\'">'
HOSTILE_KEY: Final = "</b><script>window.hacked='key'</script>"
BERLIN: Final = "Europe/Berlin"


def order(cron: str, fails: str = "", **more: Json) -> Fields:
    """Return a schedule of the flow of mails."""
    wanted: Fields = {"fails": fails} if fails else {"topic": "news"}
    return {"cron": cron, "flow": "mailing", "action": "send", "input": wanted, **more}


def operators(running: Product, why: str = "") -> Operators:
    """Return the operators' view of everything."""
    return Operators(running.stack.server.url, token=running.stack.operator, why=why)


def seed(running: Product) -> None:
    """Live through a week, up to `NOW`."""
    clock = running.clock
    clock.now = NOW - 8 * DAY
    running.store.migrate()
    register(running.store, wiring.flows().static(), "")
    _made(running)
    while clock.now < NOW - DAY - 22 * HOUR:
        _tick(running, clock.now + 2 * HOUR)
    running.operator("ann").pause("digest", note="holidays")
    _asked(operators(running, why="the partner is down"))
    while clock.now < NOW - 6 * HOUR:
        _tick(running, clock.now + HOUR)
    clock.now += 4 * HOUR  # nobody ticks for a while
    while clock.now < NOW:
        _tick(running, clock.now + 15 * MINUTE)
    _now(running)


def _tick(running: Product, at: int) -> None:
    running.clock.now = at
    running.tick()


def _made(running: Product) -> None:
    ann, bob, cat = map(running.operator, ("ann", "bob", "cat"))
    ann.put("digest", order("0 9 * * *", timezone=BERLIN, labels={"team": "garden"}))
    ann.put("report", order("0 8 * * MON", "The printer is out of paper.", timezone=BERLIN))
    ann.put("invoice", _billed("30 6 * * *", "The bank did not answer."))
    bob.put("ping", order("*/15 * * * *"))
    told: Fields = {"onFailure": "tell"}
    bob.put("sync", order("0 */6 * * *", HOSTILE, policies=told))
    bob.put("spread", order("0 10 * * *", policies={"spread": 7_200}))
    bob.put("crm", order("@hourly", externalId="crm-7"))
    cat.put("once", order("at(2026-11-27T10:00:00)"))
    cat.put("twice", order("0 12 * * *", policies={"maxRuns": 2}))
    cat.put("broken", order("0 7 * * *"))
    cat.put("left", order("0 5 * * *"))
    cat.put("moved", order("0 6 * * *"))
    hostile = running.operator(HOSTILE_USER)
    hostile.put(HOSTILE_KEY, order("@hourly", HOSTILE, labels={HOSTILE: HOSTILE}))


def _billed(cron: str, fails: str) -> Fields:
    return {"cron": cron, "flow": "billing", "action": "charge", "input": {"fails": fails}}


def _asked(asked: Operators) -> None:
    """Order something, as operators do in between."""
    asked.pause("flow:billing", note=f"the bank is down {HOSTILE}", until="2026-12-01T12:00:00Z")
    asked.pause("user:cat", note="asked for by cat", until="2026-12-01T00:00:00Z")
    asked.limit("user:bob", parallel=2, note="a noisy neighbour")
    asked.limit("action:mailing/send", rate=500, per="hour")
    asked.of("cat").change("moved", {"cron": "0 7 * * *"})
    asked.of("cat").delete("left")


def _now(running: Product) -> None:
    """Put something under way: handed on, running, waiting, unreadable, jobs, a backfill."""
    store, clock = running.store, running.clock
    ann, bob = running.operator("ann"), running.operator("bob")
    _jobs(ann)
    running.tick()
    store.index.upsert(IndexRow("cat", "broken", "x y z", None, clock.now))
    for key in ("runs", "handed", "cancelled"):
        bob.put(key, order("* * * * *"))
    clock.now += MINUTE
    claimed = {one.key: one for one in store.index.claim_due(clock.now)}
    assert isinstance(store.ledger.begin(claimed["runs"], now=clock.now), Begun)
    _changed(running, claimed["cancelled"].id)
    span: Fields = {"from": "2026-11-26T00:00:00Z", "to": "2026-11-28T00:00:00Z"}
    started = bob.start_backfill("ping", {**span, "onlyMissing": False}, dry_run=False)
    assert started["started"]
    bob.stop_backfill(started["started"]["id"])


def _jobs(ann: Client) -> None:
    work: Fields = {"flow": "mailing", "action": "send", "input": {"topic": "news"}}
    ann.enqueue({**work, "delay": 3 * 24 * 3_600, "labels": {"team": "garden"}})
    ann.enqueue({**work, "input": {"fails": HOSTILE}})
    ann.enqueue(work)


def _changed(running: Product, name: str) -> None:
    asked = operators(running, why=f"not wanted {HOSTILE}").occurrences
    asked.cancel(name)
    dead = next(one for one in asked.list({"state": "dead", "user": "ann", "key": "invoice"}))
    asked.delete(dead["id"], of=("ann", "invoice"))
