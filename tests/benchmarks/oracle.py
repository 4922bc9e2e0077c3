"""Compare the module with the oracle, at every change of every zone: a million cases or more.

    python -m tests.benchmarks.oracle

Fails where one case is wrong, or where fewer were checked than the floor.
"""

import sys
import time
from collections.abc import Iterable
from random import Random

from tests.unit.expression import cases, oracle

FLOOR = 1_000_000
SEED = 20_200_101


def main() -> int:
    """Run the four parts, print what each checked, and return the exit status."""
    random, tally, groups = Random(SEED), cases.Tally(), cases.clocks()
    every = (
        (names, change)
        for names in groups
        for change in oracle.changes(names[0], cases.second(2020), cases.second(2038))
    )
    _part("every change of every zone, 2020 to 2037", every, random, tally, wanted=12)
    odd = cases.odd_changes(groups)
    _part("changes by other than an hour, 1900 to 2019", odd, random, tally, wanted=6)
    inner = list(cases.inner_changes(groups))
    sample = random.sample(inner, 150)
    _part("clocks with seconds, second by second", sample, random, tally, wanted=6, step=1)
    _dates(random, tally)
    print("\n".join(tally.wrong[:20]))
    print(f"{tally.cases:,} cases at {tally.changes:,} changes, {len(tally.wrong)} wrong")
    if tally.cases < FLOOR:
        print(f"fewer than the floor of {FLOOR:,}")
    return int(bool(tally.wrong) or tally.cases < FLOOR)


def _part(
    title: str,
    changes: Iterable[tuple[list[str], int]],
    random: Random,
    tally: cases.Tally,
    *,
    wanted: int,
    step: int = 60,
) -> None:
    began, before = time.process_time(), (tally.cases, tally.changes)
    for names, change in changes:
        cases.check_change(random, names, change, tally, wanted=wanted, step=step)
    checked, at = tally.cases - before[0], tally.changes - before[1]
    took = time.process_time() - began
    print(f"{title}: {checked:,} cases at {at:,} changes, {took:.0f} s", flush=True)


def _dates(random: Random, tally: cases.Tally) -> None:
    before = tally.cases
    for _ in range(1_000):
        cases.check_dates(random, tally)
    print(f"rare dates, day by day: {tally.cases - before:,} cases", flush=True)


if __name__ == "__main__":
    sys.exit(main())
