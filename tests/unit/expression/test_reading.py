"""C-03, C-04, I-17: the texts that are read, and their canonical forms."""

import pytest
from duetick.domain.expression import InvalidExpression, next_fire, parse, upcoming
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.expression.effort import seconds
from tests.unit.expression.times import ms, utc


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0 9 * * MON", "0 9 * * 1"),
        ("  00   09 \t* * mon-Fri\n", "0 9 * * 1-5"),
        ("*/1 0-23 * jan,DEC 7", "*/1 0-23 * 1,12 0"),
        ("5/20 9 1/3 * 0-7", "5/20 9 1/3 * 0-7"),
        ("0 9 * * FRI-SUN", "0 9 * * 5-7"),
        ("0 9 * * 0-SUN", "0 9 * * 0-0"),
        ("0 9 * * SUN-SUN", "0 9 * * 0-0"),
        ("0 9 * * 7-SUN", "0 9 * * 7-7"),
        ("0\t9\r\n* * *", "0 9 * * *"),
        ("0 9 L,15w,lw * *", "0 9 L,15W,LW * *"),
        ("0 9 * * monL,7#2,fri#1", "0 9 * * 1L,0#2,5#1"),
        ("@Daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("rate( 05  Minutes )", "rate(5 minutes)"),
        ("rate(1 minutes)", "rate(1 minute)"),
        ("rate(90 seconds)", "rate(90 seconds)"),
        ("at(2026-12-01t09:00:00)", "at(2026-12-01T09:00:00)"),
        ("cron(0 9 ? * MON-FRI *)", "cron(0 9 ? * 2-6 *)"),
        ("CRON(0/15 9 1,L * ? 2026-2030)", "cron(0/15 9 1,L * ? 2026-2030)"),
        ("days(thu 17:30, Mon 9:00)", "days(mon 09:00, thu 17:30)"),
    ],
)
def test_c01_the_canonical_form_keeps_what_was_written_and_is_its_own(
    text: str, canonical: str
) -> None:
    assert parse(text) == canonical
    assert parse(canonical) == canonical


@pytest.mark.parametrize("star", ["*", "*/1", "0-59", "0/1", "0-59/1"])
def test_c01_the_canonical_form_never_makes_or_loses_a_star(star: str) -> None:
    assert parse(f"{star} 3 * * *").split(" ")[0] == star


def test_i17_a_canonical_form_fires_as_the_text_does() -> None:
    text, after = "*/20 9-17/2 L * MON#2", ms("2026-11-18T00:00")
    assert upcoming(parse(text), "Asia/Tokyo", after, 50) == upcoming(text, "Asia/Tokyo", after, 50)


PIECES = st.sampled_from(
    [
        *("*", "0", "1", "9", "31", "59", "60", "-", "/", ",", "#", "L", "W", "?", " ", "  ", "\t"),
        *("MON", "sun", "JAN", "H", "R", "(", ")", "@", "daily", "cron(", "rate(", "at(", "days("),
        *("minutes", "mon 09:00", ":", ";", "x: ", "2030-01-01T00:00:00", "٣", "\x00", "é", "1-5"),
    ]
)


@settings(max_examples=600)
@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=16).map("".join)))
def test_i17_any_text_is_either_read_into_its_own_canonical_form_or_refused(text: str) -> None:
    try:
        canonical = parse(text)
    except InvalidExpression as error:
        refused = str(error)
    else:
        assert parse(canonical) == canonical
        assert upcoming(text, None, 0, 3) == upcoming(canonical, None, 0, 3)
        refused = ""
    assert refused.isprintable()
    assert len(refused) < 700


@settings(max_examples=400)
@given(
    st.lists(PIECES, min_size=1, max_size=4).map("".join),
    st.integers(0, 4),
)
def test_i17_any_field_is_either_read_or_refused_by_its_name(piece: str, at: int) -> None:
    fields = ["0", "0", "1", "1", "1"]
    fields[at] = piece
    text = " ".join(fields)
    try:
        canonical = parse(text)
    except InvalidExpression:
        return
    assert parse(canonical) == canonical
    assert next_fire(text, None, 0) == next_fire(canonical, None, 0)


