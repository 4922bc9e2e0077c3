"""The writes of an import: batches of puts, several at once, and deletes of schedules that are
gone.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from duetick.cli.transfer.plan import Here, PlannedPut
from duetick.client import ApiError, Client
from duetick.domain.schedule import Json
from duetick.operators import Operators

AT_ONCE: Final = 8
MOST_IN_A_BATCH: Final = 100
LARGEST_BATCH: Final = 128 * 1024
"""The most bytes of a batch: API Gateway and the API take 256 KB."""

MORE_TRIES: Final = frozenset({"not_tried", "store_unavailable"})
"""The errors after which the same put may succeed at once."""

LONGEST_WAIT: Final = 60
IDLE_ROUNDS: Final = 3
"""The rounds without any success after which it ends."""

TOO_MANY: Final = HTTPStatus.TOO_MANY_REQUESTS

SeePuts: TypeAlias = Callable[[int], object]
"""A function that hears how many schedules have been put since the last call."""


class PutResult(NamedTuple):
    """The result of one put: the schedule as it is now, or the error."""

    planned: PlannedPut
    schedule: Mapping[str, Any] | None
    error: Mapping[str, Any] | None = None
    warning: str | None = None
    retry_after: int | None = None


Placed: TypeAlias = tuple[int, PlannedPut]
"""A put, and its place in the plan."""


class Destination(Protocol):
    """The API, for one user or for all."""

    def put(self, bodies: Sequence[Mapping[str, Json]], *, dry_run: bool) -> list[Any]: ...
    def list_made_by(self, source: str) -> Iterator[Mapping[str, Any]]: ...
    def version(self, user: str | None, key: str) -> int: ...
    def delete(self, user: str | None, key: str) -> None: ...


class OneUser:
    """The API as one user sees it, or an operator for that user."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def put(self, bodies: Sequence[Mapping[str, Json]], *, dry_run: bool) -> list[Any]:
        """Put schedules, and return the answers."""
        mine = [{name: body[name] for name in body if name != "user"} for body in bodies]
        return [*self._client.put_many(mine, dry_run=dry_run)["schedules"]]

    def list_made_by(self, source: str) -> Iterator[Mapping[str, Any]]:
        """Yield the schedules that imports of a source made."""
        yield from self._client.list(state="all", label=f"import={source}")

    def version(self, user: str | None, key: str) -> int:
        """Return the version of a schedule."""
        del user
        return self._client.get(key).body["version"]

    def delete(self, user: str | None, key: str) -> None:
        """Delete a schedule."""
        del user
        self._client.delete(key)


class EveryUser:
    """The API as an operator sees it, for all users."""

    def __init__(self, operators: Operators) -> None:
        self._operators = operators

    def put(self, bodies: Sequence[Mapping[str, Json]], *, dry_run: bool) -> list[Any]:
        """Put schedules, each of which names its user, and return the answers."""
        return [*self._operators.put_many(bodies, dry_run=dry_run)["schedules"]]

    def list_made_by(self, source: str) -> Iterator[Mapping[str, Any]]:
        """Yield the schedules that imports of a source made."""
        yield from self._operators.schedules(state="all", label=f"import={source}")

    def version(self, user: str | None, key: str) -> int:
        """Return the version of a schedule."""
        return self._operators.of(user or "").get(key).body["version"]

    def delete(self, user: str | None, key: str) -> None:
        """Delete a schedule."""
        self._operators.of(user or "").delete(key)


def send(
    door: Destination,
    planned: Sequence[PlannedPut],
    *,
    dry_run: bool,
    takes_over: bool = False,
    see: SeePuts = lambda _count: None,
    sleep: Callable[[float], object] = time.sleep,
) -> list[PutResult]:
    """Send the puts of the plan. Return their results, in order.

    If a limit of the minute refuses a schedule, it is put again after that minute.
    """
    done: dict[int, PutResult] = {}
    waiting, idle = [*enumerate(planned)], 0
    while waiting and idle < IDLE_ROUNDS:
        found = _put_all(door, waiting, dry_run=dry_run, see=see)
        done |= found
        again = [(place, one) for place, one in waiting if _may_succeed(found[place])]
        if takes_over:
            again += _replace_versions(door, waiting, done)
        idle = 0 if len(again) < len(waiting) else idle + 1
        waiting = sorted(again, key=lambda pair: pair[0])
        if waiting:
            sleep(max(_wait_for(found[place]) for place, _ in waiting))
    return [done[place] for place in sorted(done)]


def _put_all(
    door: Destination, waiting: Sequence[Placed], *, dry_run: bool, see: SeePuts
) -> dict[int, PutResult]:
    """Put all once, several batches at a time."""

    def put(batch: Sequence[Placed]) -> dict[int, PutResult]:
        try:
            answers = door.put([one.body for _, one in batch], dry_run=dry_run)
        except ApiError as problem:
            if problem.status != TOO_MANY:
                raise
            told = {"error": problem.code, "message": str(problem)}
            return {
                place: PutResult(one, None, told, None, problem.retry_after or 1)
                for place, one in batch
            }
        pairs = zip(batch, answers, strict=True)
        see(sum(answer["error"] is None for answer in answers))
        return {
            place: PutResult(
                one, answer["schedule"], answer["error"], answer["warning"], answer["retryAfter"]
            )
            for (place, one), answer in pairs
        }

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found: dict[int, PutResult] = {}
        for part in pool.map(put, _batches(waiting)):
            found |= part
    return found


def _may_succeed(outcome: PutResult) -> bool:
    error = outcome.error
    return error is not None and (bool(outcome.retry_after) or error["error"] in MORE_TRIES)


def _wait_for(outcome: PutResult) -> int:
    """Return the seconds to wait before a put is repeated."""
    if outcome.error and outcome.error["error"] == "version_conflict":
        return 0
    return min(outcome.retry_after or 1, LONGEST_WAIT)


def _replace_versions(
    door: Destination, waiting: Sequence[Placed], done: Mapping[int, PutResult]
) -> list[Placed]:
    """Return the puts that replace the schedules which others made under these names."""
    return [
        (place, one.replace_version(door.version(*one.wanted.name)))
        for place, one in waiting
        if one.body["ifVersion"] == 0 and is_taken(done[place].error)
    ]


def is_taken(error: Mapping[str, Any] | None) -> bool:
    """Return True if a put was refused because there is another schedule, or another version."""
    return error is not None and error["error"] == "version_conflict"


def _batches(waiting: Sequence[Placed]) -> Iterator[list[Placed]]:
    batch: list[Placed] = []
    size = 0
    for place, one in waiting:
        added = len(json.dumps(dict(one.body)))
        if batch and (len(batch) == MOST_IN_A_BATCH or size + added > LARGEST_BATCH):
            yield batch
            batch, size = [], 0
        batch.append((place, one))
        size += added
    if batch:
        yield batch


def remove(
    door: Destination, gone: Sequence[Here], *, sleep: Callable[[float], object] = time.sleep
) -> list[tuple[Here, str]]:
    """Delete schedules. Return those that were not deleted, with the reasons."""

    def delete(one: Here) -> str | None:
        for _ in range(IDLE_ROUNDS):
            try:
                door.delete(one.user, one.key)
            except ApiError as problem:
                if problem.status == TOO_MANY and problem.retry_after:
                    sleep(min(problem.retry_after, LONGEST_WAIT))
                    continue
                return None if problem.code == "schedule_not_found" else str(problem)
            return None
        return "the limit of the minute is used up by others"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = [*pool.map(delete, gone)]
    return [(one, why) for one, why in zip(gone, answers, strict=True) if why is not None]
