"""The calculated costs of a deployment: inputs decide, and the READMEs repeat the results."""

import re
from dataclasses import fields, replace

import pytest
from duetick.cli.costs import (
    BACKENDS,
    LOOK_AHEADS,
    WAYS,
    Backend,
    Usage,
    at_rest,
    bells_at_rest,
    bells_per_million,
    every,
    look_ahead,
    over,
    per_million,
    queue_at_rest,
    scheduler_per_million,
    storage,
    table,
)
from duetick.cli.main import main
from duetick.cli.prices import GB_SECOND, PUBLISHED, SOURCES, Prices

from tests.documents import TEXT
from tests.template.parsed import template

WITH_EACH_TICK = ("EventBridge Scheduler", "Lambda, ticks", "CloudWatch, logs", "DynamoDB, reads")


def test_a_fire_on_dynamodb_costs_its_counted_units() -> None:
    lines = per_million("dynamodb")
    assert lines["DynamoDB, writes"] == pytest.approx(6.1 * 0.625)
    assert lines["DynamoDB, reads"] == pytest.approx(2 * 0.125)
    assert lines["API Gateway"] == 3.50


def test_a_tick_each_minute_is_43_830_calls_a_month() -> None:
    assert at_rest("dynamodb")["EventBridge Scheduler"] == pytest.approx(0.04383)


def test_t13_what_ticks_cost_falls_with_the_cadence() -> None:
    often, seldom = (at_rest("dynamodb", Usage(tick_minutes=each)) for each in (1, 30))
    for line in WITH_EACH_TICK:
        assert often[line] == pytest.approx(30 * seldom[line])


def test_the_proxy_bills_eight_units_whatever_the_cluster_has() -> None:
    assert at_rest("aurora")["RDS Proxy"] == pytest.approx(8 * 730.5 * 0.015)
    assert at_rest("aurora", Usage(aurora_units=16))["RDS Proxy"] == pytest.approx(
        16 * 730.5 * 0.015
    )


def test_looking_ahead_a_minute_is_a_function_that_never_ends() -> None:
    always = look_ahead(60, Usage(tick_seconds=0))["Lambda, ticks"]
    assert always == pytest.approx(730.5 * 3_600 * 0.5 * 0.0000133334)


def test_two_minutes_ahead_are_two_ticks_at_once() -> None:
    one, two = (look_ahead(seconds)["Lambda, ticks"] for seconds in (60, 120))
    assert two == pytest.approx(2 * one, rel=0.01)


def test_what_a_tick_takes_anyway_is_not_counted_twice() -> None:
    busy = Usage(tick_seconds=20)
    least, more = at_rest("postgres", busy)["Lambda, ticks"], look_ahead(60, busy)
    calls = 730.5 * 60 * 0.20 / 1_000_000
    always = look_ahead(60, Usage(tick_seconds=0))["Lambda, ticks"]
    assert least - calls + more["Lambda, ticks"] == pytest.approx(always)
    assert look_ahead(10, busy)["Lambda, ticks"] == 0


def test_looking_ahead_costs_by_memory_architecture_and_cadence() -> None:
    small = look_ahead(120)["Lambda, ticks"]
    x86 = Prices(lambda_gb_second=GB_SECOND["x86_64"])
    assert look_ahead(120, Usage(memory_gb=1))["Lambda, ticks"] == pytest.approx(2 * small)
    assert look_ahead(120, prices=x86)["Lambda, ticks"] == pytest.approx(1.25 * small, rel=1e-4)
    assert look_ahead(120, Usage(tick_minutes=2))["Lambda, ticks"] == pytest.approx(small / 2)


def test_what_is_assumed_is_what_the_template_says() -> None:
    given = template()["Parameters"]
    assert Usage().memory_gb * 1024 == float(given["MemorySize"]["Default"])
    assert Prices().lambda_gb_second == GB_SECOND[given["Architecture"]["Default"]]
    assert [0, *LOOK_AHEADS] == [int(n) for n in given["LookAheadSeconds"]["AllowedValues"]]


@pytest.mark.parametrize(
    ("backend", "most"), [("postgres", 0.60), ("aurora", 0.60), ("dynamodb", 4.60)]
)
def test_a_million_fires_in_packs_of_a_hundred_costs_no_more_than_that(
    backend: Backend, most: float
) -> None:
    assert sum(per_million(backend, over("queue")).values()) <= most


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_lone_fire_costs_no_more_by_the_queue_than_by_the_api(backend: Backend) -> None:
    alone = replace(over("queue"), pack_fires=1.0)
    assert sum(per_million(backend, alone).values()) <= sum(per_million(backend).values())


