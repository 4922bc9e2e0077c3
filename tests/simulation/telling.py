"""A story is told on a ground, and judged. One that fails shrinks until a person can read it."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from duetick.domain.occurrence import Occurrence

from tests.simulation.grounds import Ground
from tests.simulation.judging import flaws_of, ledger_of
from tests.simulation.story import Kind, Story
from tests.simulation.tzdata import package_at_first
from tests.simulation.world import Alters, World

MOST_TRIES: Final = 250
"""The most stories that are told to make one shorter."""

SHRINK_SECONDS: Final = 60.0
"""Seconds after which a story is short enough: on a server, hundreds of stories take very long."""

MOST_LINES: Final = 120


@dataclass
class Ended:
    """The end of a story. `history` is the part that is the same on every store."""

    story: Story
    flaws: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    crossed: Counter[str] = field(default_factory=Counter)
    happened: Counter[tuple[str, Kind]] = field(default_factory=Counter)
    history: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Teller:
    """Tells stories on a ground. With `alters`, the store has a bug; with `inside`, processes die
    within a store, too; with `general`, all stores cross the same boundaries.
    """

    ground: Ground
    alters: Alters | None = None
    inside: bool = False
    general: bool = False
    elapsed: Callable[[], float] = time.monotonic

    def tell(self, story: Story, *, aloud: bool = False) -> Ended:
        """Tell a story from its beginning to its judgement."""
        self.ground.clear()
        with _silence(), package_at_first() as tzdata:
            how = self.alters, self.inside, self.general
            world = World(story, self.ground, *how, telling=aloud, tzdata=tzdata)
            world.lives()
            flaws = flaws_of(world)
            history = sorted(map(_line, ledger_of(world)))
        boundaries = world.boundaries
        return Ended(story, flaws, world.lines, boundaries.crossed, boundaries.happened, history)

    def shrink(self, story: Story) -> Ended:
        """Return the shortest story found in a minute that fails in the same way."""
        end = self.elapsed() + SHRINK_SECONDS
        wanted = kind_of(self.tell(story).flaws)
        tries = 0
        smaller = True
        while smaller:
            smaller = False
            for candidate in _shorter(story):
                tries += 1
                if tries > MOST_TRIES or self.elapsed() >= end:
                    return self.tell(story, aloud=True)
                if kind_of(self.tell(candidate).flaws) & wanted:
                    story, smaller = candidate, True
                    break
        return self.tell(story, aloud=True)


def kind_of(flaws: Iterable[str]) -> set[str]:
    """Return the promises that are broken: the ids, or the first words, of the flaws."""
    return {flaw.partition(":")[0] for flaw in flaws}


def _shorter(story: Story) -> Iterator[Story]:
    """Yield the story without a part of it: the large parts first."""
    for name in ("outages", "troubles", "faults", "acts"):
        parts = getattr(story, name)
        size = len(parts)
        while size:
            for start in range(0, len(parts), size):
                yield replace(story, **{name: parts[:start] + parts[start + size :]})
            size //= 2
    for simple in ({"skews": (0,)}, {"look_ahead": 0}, {"chunk": 1_000}, {"longest_pause": 0}):
        if any(getattr(story, name) != value for name, value in simple.items()):
            yield replace(story, **simple)
    for part in (8, 2):
        if story.span >= part * 60_000:
            yield replace(story, span=story.span // part)
            yield replace(story, span=story.span - story.span // part)


def explain(ended: Ended) -> str:
    """Return a failing story as a person reads it."""
    lines = ended.lines
    if len(lines) > MOST_LINES:
        left_out = f"… {len(lines) - MOST_LINES} lines …"
        lines = [*lines[: MOST_LINES // 2], left_out, *lines[-MOST_LINES // 2 :]]
    story = ended.story
    setting = (
        f"seed {story.seed}; {story.span // 60_000} minutes; clocks off by {story.skews} ms; "
        f"look-ahead {story.look_ahead // 1_000} s; {story.slots} slots; chunks of {story.chunk}; "
        f"by {'queue' if story.by_queue else 'API'}"
    )
    return "\n".join([setting, *lines, "", *ended.flaws[:10]])


def _line(one: Occurrence) -> str:
    """Return an occurrence as a line, without the parts that a store makes up."""
    origin = one.origin if one.origin == "schedule" else one.origin.partition(":")[0]
    end = one.range_end or one.nominal_at
    return (
        f"{one.user_id}/{one.key} {one.nominal_at}-{end} {origin}: {one.state} {one.reason} "
        f"{one.attempts} attempts, fence {one.fence}, due {one.due_at}, {one.updated_at}"
    )


@contextmanager
def _silence() -> Iterator[None]:
    """Keep the log lines of thousands of ticks to themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
