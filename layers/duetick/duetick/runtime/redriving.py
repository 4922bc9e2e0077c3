"""The messages that came back too often go into the queue of packs once more.

That is always safe: a lease that is over begins nothing, and the holder of an old fence is refused.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from duetick.aws import AwsClient, client_of
from duetick.domain.errors import ConfigurationError
from duetick.domain.packs import ReceivedMessage, UnreadableMessage, read_message
from duetick.domain.transitions import lease_over

AT_ONCE: Final = 10
HIDDEN_SECONDS: Final = 60
"""The time for which a message is hidden while it is moved."""

DeadMessage: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class Redriven:
    """The messages that were moved, or that a dry run looked at, and their content.

    Of the `occurrences`, `alive` may begin yet. `unreadable` messages come back too often again,
    unless other code reads them. `left` is the approximate number of messages that are still dead.
    """

    dry_run: bool
    messages: int = 0
    occurrences: int = 0
    alive: int = 0
    unreadable: int = 0
    left: int = 0

    def add(self, message: DeadMessage, now: int) -> None:
        """Count a message."""
        self.messages += 1
        packs = _packs_of(message)
        if packs is None:
            self.unreadable += 1
            return
        every = [one for pack in packs.packs for one in pack]
        self.occurrences += len(every)
        self.alive += sum(not lease_over(one, now) for one in every)


def redrive(
    dead: str, queue: str, now: int, *, dry_run: bool, may_go_on: Callable[[], bool]
) -> Redriven:
    """Move the messages of the queue `dead` into the queue of packs. A dry run looks at some."""
    if not (dead and queue):
        raise ConfigurationError("This stack has no queue: its Transport is api.")
    done, sqs = Redriven(dry_run), client_of("sqs")
    for message in _receive(sqs, dead, dry_run=dry_run):
        done.add(message, now)
        if not dry_run:
            _move(sqs, message, dead, queue)
        if not may_go_on():
            break
    done.left = _count(sqs, dead)
    return done


def _receive(sqs: AwsClient, dead: str, *, dry_run: bool) -> Iterator[DeadMessage]:
    """Yield dead messages. A dry run looks once, and its messages stay."""
    hidden = 0 if dry_run else HIDDEN_SECONDS
    while True:
        found = sqs.receive_message(
            QueueUrl=dead,
            MaxNumberOfMessages=AT_ONCE,
            VisibilityTimeout=hidden,
            WaitTimeSeconds=1,
            AttributeNames=["MessageGroupId"],
        ).get("Messages", [])
        yield from found
        if dry_run or not found:
            return


def _move(sqs: AwsClient, message: DeadMessage, dead: str, queue: str) -> None:
    """Send a message, then delete it. If this ends between the two, it comes twice."""
    group = message.get("Attributes", {}).get("MessageGroupId", "redriven")
    sqs.send_message(QueueUrl=queue, MessageBody=message["Body"], MessageGroupId=group)
    sqs.delete_message(QueueUrl=dead, ReceiptHandle=message["ReceiptHandle"])


def _count(sqs: AwsClient, dead: str) -> int:
    name = "ApproximateNumberOfMessages"
    found = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=[name])
    return int(found["Attributes"][name])


def _packs_of(message: DeadMessage) -> ReceivedMessage | None:
    try:
        return read_message(message["Body"])
    except UnreadableMessage:
        return None