def test_a_pack_costs_three_requests_and_one_call_however_many_fires_it_has() -> None:
    alone, packed = (per_million("postgres", replace(over("queue"), pack_fires=n)) for n in (1, 50))
    assert alone["SQS"] == pytest.approx(3 * 0.50)
    assert packed["SQS"] == pytest.approx(alone["SQS"] / 50)
    assert packed["CloudWatch, logs"] == pytest.approx(alone["CloudWatch, logs"] / 50)


def test_a_line_for_each_success_costs_its_kilobytes_on_each_transport() -> None:
    line = Usage().success_log_kb / 1_024**2 * 0.50 * 1_000_000
    for way in WAYS:
        none, each = (
            per_million("postgres", replace(Usage(), way=way, log_successes=share))
            for share in (0.0, 1.0)
        )
        assert each["CloudWatch, logs"] - none["CloudWatch, logs"] == pytest.approx(line)


def test_an_empty_queue_costs_its_polls_and_its_alarms() -> None:
    with_queue, without = (sum(at_rest("postgres", over(way)).values()) for way in ("queue", "api"))
    assert with_queue - without == pytest.approx(sum(queue_at_rest().values()))
    assert queue_at_rest()["SQS, polls"] == pytest.approx(5 * 3 * 60 * 730.5 * 0.40 / 1_000_000)


@pytest.mark.parametrize("backend", BACKENDS)
def test_s01_a_ring_pays_eventbridge_and_neither_the_gateway_nor_a_tick(backend: Backend) -> None:
    rung, by_tick = per_million(backend, over("managed")), per_million(backend)
    assert rung["EventBridge Scheduler"] == 1.00
    assert {"API Gateway", "Lambda, ticks", "SQS"}.isdisjoint(rung)
    assert sum(rung.values()) < sum(by_tick.values())


def test_s01_a_ring_on_dynamodb_costs_its_counted_units() -> None:
    lines = per_million("dynamodb", over("managed"))
    assert lines["DynamoDB, writes"] == pytest.approx(6 * 0.625)
    assert lines["DynamoDB, reads"] == pytest.approx(2 * 0.125)


def test_s01_a_managed_stack_ticks_each_hour_whatever_the_cadence_of_others() -> None:
    each, seldom = (at_rest("dynamodb", over("managed", Usage(tick_minutes=n))) for n in (1, 30))
    assert each == seldom
    for line in WITH_EACH_TICK:
        assert each[line] == pytest.approx(at_rest("dynamodb")[line] / 60)


def test_s01_a_managed_stack_pays_for_two_more_metrics_and_an_alarm() -> None:
    ticks, bells = at_rest("postgres"), at_rest("postgres", over("managed"))
    assert bells["CloudWatch, of bells"] == pytest.approx(2 * 0.30 + 0.10)
    assert "CloudWatch, of bells" not in ticks


def test_s01_a_bell_costs_the_units_of_its_mark_and_the_time_of_a_call() -> None:
    lines = bells_per_million("dynamodb", Usage(bell_seconds=0.5))
    assert lines["DynamoDB, writes"] == pytest.approx(2 * 0.625)
    assert lines["DynamoDB, reads"] == pytest.approx(0.125)
    call = bells_per_million("postgres", Usage(bell_seconds=0.5))
    assert call == {"Lambda, calls of EventBridge": pytest.approx(500_000 * 0.5 * 0.0000133334)}
    assert call.items() <= lines.items()


def test_every_price_says_where_it_is_published() -> None:
    assert SOURCES.keys() == {one.name for one in fields(Prices)}
    told = table(every())
    assert all(f"aws.amazon.com/{page}/" in told for page in SOURCES.values())
    assert PUBLISHED in told


def test_what_is_kept_costs_by_its_bytes_and_how_long_it_is_kept() -> None:
    gb = Usage(schedules=1_000, schedule_item_bytes=1024**3 / 1_000, schedule_row_bytes=1024**3)
    lines = storage("dynamodb", gb)
    assert lines.pop("DynamoDB, hourly audit")
    assert lines.pop("DynamoDB, hourly verification")
    assert lines == pytest.approx({"DynamoDB, storage": 0.25, "DynamoDB, backup": 0.20})
    assert storage("aurora", gb)["Aurora, storage"] == pytest.approx(1_000 * 0.10)
    assert storage("postgres", gb) == {}
    month, year = (per_million("aurora", Usage(kept_days=days)) for days in (30, 360))
    assert year["Aurora, storage"] == pytest.approx(12 * month["Aurora, storage"])


