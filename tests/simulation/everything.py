"""One short story that crosses every boundary, so that a process can die at each of them."""

from dataclasses import replace
from typing import Final

from duetick.domain.policies import Backoff, Delivery, Overlap, Policies, Retry
from duetick.domain.schedule import Schedule
from duetick.testing.conformance.samples import MINUTE, SECOND

from tests.conformance.chances import START, USER
from tests.simulation.story import STATIC, Act, Story, Verb

TWICE: Final = Retry(Backoff.FIXED, attempts=3, first=30)
MAIL: Final = Schedule(USER, "k0", "* * * * *", "flow", "mail")
BOOK: Final = replace(
    MAIL,
    key="k1",
    action="book",
    policies=Policies(delivery=Delivery.EFFECTIVELY_ONCE, retry=TWICE, overlap=Overlap.WAIT),
)
LIMITED: Final = replace(
    MAIL,
    key="k2",
    policies=Policies(
        delivery=Delivery.AT_LEAST_ONCE, retry=TWICE, max_runs=3, after_completion="delete"
    ),
)

LATER: Final = replace(MAIL, key="k3", action="later", timezone="Europe/Berlin")
LEAVING: Final = replace(MAIL, user_id="eve", key="k4", cron="*/7 * * * *")
STATIC_MAIL: Final = replace(MAIL, user_id="", key=STATIC)

BORN: Final = (MAIL, BOOK, LIMITED, LATER, LEAVING)

PLAN: Final[tuple[tuple[int, Verb, Schedule], ...]] = (
    (2, "deploy", STATIC_MAIL),
    (3, "look", MAIL),
    (4, "call", MAIL),
    (5, "run", BOOK),
    (5, "cancel", BOOK),
    (6, "pause", MAIL),
    (8, "resume", MAIL),
    (9, "lose the row", BOOK),
    (10, "set the row back", MAIL),
    (11, "break the row", BOOK),
    (12, "backfill", MAIL),
    (13, "restore the row", BOOK),
    (14, "other input", MAIL),
    (15, "retime", BOOK),
    (16, "run", MAIL),
    (17, "purge", MAIL),
    (18, "audit", MAIL),
    (18, "retry", MAIL),
    (18, "discard", MAIL),
    (17, "lift a limit", MAIL),
    (12, "pause a group", MAIL),
    (13, "resume a group", MAIL),
    (19, "delete", MAIL),
    (20, "new tzdata", LATER),
    (16, "enqueue", MAIL),
    (18, "cancel a job", MAIL),
    (22, "erase", LEAVING),
)
"""What is done in which minute, and to which schedule."""


LIMITED_AT: Final = 14 * MINUTE + 5
"""When a tick has read the orders and leased what it hands on, and dispatch has not begun it."""


def everything(seed: int = 7) -> Story:
    """Return the story of half an hour in which everything is done once."""
    births = [Act(START, "put", one.key, one) for one in BORN]
    acts = [
        Act(START + minute * MINUTE + 20 * SECOND, verb, one.key, one, number=5)
        for minute, verb, one in PLAN
    ]
    acts.append(Act(START + LIMITED_AT, "limit", MAIL.key, MAIL, number=5))
    acts.sort(key=lambda act: act.at)
    return Story(seed, START, 24 * MINUTE, (*births, *acts), slots=4, longest_pause=5)


RUNG: Final[tuple[tuple[int, Verb, Schedule], ...]] = (
    (3, "pause", MAIL),
    (5, "resume", MAIL),
    (6, "audit", MAIL),
    (7, "retime", LATER),
    (9, "delete", LATER),
    (10, "put", LATER),
    (11, "audit", MAIL),
    (12, "erase", LEAVING),
    (14, "pause", BOOK),
    (16, "resume", BOOK),
)
"""The actions while bells ring, each with its minute."""


def everything_rung(seed: int = 7) -> Story:
    """Return the story of a move to bells, of all that happens to bells, and of the move back."""
    births = [Act(START, "put", one.key, one) for one in BORN]
    acts = [
        Act(START + minute * MINUTE + 20 * SECOND, verb, one.key, one, number=4)
        for minute, verb, one in RUNG
    ]
    moves = [Act(START + minute * MINUTE, "move", "") for minute in (1, 22)]
    every = sorted([*births, *acts, *moves], key=lambda act: act.at)
    return Story(seed, START, 24 * MINUTE, tuple(every), slots=4, longest_pause=5)