@pytest.mark.parametrize(
    "text",
    [
        *("0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30W 2 *", "0 0 31 2 */2"),
        *(
            "0 0 */31 2 MON#2",
            "cron(0 0 29 2 ? 2027)",
            "cron(0 0 31 JUN ? *)",
            "cron(0 0 ? 2 1#5 2027)",
        ),
    ],
)
def test_c03_what_can_never_fire_is_refused_at_once(text: str) -> None:
    def ask() -> None:
        with pytest.raises(InvalidExpression, match="can never fire: no such day ever comes"):
            parse(text)

    assert seconds(ask) < 0.02


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("0 0 29 2 *", "2024-03-01", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 29 2 *", "2096-03-01", ["2104-02-29T00:00"]),
        ("0 0 29 2 */7", "2026-01-01", ["2032-02-29T00:00", "2060-02-29T00:00"]),
        ("0 0 29 2 */7", "2088-03-01", ["2128-02-29T00:00"]),
        ("0 0 31 2 1", "2026-01-01", ["2026-02-02T00:00"]),
        ("0 0 * 2 MON#5", "2026-01-01", ["2044-02-29T00:00"]),
        ("0 0 L 2 *", "2027-01-01", ["2027-02-28T00:00", "2028-02-29T00:00"]),
        ("0 0 LW * *", "2026-10-01", ["2026-10-30T00:00", "2026-11-30T00:00"]),
        ("0 0 1W 8 *", "2026-01-01", ["2026-08-03T00:00"]),
        ("0 0 15W 11 *", "2026-01-01", ["2026-11-16T00:00"]),
        ("0 0 31W 5 *", "2026-01-01", ["2026-05-29T00:00"]),
        ("0 0 31W 4,5 *", "2026-01-01", ["2026-05-29T00:00"]),
        ("0 0 * * FRIL", "2026-11-01", ["2026-11-27T00:00", "2026-12-25T00:00"]),
        ("0 0 * * TUE#1,THU#3", "2026-11-01", ["2026-11-03T00:00", "2026-11-19T00:00"]),
        ("0 0 * * 6-7", "2026-11-18", ["2026-11-21T00:00", "2026-11-22T00:00"]),
        ("0 0 * * 0-SUN", "2026-11-18", ["2026-11-22T00:00", "2026-11-29T00:00"]),
        ("cron(0 9 ? * 1 *)", "2026-11-18", ["2026-11-22T09:00"]),
        ("cron(0 9 ? * L *)", "2026-11-18", ["2026-11-21T09:00"]),
        ("cron(0 9 ? * 6L *)", "2026-11-18", ["2026-11-27T09:00"]),
        ("cron(0 9 ? * 3#2 *)", "2026-11-18", ["2026-12-08T09:00"]),
        ("cron(0 9 29 2 ? 2027-2033)", "2026-11-18", ["2028-02-29T09:00", "2032-02-29T09:00"]),
    ],
)
def test_c03_rare_days_are_found(text: str, after: str, expected: list[str]) -> None:
    assert utc(upcoming(text, None, ms(after), len(expected))) == expected


def test_c04_a_year_that_is_over_never_comes_again() -> None:
    after = ms("2027-12-31T23:58")
    assert len(upcoming("cron(* * * * ? 2027)", "Europe/Berlin", after - 3_600_000, 9)) == 1
    assert next_fire("cron(0 9 1 1 ? 2020)", None, after) is None


def test_c04_at_fires_once_and_is_done() -> None:
    text = "at(2026-12-01T09:00:30)"
    fire = ms("2026-12-01T09:00:30-05:00")
    assert upcoming(text, "America/New_York", 0, 5) == [fire]
    assert next_fire(text, "America/New_York", fire) is None


def test_c04_at_in_a_repeat_fires_once_whatever_the_option() -> None:
    text, first_pass = "at(2026-10-25T02:30:00)", ms("2026-10-25T00:30")
    assert upcoming(text, "Europe/Berlin", 0, 5, repeat="both") == [first_pass]
