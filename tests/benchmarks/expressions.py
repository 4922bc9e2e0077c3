"""The time of the next fire, beside croniter and cronsim: CPU time, ratios of one run.

    python -m tests.benchmarks.expressions

Fails where a ratio is below what the module promises.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

import croniter
import cronsim
from duetick.domain.claims import Templates, due_row
from duetick.domain.expression import InvalidExpression, fields, next_fire, parse, texts
from duetick.domain.expression.zones import ZONES as ZONES_READ
from duetick.domain.policies import Policies
from duetick.domain.schedule import IndexRow

AFTER = 1_790_000_000_123
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York"),
    *("Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca"),
)
SHAPES = (
    *("* * * * *", "*/5 * * * *", "{m} * * * *", "{m} */2 * * *", "*/15 9-17 * * 1-5"),
    *("{m} {h} * * *", "{m} 2 * * *", "0 {h},18 * * *", "{m} {h} * * 1-5", "{m} {h} * * 0"),
    *("0 {h} 1 * *", "{m} {h} 1,15 * *", "{m} {h} L * *", "0 {h} * * 1#2", "{m} {h} 1 1 *"),
    *("{m} {h} 29 2 *",),
)
IMPOSSIBLE = ("0 0 31 2 *", "0 0 30 2 *", "* * 31 2,4,6,9,11 *", "0 0 5 * */7#5", "0 0 30W 2 *")
ROWS, GROUPS = 10_000, 2_304
FIRES = 50
BATCH = {"croniter": 100.0}
POLICIES = Policies()

Pair = tuple[str, str]


def cpu(work: Callable[[], object], times: int = 1) -> float:
    """Return the CPU microseconds of the quickest of three runs, each of `times` items."""
    took = []
    for _ in range(3):
        began = time.process_time()
        work()
        took.append((time.process_time() - began) / times * 1e6)
    return min(took)


def expressions(wanted: int) -> list[str]:
    """Return different expressions, of every shape in turn."""
    texts = (
        shape.format(m=number % 60, h=number // 60 % 24)
        for number in range(60 * 24)
        for shape in SHAPES
    )
    return list(dict.fromkeys(texts))[:wanted]


def pairs(wanted: int) -> list[Pair]:
    """Return different pairs of an expression and a zone."""
    each = expressions(wanted // len(ZONES))
    return [(text, zone) for text in each for zone in ZONES]


def own_texts(wanted: int) -> list[Pair]:
    """Return `wanted` pairs, each with a text of its own."""
    return [(text, ZONES[at % len(ZONES)]) for at, text in enumerate(expressions(wanted))]


def local(zone: str) -> datetime:
    """Return the instant asked about, as the others want it."""
    return datetime.fromtimestamp(AFTER // 1000, ZoneInfo(zone))


def cold() -> dict[str, float]:
    """Measure expressions that are met for the first time. The zones are known."""
    asked = pairs(GROUPS)

    def ours() -> None:
        for text, zone in asked:
            forget()
            next_fire(text, zone, AFTER)

    starts = {zone: local(zone) for zone in ZONES}
    return {
        "ours": cpu(ours, len(asked)),
        "croniter": cpu(
            lambda: [croniter.croniter(t, starts[z]).get_next(float) for t, z in asked], len(asked)
        ),
        "cronsim": cpu(lambda: [next(cronsim.CronSim(t, starts[z])) for t, z in asked], len(asked)),
    }


def warm() -> dict[str, float]:
    """Fifty fires, one after the other, of expressions that have been read already."""
    asked = [(text, zone) for text in expressions(len(SHAPES)) for zone in ZONES]
    times = len(asked) * FIRES

    def ours() -> None:
        for text, zone in asked:
            after: int | None = AFTER
            for _ in range(FIRES):
                after = next_fire(text, zone, after or AFTER)

    sims = [cronsim.CronSim(text, local(zone)) for text, zone in asked]
    iters = [croniter.croniter(text, local(zone)) for text, zone in asked]
    return {
        "ours": cpu(ours, times),
        "croniter": cpu(lambda: [each.get_next(float) for each in iters * FIRES], times),
        "cronsim": cpu(lambda: [next(each) for each in sims * FIRES], times),
    }


def each_group_once(rows: list[Pair], ask: Callable[[str, str], object]) -> None:
    """Answer every row, working out each different pair of text and zone once."""
    known: dict[Pair, object] = {}
    for row in rows:
        if row not in known:
            known[row] = ask(*row)


def batch(groups: list[Pair]) -> dict[str, float]:
    """Measure a claim of 10,000 rows: by a process that ticks each minute, and by one just started.

    The one just started has read no text, no field and no zone.
    """
    rows = [groups[number * 7919 % len(groups)] for number in range(ROWS)]
    due = [IndexRow("ada", "digest", *row, AFTER, policies=POLICIES) for row in rows]
    starts = {zone: local(zone) for zone in ZONES}

    def ours() -> None:
        each_group_once(rows, lambda text, zone: next_fire(text, zone, AFTER))

    def at_first() -> None:
        forget()
        ZONES_READ.clear()
        ours()

    def theirs(text: str, zone: str) -> float:
        return croniter.croniter(text, starts[zone]).get_next(float)

    return {
        "ours at the first tick": cpu(at_first, ROWS),
        "ours": cpu(ours, ROWS),
        "ours with the whole decision": cpu(partial(decided, due), ROWS),
        "croniter": cpu(lambda: [theirs(*row) for row in rows], ROWS),
        "croniter, each group once": cpu(lambda: each_group_once(rows, theirs), ROWS),
    }


def decided(rows: list[IndexRow]) -> None:
    """Decide as a claim on DynamoDB does, misfire policy and all."""
    templates = Templates(AFTER + 1, 0)
    for row in rows:
        templates.of(due_row(row, None))


def forget() -> None:
    """Forget every text and every field that was read."""
    texts.EXPRESSIONS.clear()
    fields.READINGS.clear()


def imports() -> dict[str, float]:
    """Import alone, over a bare interpreter; least of fifteen."""
    bare = min(_child("pass") for _ in range(15))
    names = {"ours": "duetick.domain.expression", "croniter": "croniter", "cronsim": "cronsim"}
    return {
        who: min(_child(f"import {name}") for _ in range(15)) - bare for who, name in names.items()
    }


def _child(code: str) -> float:
    specs = (find_spec("duetick"), find_spec("tzdata"))
    paths = [str(Path(spec.origin or "").parents[1]) for spec in specs if spec]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path += {paths}; {code}"], check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e6


def refusals() -> float:
    """Measure the slowest refusal of an impossible expression that was never seen before."""
    return max(cpu(partial(_refused, text)) for text in IMPOSSIBLE)


def _refused(text: str) -> None:
    forget()
    try:
        parse(text)
    except InvalidExpression:
        return
    raise AssertionError(f"{text} was read")


def main() -> int:
    """Print each comparison with its promise, and return the exit status."""
    kept = [
        show("warm", warm(), {"croniter": 12, "cronsim": 5}),
        show("cold", cold(), {"croniter": 1}),
        show("batch of 10,000 rows, 2,304 groups of 384 texts", batch(pairs(GROUPS)), BATCH),
        show("batch of 10,000 rows, 2,304 groups and texts", batch(own_texts(GROUPS)), BATCH),
        show("import", imports(), {"croniter": 5}),
    ]
    slowest = refusals()
    print(f"impossible expressions: refused in {slowest:.0f} µs at most (promised: under 1,000)")
    return int(not all(kept) or slowest >= 1_000)


def show(title: str, took: dict[str, float], promised: dict[str, float]) -> bool:
    """Print one comparison, every way of ours; say whether the promises for "ours" were kept."""
    print(f"{title}:")
    for who, micros in took.items():
        print(f"    {micros:.2f} µs {who}")
    for way in (each for each in took if each.startswith("ours")):
        for who in (each for each in took if not each.startswith("ours")):
            least = promised.get(who) if way == "ours" else None
            told = f" (promised: {least:g})" if least else ""
            print(f"    {took[who] / took[way]:.1f} times as fast as {who}: {way}{told}")
    for who, least in promised.items():
        below = [each for each in took if took[who] < took[each] * least and each[:4] == "ours"]
        print(f"    {least:g} times {who} is not reached by: {', '.join(below) or 'none'}")
    return all(took[who] / took["ours"] >= least for who, least in promised.items())


if __name__ == "__main__":
    sys.exit(main())
