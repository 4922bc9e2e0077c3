"""I-17: the words that refuse an unreadable text, and the expressions that they show."""

import re
import time

import pytest
from duetick.domain.errors import kind_of
from duetick.domain.expression import InvalidExpression, next_fire, parse, upcoming

from tests.unit.expression.times import ms

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
    ("days(moonday 09:00)", "'moonday' is not a day"),
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
    """Return the expressions in a refusal: forms, macros, five fields, possible readings, and the
    text to write.
    """
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
    began = time.thread_time()
    refusal = _refusal(text)
    assert len(refusal) < 600
    assert refusal.isprintable()
    assert time.thread_time() - began < 2  # what grows with its square would take minutes


def _refusal(text: str) -> str:
    try:
        parse(text)
    except InvalidExpression as error:
        return str(error)
    return ""


@pytest.mark.parametrize("text", [None, 5, b"* * * * *", 1.5, ["* * * * *"]])
def test_i17_what_is_not_text_is_refused_by_its_type(text: str) -> None:
    with pytest.raises(InvalidExpression, match=f"not {kind_of(text)}"):
        parse(text)
    with pytest.raises(InvalidExpression, match=f"not {kind_of(text)}"):
        next_fire(text, None, 0)