def test_t12_the_audit_reads_each_schedule_each_hour_for_half_a_unit() -> None:
    read = storage("dynamodb", Usage(schedules=1_000_000))["DynamoDB, hourly audit"]
    assert read == pytest.approx(730.5 * 0.51 * 0.125)
    assert not [name for name in storage("aurora") if "audit" in name]


def test_a02_the_verification_reads_so_many_schedules_an_hour_and_no_more() -> None:
    line = "DynamoDB, hourly verification"
    few, many = (storage("dynamodb", Usage(schedules=n))[line] for n in (10_000, 1_000_000))
    assert few == pytest.approx(730.5 * 10_000 * 2.02 * 0.125 / 1_000_000)
    assert many == pytest.approx(2 * few)
    assert Usage().verified_per_hour == template()["Parameters"]["VerifiedPerHour"]["Default"]
    assert not [name for name in storage("aurora") if "verification" in name]


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_price_and_no_use_is_no_cost(backend: Backend) -> None:
    free = Prices(**dict.fromkeys((one.name for one in fields(Prices)), 0.0))
    assert at_rest(backend, prices=free) == {}
    assert sum(per_million(backend, prices=free).values()) == 0
    assert {sum(per_million(backend, over(way), free).values()) for way in WAYS} == {0}
    assert sum(bells_per_million(backend, prices=free).values()) == 0
    assert sum(storage(backend, prices=free).values()) == 0


@pytest.mark.parametrize("price", [one.name for one in fields(Prices)])
def test_every_price_matters(price: str) -> None:
    usage = Usage(nat=True, endpoints=1)
    dearer = replace(Prices(), **{price: 1_000.0})
    assert every(usage, dearer) != every(usage)


def test_the_command_prints_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["costs"]) == 0
    assert capsys.readouterr().out == f"{table(every())}\n"
    assert main(["costs", "--memory", "1024", "--architecture", "x86_64"]) == 0
    x86 = Prices(lambda_gb_second=GB_SECOND["x86_64"])
    assert capsys.readouterr().out == f"{table(every(Usage(memory_gb=1), x86))}\n"


def test_the_readmes_repeat_what_comes_out() -> None:
    for name in BACKENDS:
        rest, million, kept = (sum(of(name).values()) for of in (at_rest, per_million, storage))
        packed = sum(per_million(name, over("queue")).values())
        row = f"| {name} | {rest:.0f} $ | {million:.1f} $ | {packed:.1f} $ | {kept:.2f} $ |"
        assert row in TEXT, row
    assert f"one-to-one for {sum(scheduler_per_million().values()):.1f} $" in TEXT
    for minutes in (1, 5):
        lines = at_rest("dynamodb", Usage(tick_minutes=minutes))
        ticks = sum(lines[name] for name in WITH_EACH_TICK)
        assert re.search(rf"\| {minutes} \| [\d,]+ \| {ticks:.2f} \$ \|", TEXT), ticks
    for seconds in LOOK_AHEADS:
        most = sum(look_ahead(seconds).values())
        assert re.search(rf"\| {seconds} s \|.*\| {most:.0f} \$ \|", TEXT), most


def test_the_readme_of_operators_repeats_what_packs_cost() -> None:
    for name in BACKENDS:
        ways = (Usage(), over("queue"), replace(over("queue"), pack_fires=1.0))
        api, packs, alone = (sum(per_million(name, usage).values()) for usage in ways)
        row = f"| {name} | {api:.1f} $ | {packs:.1f} $ | {alone:.1f} $ |"
        assert row in TEXT, row
    assert f"An empty queue costs {sum(queue_at_rest().values()):.2f} $ a month" in TEXT


def test_the_readme_of_operators_repeats_what_bells_cost() -> None:
    rung = over("managed")
    for name in BACKENDS:
        api, bells = (sum(per_million(name, usage).values()) for usage in (Usage(), rung))
        put = sum(bells_per_million(name).values())
        row = f"| {name} | {api:.1f} $ | {bells:.1f} $ | {put:.1f} $ |"
        assert row in TEXT, row
    of_ticks, of_bells = (
        sum(at_rest("dynamodb", usage)[line] for line in WITH_EACH_TICK)
        for usage in (Usage(), rung)
    )
    assert of_bells < 0.01
    more = sum(bells_at_rest().values())
    assert f"below 0.01 $ a month instead of {of_ticks:.2f} $, and {more:.2f} $" in TEXT
