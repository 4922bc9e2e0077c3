"""T-12: "none active that should be" rings by the counts alone; its expressions are calculated."""

import ast
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import pytest

from tests.template.parsed import Deployment, Values, template

HOUR: Final = 3_600
Series: TypeAlias = dict[int, float]
"""Values by the hour; an hour without one is missing."""


def alarm() -> Values:
    found: Values = Deployment().resources["NoneActiveAlarm"]["Properties"]
    return found


def diff(series: Series) -> Series:
    """CloudWatch's DIFF: each value less the one before it in the series."""
    hours = sorted(series)
    return {hour: series[hour] - series[before] for before, hour in pairwise(hours)}


def calculate(node: ast.expr, known: dict[str, Series], hour: int) -> float | None:
    """Return the value of an expression at an hour; None if a part of it is missing."""
    match node:
        case ast.Constant(int() as value):
            return value
        case ast.Name(name):
            return known[name].get(hour)
        case ast.Compare(left, [ast.Eq()], [right]):
            pair = calculate(left, known, hour), calculate(right, known, hour)
            return None if None in pair else float(pair[0] == pair[1])
        case ast.BoolOp(ast.And(), parts):
            each = [calculate(part, known, hour) for part in parts]
            return None if None in each else float(all(each))
        case ast.Call(ast.Name("IF"), [condition, yes, no]):
            chosen = calculate(condition, known, hour)
            return None if chosen is None else calculate(yes if chosen else no, known, hour)
        case ast.Call(ast.Name("DIFF"), [ast.Name(name)]):
            return diff(known[name]).get(hour)
    raise NotImplementedError(ast.dump(node))


def rings(counts: Sequence[int | None]) -> bool:
    """Return True if the alarm rings after these counts, hour by hour; None is a missing count."""
    given = alarm()
    window = dict(enumerate(counts[-given["EvaluationPeriods"] :]))
    known: dict[str, Series] = {}
    for one in given["Metrics"]:
        if "MetricStat" in one:
            known[one["Id"]] = {at: count for at, count in window.items() if count is not None}
            continue
        text = ast.parse(one["Expression"].replace(" AND ", " and "), mode="eval").body
        values = ((at, calculate(text, known, at)) for at in window)
        known[one["Id"]] = {at: value for at, value in values if value is not None}
    (shown,) = [one["Id"] for one in given["Metrics"] if one["ReturnData"]]
    breaching = [value for value in known[shown].values() if value >= given["Threshold"]]
    return len(breaching) >= int(given["DatapointsToAlarm"])


@pytest.mark.parametrize(
    "counts", [[5, 0, 0], [1, 0, 0], [0, 0, 9, 0, 0], [5, None, 0, 0], [5, 0, None, 0]]
)
def test_t12_two_counts_of_none_after_one_of_some_ring(counts: list[int | None]) -> None:
    assert rings(counts)


@pytest.mark.parametrize(
    "counts",
    [
        [],
        [0],
        [0, 0, 0, 0, 0],
        [None, None, 0, 0],
        [5, 0],
        [5, 5, 5, 5],
        [0, 5, 0],
        [5, 0, 3, 0],
        [5, 4, 3, 2],
        [None, None, None],
        [5, 5, None, 0],
    ],
)
def test_t12_a_new_stack_one_count_of_none_and_missing_counts_do_not_ring(
    counts: list[int | None],
) -> None:
    assert not rings(counts)


def test_t12_no_setting_says_how_many_schedules_should_be_active() -> None:
    given = alarm()
    assert not [name for name in template()["Parameters"] if "Active" in name]
    assert "MetricName" not in given
    (stat,) = [one["MetricStat"] for one in given["Metrics"] if "MetricStat" in one]
    assert (stat["Metric"]["MetricName"], stat["Stat"], stat["Period"]) == (
        "Active",
        "Minimum",
        HOUR,
    )
    assert given["TreatMissingData"] == "notBreaching"
