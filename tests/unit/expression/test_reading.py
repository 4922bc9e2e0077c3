"""C-03, C-04, I-17: what is read, its canonical form, and the words that refuse the rest."""

import re
import time

import pytest
from duetick.domain.expression import InvalidExpression, next_fire, parse, upcoming
from hypothesis import given, settings
from hypothesis import strategies as st

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


REFUSED = [
    ("75 * * * *", "minute: '75' is outside 0-59; for example: 30 9"),
    ("0 24 * * *", "hour: '24' is outside 0-23"),
    ("0 0 0 * *", "day-of-month: '0' is outside 1-31"),
    ("0 0 * 13 *", "month: '13' is outside 1-12"),
    ("0 0 * * 8", "day-of-week: '8' is outside 0-7"),
    ("0 0 * * MOM", "'MOM' is not a number from 0 to 7 or one of SUN MON"),
    ("0 9 * *", "has 4 fields, and cron has five"),
    ("0 0 9 * * *", r"written '0 9 \* \* \*', without the seconds.*, or '0 0 9 \* \*', wi"),
    ("0 9 ? * MON *", r"it may be written 'cron\(0 9 \? \* MON \*\)', or '0 9 \* \* MON'"),
    ("0 0 12 * * ?", r"written '0 12 \* \* \*', without the seconds"),
    ("0 0 12 ? * MON", r"written '0 12 \* \* MON', without the seconds at its beginning; a"),
    ("5 4 3 2 1 0", "written '4 3 2 1 0', without the seconds at its beginning; a year"),
    ("9999 0 9 * * 0", "read here: a year goes into cron"),
    ("x 0 9 * * 9999", r"a year goes into cron.0 9 1 1 \? 2030."),
    ("a b c d e f", "has 6 fields.*for example: 0 9"),
    ("1 2 3 4 5 6 7 8", "has 8 fields.*for example: 0 9"),
    ("0 9 * * * 2027", "a year goes into cron.0 9 1 1 . 2027."),
    ("0 0 9 * * * 2027", r"has 7 fields.*written '0 9 \* \* \*', without the seconds"),
    ("0 0 9 * * ? 9999", r"has 7 fields.*read here: a year goes into cron"),
    ("*/0 * * * *", "'\\*/0' has the step '0', which must be 1 to 60"),
    ("*/90 * * * *", "rate.90 minutes."),
    ("*/-1 * * * *", "has the step '-1'"),
    ("0 17-9 * * *", "hour: '17-9' runs backwards; write 17-23,0-9"),
    ("0 22-4/2 * * *", "hour: '22-4/2' runs backwards; write 22,0-4/2"),
    ("0 23-5/2 * * *", "hour: '23-5/2' runs backwards; write 23,1-5/2"),
    ("0 20-0/3 * * *", "hour: '20-0/3' runs backwards; write 20-23/3;"),
    ("0 22-4/99 * * *", "has the step '99', which must be 1 to 24"),
    ("0 0 28-3 * *", "runs backwards; write 28-31,1-3"),
    ("0 0 * * FRI-MON", "runs backwards; write 5-6,0-1"),
    ("0 0 * * 7-3", "runs backwards; write 0-3"),
    ("1,,2 * * * *", "is empty where a number from 0 to 59"),
    ("-5 * * * *", "is empty where a number"),
    ("+5 * * * *", "'\\+5' is not a number"),
    ("0 0 ? * MON", "EventBridge's cron"),
    ("H * * * *", "leaves the time to chance .H.; name one"),
    ("H(0-29)/10 * * * *", "leaves the time to chance .H."),
    ("H/15 * * * *", "leaves the time to chance .H."),
    ("R 9 * * *", "leaves the time to chance .R."),
    ("0 9 * * HURSDAY", "'HURSDAY' is not a number from 0 to 7 or one of SUN"),
    ("0 9 * RAN *", "'RAN' is not a number from 1 to 12 or one of JAN"),
    ("0 0 W * *", "needs its day, as in 15W"),
    ("0 0 * * L", "L and LW go in day-of-month, FRIL in day-of-week"),
    ("0 0 * * MON#6", "from #1 to #5"),
    ("0 0 32W * *", "outside 1-31"),
    ("0 0 L-3 * *", "'L-3' has an L, which takes no range"),
    ("٣ * * * *", "'٣', character 1, is a digit, but not one of ASCII's"),
    ("0 9 * * \u2007*", "character 9, is not ASCII text"),
    ("0 9 * *\x00*", "'.x00', character 8"),
    ("0 9\x1c* * *", "'.x1c', character 4, is a control character"),
    ("0 9\x0b* * *", "'.x0b', character 4, is a control character"),
    ("0 9\x0c* * *", "'.x0c', character 4, is a control character"),
    ("", "the text is empty"),
    ("   ", "the text is empty"),
    ("@reboot", "@reboot names no time"),
    ("@every 5m", "for example: rate.5 minutes."),
    ("@fortnightly", "is no macro; there are @yearly"),
    ("rate(0 minutes)", "more than nothing"),
    ("rate(5)", "is not a whole number and one of seconds"),
    ("rate(1.5 hours)", "is not a whole number"),
    ("rate(5 minutes", "has no closing bracket; for example: rate"),
    ("cron(0 9 * * ? *", "has no closing bracket; for example: cron"),
    ("at (2030-12-01T09:00:00", "has no closing bracket; for example: at"),
    ("days(mon 09:00", "has no closing bracket; for example: days"),
    ("rate(5 minutes) x", "goes on after its closing bracket"),
    ("rate(5 weeks)", "is not a whole number and one of"),
    ("rate(999999999 days)", "less than 230 years"),
    ("at(2026-12-01)", "is not yyyy-mm-ddThh:mm:ss"),
    ("at(2026-12-01T09:00:00Z)", "local time in the schedule's timezone"),
    ("at(2026-02-29T09:00:00)", "is no day from 1970 to 2199"),
    ("at(2026-12-01T24:00:00)", "has no time from 00:00:00"),
    ("cron(0 9 * * * *)", "takes . in exactly one of"),
    ("cron(0 9 ? * ? *)", "takes . in exactly one of"),
    ("cron(0 9 * * ?)", "has 5 fields, and EventBridge's cron has six"),
    ("cron(0 9 ? * 0 *)", "day-of-week: '0' is outside 1-7"),
    ("cron(75 9 * * ? *)", "minute: '75' is outside 0-59; for example: cron.30 9"),
    ("cron(0 17-9 * * ? *)", "runs backwards; write 17-23,0-9; for example: cron.0 9-17"),
    ("cron(0 9 32 * ? *)", "outside 1-31; for example: cron.0 9 1,15"),
    ("cron(0 9 1 13 ? *)", "outside 1-12; for example: cron.0 9 1 JAN-JUN"),
    ("cron(? 9 1 * ? *)", "'[?]' takes no [?], which stands alone in day-of-month or"),
    ("cron(0 9 ?,1 * ? *)", "takes no [?], which stands alone"),
    ("cron(0 9 L-3 * ? *)", "'L-3' has an L, which takes no range"),
    ("cron(0 9 ? * FRI-SUN *)", "runs backwards; write 6-7,1;"),
    ("cron(0 0 30 2 ? *)", r"the last day of February: cron\(0 0 L 2 \? \*\)"),
    ("cron(0 9 1 1 ? 2030-2027)", "year: '2030-2027' runs backwards; write 2027-2030"),
    ("cron(0 9 1 1 ? 1969)", "year: '1969' is outside 1970-2199"),
    ("days()", "enables no day"),
    ("days(mon 25:00)", "'25:00' is no time"),
    ("days(monday 09:00)", "'monday' is not a day"),
    ("days(mon 09:00, mon 10:00)", "has its time already"),
    ("days(x: mon 09:00; x: tue 10:00)", "a target's name of its own"),
    ("days(mon 09:00; x: tue 10:00)", "a target's name of its own"),
    ("days(x y: mon 09:00)", "is not a day"),
    ("sometimes(9)", "is not a form that is read; write five fields"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_i17_a_refusal_says_what_is_wrong_and_where(text: str, words: str) -> None:
    with pytest.raises(InvalidExpression, match=words):
        parse(text)
    with pytest.raises(ValueError, match=words):
        next_fire(text, None, 0)


@pytest.mark.parametrize("text", [text for text, _ in REFUSED])
def test_i17_every_expression_that_a_refusal_shows_is_right(text: str) -> None:
    shown = _shown(text, _refusal(text))
    assert shown
    for each in shown:
        assert next_fire(each, None, 0) is not None
    inside = text.lower().startswith("cron(")
    assert not inside or any(each.startswith("cron(") for each in shown)


def _shown(text: str, refusal: str) -> list[str]:
    """The expressions in a refusal: forms, macros, five fields, what it may be, what to write."""
    words = refusal.removeprefix(repr(text)).removeprefix(text)
    instead = [
        text.upper().replace(piece, better)
        for piece, better in re.findall(r"'(\S+)' runs backwards; write ([^ ;]+)", words)
    ]
    form = r"\b(?:cron|rate|at|days)\([^()…]+\)"
    forms, words = re.findall(form, words), re.sub(form, "", words)
    macros = re.findall(r"@[a-z]+", words.partition("there are")[2])
    quoted = re.findall(r"(?:written|or) '([^']+)'", words)
    five = re.findall(r"(?:for example: |February: |fields \()((?:[^ ]+ ){4}[^ ;.)]+)", words)
    return [*instead, *forms, *macros, *quoted, *five]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0 22-4/2 * * *", [22, 0, 2, 4]),
        ("0 23-5/2 * * *", [23, 1, 3, 5]),
        ("0 20-0/3 * * *", [20, 23]),
        ("0 23-0 * * *", [23, 0]),
        ("0 21-3/4 * * *", [21, 1]),
    ],
)
def test_i17_what_to_write_for_a_backward_range_keeps_its_step(text: str, meant: list[int]) -> None:
    better = _shown(text, _refusal(text))[0]
    times = upcoming(better, None, ms("2026-11-18T12:00"), len(meant) + 1)
    assert [time // 3_600_000 % 24 for time in times] == [*meant, meant[0]]


@pytest.mark.parametrize(
    "text",
    [
        "," * 1_000_000,
        "0 0 " + "30," * 330 + "31 2 *",
        "1," * 508 + "1 * * * *",
        "days(" + "mon 09:00," * 50_000 + ")",
        "9" * 1024,
        "* " * 512,
        "*/" * 512,
        "(" * 1024,
        "rate(" + "9" * 500 + " days)",
        "٣" * 1024,
        "\x1b[31m" * 100,
        "0 0 * * " + "1#1," * 250 + "1",
    ],
)
def test_i17_hostile_text_costs_little_and_is_never_echoed_at_length(text: str) -> None:
    began = time.process_time()
    refusal = _refusal(text)
    assert len(refusal) < 600
    assert refusal.isprintable()
    assert time.process_time() - began < 0.05


def _refusal(text: str) -> str:
    try:
        parse(text)
    except InvalidExpression as error:
        return str(error)
    return ""


PIECES = st.sampled_from(
    [
        *("*", "0", "1", "9", "31", "59", "60", "-", "/", ",", "#", "L", "W", "?", " ", "  ", "\t"),
        *("MON", "sun", "JAN", "H", "R", "(", ")", "@", "daily", "cron(", "rate(", "at(", "days("),
        *("minutes", "mon 09:00", ":", ";", "x: ", "2030-01-01T00:00:00", "٣", "\x00", "é", "1-5"),
    ]
)


@settings(max_examples=600, deadline=None)
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


@settings(max_examples=400, deadline=None)
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


@pytest.mark.parametrize("text", [None, 5, b"* * * * *", 1.5, ["* * * * *"]])
def test_i17_what_is_not_text_is_refused_by_its_type(text: str) -> None:
    with pytest.raises(InvalidExpression, match=f"not {type(text).__name__}"):
        parse(text)


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
    began = time.process_time()
    with pytest.raises(InvalidExpression, match="can never fire: no such day ever comes"):
        parse(text)
    assert time.process_time() - began < 0.02


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
