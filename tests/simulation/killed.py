"""A story in a process of its own, which is really killed if the story lets a process die."""

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn
from unittest import mock

from duetick.testing.conformance.samples import HOUR, MINUTE

from tests.conformance.chances import START
from tests.integration.claimers import forked
from tests.simulation.everything import BOOK
from tests.simulation.grounds import Ground, PostgresGround, SqliteGround
from tests.simulation.judging import flaws_of
from tests.simulation.slots import Process, Slots
from tests.simulation.story import Act, Fault, Story
from tests.simulation.world import World

STORY = Story(
    11,
    START,
    15 * MINUTE,
    (Act(START, "put", BOOK.key, BOOK), Act(START + 130_000, "run", BOOK.key, BOOK, 3)),
    slots=1,
    longest_pause=5,
)


@dataclass(frozen=True)
class Place:
    """The address of a database, for a process of its own."""

    address: str

    def ground(self) -> Ground:
        """Return the ground at the address, with its data."""
        if self.address.startswith("postgresql:"):
            return PostgresGround(self.address)
        return SqliteGround(Path(self.address))


def _kill(_slots: Slots, _process: Process) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nothing survives this")


def tell_until_killed(place: Place, fault: Fault) -> None:
    """Tell the story in this process. The fault kills it."""
    mock.patch.object(Slots, "kill", _kill).start()
    story = replace(STORY, faults=(fault,))
    World(story, place.ground(), inside=fault.boundary == "statement").lives()


def kill_there(place: Place, fault: Fault) -> int | None:
    """Tell the story in a process of its own. Return its exit code: the signal, below zero."""
    process = forked().Process(target=tell_until_killed, args=(place, fault))
    process.start()
    process.join(120)
    return process.exitcode


def flaws_after(place: Place) -> list[str]:
    """Go on an hour later, in this process, with the data that the dead one left."""
    ground = place.ground()
    after = replace(STORY, start=STORY.end + HOUR, span=5 * MINUTE)
    world = World(replace(after, acts=()), ground, names=[(BOOK.user_id, BOOK.key)])
    for name in world.names:
        world.look(*name)
    world.lives()
    found = flaws_of(world)
    ground.close()
    return found
