"""However much is under way of one schedule, its item can be written."""

from dataclasses import replace

from boto3.dynamodb.types import TypeDeserializer
from duetick.core.ids import new_id
from duetick.domain.attempts import Outcome, settle
from duetick.domain.book import Book
from duetick.domain.failures import Event
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from duetick.stores.dynamodb import quick
from duetick.stores.dynamodb.items import BookItem, fill, write
from duetick.stores.dynamodb.occurrences import MOST_EVENTS, MOST_OPEN, Entry, number, slot_of
from duetick.stores.dynamodb.table import Item

from tests.unit.listed import ListedPages

NOON = 1_800_014_400_000
LARGEST_ITEM = 400 * 1024
POLICIES = Policies(overlap=Overlap.ALLOW)
ROW = IndexRow("ada", "digest", "* * * * *", None, NOON, policies=POLICIES)
TRACE = (Event(NOON, State.PROCESSING, State.RETRYING, "雨" * 200),) * MOST_EVENTS


def failing(number: int) -> Entry:
    """Return an occurrence that has failed often, in a language of many bytes."""
    held = Occurrence("ada", "digest", "* * * * *", None, NOON + number * 60_000, fence=40)
    held = replace(held, id="occ_" + "a" * 24, state=State.RETRYING, due_at=NOON, attempts=40)
    return Entry(replace(held, policies=POLICIES, error="雨" * 500), TRACE)


def blank() -> Book:
    return Book("ada", "digest", ListedPages(), new_id)


def holding(count: int) -> BookItem:
    book = blank()
    book.row = ROW
    entries = map(failing, range(count))
    return BookItem(book, open={slot_of(e.occurrence): e for e in entries})


def kept_by(item: Item) -> list[Entry]:
    return [*fill(blank(), item).open.values()]


def size(value: object) -> int:
    """Return the size as the service counts, or more."""
    if isinstance(value, dict):
        return 3 + sum(len(str(name)) + 1 + size(inner) for name, inner in value.items())
    return len(str(value).encode())


def test_j13_failures_of_all_that_may_be_under_way_fit_the_item_of_their_schedule() -> None:
    item = write(holding(MOST_OPEN), 1, NOON, NOON)
    plain = {name: TypeDeserializer().deserialize(value) for name, value in item.items()}
    assert size(plain) < LARGEST_ITEM
    kept = kept_by(item)
    assert len(kept) == MOST_OPEN
    assert {entry.occurrence.attempts for entry in kept} == {40}


def test_j05_a_few_keep_their_whole_trace() -> None:
    kept = kept_by(write(holding(10), 1, NOON, NOON))
    assert {entry.events for entry in kept} == {TRACE}
    assert {entry.occurrence.error for entry in kept} == {"雨" * 500}


def test_j05_a_failure_that_nothing_is_read_for_fills_no_more_than_its_share() -> None:
    """The general way sees the whole item, and writes a longer text."""
    retried = Policies(delivery=Delivery.AT_LEAST_ONCE)
    running = replace(failing(0).occurrence, state=State.PROCESSING, attempts=1, policies=retried)
    failed = settle(running, Outcome(State.FAILED, Reason.FAILED, "雨" * 500), NOON)
    update = quick.settle(failed, NOON)
    assert update.values[":most"] == number(8)
    assert len(kept_by(write(holding(MOST_OPEN), 1, NOON, NOON))[0].events) == 8
