"""However much is under way of one schedule, its item can be written."""

from dataclasses import replace

from boto3.dynamodb.types import TypeDeserializer
from duetick.domain.policies import Overlap, Policies
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import State
from duetick.ports import Event
from duetick.stores.dynamodb.claim import MOST_OPEN
from duetick.stores.dynamodb.items import Entity, read, write
from duetick.stores.dynamodb.occurrences import MOST_EVENTS, Entry, slot_of

NOON = 1_800_014_400_000
LARGEST_ITEM = 400 * 1024
POLICIES = Policies(overlap=Overlap.ALLOW)
ROW = IndexRow("ada", "digest", "* * * * *", None, NOON, policies=POLICIES)
TRACE = (Event(NOON, State.PROCESSING, State.RETRYING, "雨" * 200),) * MOST_EVENTS


def failing(number: int) -> Entry:
    """One that has failed often, in a language of many bytes."""
    held = Occurrence("ada", "digest", "* * * * *", None, NOON + number * 60_000, fence=40)
    held = replace(held, id="occ_" + "a" * 24, state=State.RETRYING, due_at=NOON, attempts=40)
    return Entry(replace(held, policies=POLICIES, error="雨" * 500), TRACE)


def holding(count: int) -> Entity:
    entries = map(failing, range(count))
    return Entity("ada", "digest", row=ROW, open={slot_of(e.occurrence): e for e in entries})


def size(value: object) -> int:
    """As the service counts, and more rather than less."""
    if isinstance(value, dict):
        return 3 + sum(len(str(name)) + 1 + size(inner) for name, inner in value.items())
    return len(str(value).encode())


def test_j13_hundreds_of_failures_of_one_schedule_fit_its_item() -> None:
    item = write(holding(MOST_OPEN), 1, NOON)
    plain = {name: TypeDeserializer().deserialize(value) for name, value in item.items()}
    assert size(plain) < LARGEST_ITEM
    kept = read(item).open.values()
    assert len(kept) == MOST_OPEN
    assert {entry.occurrence.attempts for entry in kept} == {40}


def test_j05_a_few_keep_their_whole_trace() -> None:
    kept = read(write(holding(10), 1, NOON)).open.values()
    assert {entry.events for entry in kept} == {TRACE}
    assert {entry.occurrence.error for entry in kept} == {"雨" * 500}
