"""The script for a real account: a question that it cannot ask is a finding, not its end."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.cloud.check import CHECKS, Failed, Stack, deliveries_arrive, run


class Session:
    """Clients with given answers."""

    def __init__(self, **totals: float) -> None:
        self._totals = totals

    @property
    def client(self) -> Callable[..., Any]:
        return lambda *_args, **_kwargs: self

    def get_metric_statistics(self, **asked: object) -> dict[str, Any]:
        assert asked["Dimensions"] == [{"Name": "service", "Value": "duetick"}]
        total = self._totals.get(str(asked["MetricName"]))
        return {"Datapoints": [] if total is None else [{"Sum": total}]}


class Refusing:
    """An account that lets nothing be asked."""

    @property
    def client(self) -> Callable[..., Any]:
        def refuse(*_args: object, **_kwargs: object) -> None:
            raise ClientError(
                {"Error": {"Code": "AccessDenied", "Message": "not allowed"}}, "DescribeStacks"
            )

        return refuse


def test_what_may_not_be_asked_is_told_line_by_line() -> None:
    found = list(run(Stack("duetick", Refusing())))
    assert [passed for _, passed, _ in found] == [False] * len(CHECKS)
    assert all("AccessDenied" in text for _, _, text in found)


@pytest.mark.parametrize("totals", [{}, {"Delivered": 7}, {"Delivered": 7, "Failed": 2}])
def test_deliveries_that_arrive_pass(totals: dict[str, float]) -> None:
    told = deliveries_arrive(Stack("duetick", Session(**totals)))
    assert told.startswith(f"{totals.get('Delivered', 0):.0f} ")


def test_deliveries_of_which_none_arrives_are_found() -> None:
    with pytest.raises(Failed, match="none of 3"):
        deliveries_arrive(Stack("duetick", Session(Failed=3)))
