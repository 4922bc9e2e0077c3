"""Compare the module with the oracle, at every change of every zone: a million cases or more.

    python -m tests.benchmarks.oracle        # all of it
    python -m tests.benchmarks.oracle 16     # every sixteenth change, and a sixteenth of the floors

Fails if one case is wrong, or if a part checked fewer than its floor. A case counts once for each
clock: questions under the clock's further names are told beside it, and not counted.
"""

import sys
import time
from collections.abc import Callable, Iterable
from itertools import islice
from random import Random

from tests.unit.expression import cases, oracle

SEED = 20_200_101
FLOORS = {
    "every change of every clock, 2020 to 2037": 1_000_000,
    "changes by other than an hour, 1900 to 2019": 80_000,
    "clocks with seconds, second by second": 10_000,
    "rare dates, day by day": 1_000,
}


def main(share: int) -> int:
    """Run the four parts, print the count of each, and return the exit status."""
    random, groups = Random(SEED), cases.clocks()
    print(f"{len(groups)} clocks under {sum(map(len, groups))} names", flush=True)
    every = (
        (names, change)
        for names in groups
        for change in oracle.changes(names[0], cases.second(2020), cases.second(2038))
    )

    def check(changes: Iterable[tuple[list[str], int]], wanted: int, step: int = 60) -> cases.Tally:
        tally = cases.Tally()
        for names, change in islice(changes, 0, None, share):
            cases.check_change(random, names, change, tally, wanted=wanted, step=step)
        return tally

    def seconds() -> cases.Tally:
        return check(random.sample(list(cases.inner_changes(groups)), 150), 8, step=1)

    def dates() -> cases.Tally:
        tally = cases.Tally()
        for _ in range(1_000 // share):
            cases.check_dates(random, tally)
        return tally

    parts = (lambda: check(every, 14), lambda: check(cases.odd_changes(groups), 8), seconds, dates)
    tallies = [
        _part(title, floor // share, part)
        for (title, floor), part in zip(FLOORS.items(), parts, strict=True)
    ]
    wrong = sum(len(tally.wrong) for tally in tallies)
    print(f"{sum(tally.cases for tally in tallies):,} cases, {wrong} wrong")
    enough = all(
        tally.cases >= floor // share for tally, floor in zip(tallies, FLOORS.values(), strict=True)
    )
    return int(bool(wrong) or not enough)


def _part(title: str, floor: int, work: Callable[[], cases.Tally]) -> cases.Tally:
    began = time.process_time()
    tally = work()
    print(
        f"{title}: {tally.cases:,} cases (floor {floor:,}) at {tally.changes:,} changes, "
        f"{tally.again:,} more under other names, {time.process_time() - began:.0f} s"
    )
    print("\n".join(tally.wrong[:20]), end="", flush=True)
    return tally


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
