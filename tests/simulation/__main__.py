"""Many stories, one after another: `python -m tests.simulation --store sqlite --seeds 1000`.

A story that fails is shrunk and told; then the command goes on. At the end it tells the crossings
of each boundary, and the faults that happened there.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.lab.credentials import DUMMY
from tests.lab.dynamodb import start_dynamodb_local
from tests.lab.postgres import EmbeddedPostgres
from tests.simulation.grounds import DynamoGround, Ground, PostgresGround, SqliteGround
from tests.simulation.story import Kind, story_of
from tests.simulation.telling import Teller, explain

TOLD_EVERY = 30.0
"""Seconds between two lines of progress."""


@contextmanager
def ground_of(store: str) -> Iterator[Ground]:
    """Yield the ground of that name, with its server."""
    with ExitStack() as started, tempfile.TemporaryDirectory(prefix="duetick-story-") as folder:
        if store == "postgres":
            postgres = EmbeddedPostgres()
            started.callback(postgres.remove)
            ground: Ground = PostgresGround(postgres.url)
        elif store == "dynamodb":
            dynamodb = start_dynamodb_local(Path(folder))
            started.callback(dynamodb.stop)
            ground = DynamoGround(dynamodb.endpoint)
        else:
            ground = SqliteGround(Path(folder))
        started.callback(ground.close)
        yield ground


def main() -> int:
    """Tell the stories. Return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description="Simulate ticks, dispatch and what befalls them.")
    parser.add_argument("--store", choices=("sqlite", "postgres", "dynamodb"), default="sqlite")
    parser.add_argument("--seeds", type=int, default=100, help="how many stories")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first one's seed")
    parser.add_argument("--inside", action="store_true", help="die between statements, too")
    parser.add_argument("--tell", action="store_true", help="tell each story, line by line")
    asked = parser.parse_args()
    os.environ.update(DUMMY)
    seeds = range(asked.first, asked.first + asked.seeds)
    with ground_of(asked.store) as ground:
        run = Run(Teller(ground, inside=asked.inside))
        run.tell(seeds, aloud=asked.tell)
    run.sum_up()
    return 1 if run.failed else 0


class Run:
    """The stories that were told so far."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self._began = self._said = time.monotonic()
        self.told = 0
        self.failed: list[int] = []
        self.crossed: Counter[str] = Counter()
        self.happened: Counter[tuple[str, Kind]] = Counter()

    def tell(self, seeds: range, *, aloud: bool) -> None:
        """Tell the story of each seed."""
        for seed in seeds:
            story = story_of(seed, inside=self._teller.inside)
            ended = self._teller.tell(story, aloud=aloud)
            self.told += 1
            self.crossed += ended.crossed
            self.happened += ended.happened
            if aloud:
                _say(explain(ended))
            if ended.flaws:
                self.failed.append(seed)
                _say(explain(self._teller.shrink(story)))
            if time.monotonic() - self._said > TOLD_EVERY:
                self._said = time.monotonic()
                _say(f"seed {seed}: {self._pace()}, {len(self.failed)} failed")

    def _pace(self) -> str:
        minutes = (time.monotonic() - self._began) / 60
        return f"{self.told} stories, {self.told / max(minutes, 0.01):.0f} a minute"

    def sum_up(self) -> None:
        """Tell the hits of each boundary, and the failed stories."""
        _say(f"\n{'boundary':<20}{'crossed':>9}{'dies':>12}{'away':>12}")
        for name, count in sorted(self.crossed.items()):
            dies = [self.happened[name, kind] for kind in ("dies before", "dies after")]
            away = [self.happened[name, kind] for kind in ("is refused", "is not answered")]
            _say(f"{name:<20}{count:>9}{_pair(dies):>12}{_pair(away):>12}")
        _say(f"{self._pace()}; failed: {self.failed or 'none'}")


def _pair(counts: list[int]) -> str:
    before, after = counts
    return f"{before} + {after}" if before or after else "-"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
