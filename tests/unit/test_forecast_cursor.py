"""A cursor of a forecast comes back from anybody: it is believed only as far as it fits."""

import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

import pytest
from duetick.core.forecast_cursor import LARGEST_UNPACKED, ReadSoFar
from duetick.domain.alike import Alike, AlikePage
from duetick.domain.errors import InvalidCursor, InvalidQuery
from duetick.domain.forecasting import DAY_MS, Outlook
from duetick.domain.limits import Limit, Limits
from duetick.domain.minutes import MinuteSpan
from duetick.domain.schedule import Json

NOON: Final = 1_803_902_400_000
DAY: Final = MinuteSpan(NOON, NOON + DAY_MS)
LIMITS: Final = Limits((Limit("flow:f", 0, rate=5),))
QUESTION: Final[Json] = ["ada", False]
ROWS: Final = (
    Alike(7, "*/10 * * * *", None, NOON + 600_000, "f"),
    Alike(2, "0 * * * *", None, NOON),
)


def begun(limits: Limits = LIMITS) -> Outlook:
    return Outlook(DAY, NOON, limits=limits)


def cursor() -> str:
    """Return the cursor of a forecast that has read something."""
    outlook, progress = begun(), ReadSoFar.begin(NOON, QUESTION)
    outlook.add(ROWS)
    progress.advance(AlikePage((), place="here", partly=True))
    found = progress.cursor(outlook)
    assert found is not None
    return found


def packed(value: object) -> str:
    return urlsafe_b64encode(zlib.compress(json.dumps(value).encode())).decode()


def content() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(urlsafe_b64decode(cursor())))
    return found


def test_a_forecast_goes_on_as_if_it_had_never_stopped() -> None:
    progress = ReadSoFar.read(cursor(), QUESTION)
    assert (progress.now, progress.place, progress.partly) == (NOON, "here", True)
    resumed, whole = begun(), begun()
    progress.restore(resumed)
    for outlook in (resumed, whole):
        outlook.add(ROWS if outlook is whole else ())
        outlook.add([Alike(3, "5 * * * *", None, NOON + 300_000, "f")])
    assert (resumed.finish(), resumed.sums) == (whole.finish(), whole.sums)
    assert sum(whole.sums[1].due) < sum(whole.sums[0].due)


def test_a_cursor_is_of_one_question() -> None:
    with pytest.raises(InvalidCursor, match="another forecast"):
        ReadSoFar.read(cursor(), ["bob", False])


def test_a_cursor_of_other_limits_is_refused() -> None:
    with pytest.raises(InvalidCursor, match="limits have changed"):
        ReadSoFar.read(cursor(), QUESTION).restore(begun(Limits()))


BOMB: Final = urlsafe_b64encode(zlib.compress(b" " * (LARGEST_UNPACKED * 20))).decode()
NESTED: Final = urlsafe_b64encode(zlib.compress(b"[" * 200_000)).decode()


@pytest.mark.parametrize(
    "text", ["", "x", "é", "\ud800", "====", BOMB, NESTED, packed([]), packed({}), packed(5)]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        ReadSoFar.read(text, QUESTION)


SPOILT: Final = [
    ("now", -1), ("now", "x"), ("now", True), ("now", 10**30), ("place", None), ("place", 5),
    ("sums", None), ("sums", []), ("sums", [[[0], [0], 0, 1]] * 2), ("sums", [5, 5]),
    ("totals", [0] * 5), ("totals", [0.5] * 6), ("totals", ["x"] * 6), ("totals", None),
    ("totals", [-1] * 6), ("totals", [2**60] * 6),
]  # fmt: skip
ENDS: Final = [[0] * 1_440, [0] * 1_440]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *SPOILT,
        *(("sums", [[*ENDS, *more]] * 2) for more in ([2, 1], [0, 0], [0, -1], [0, 1.5], [0])),
    ],
)
def test_a_cursor_that_was_changed_is_refused_before_anything_is_counted(
    name: str, value: object
) -> None:
    spoilt = packed(content() | {name: value})
    outlook = begun()
    with pytest.raises(InvalidCursor):
        ReadSoFar.read(spoilt, QUESTION).restore(outlook)
    if name != "totals":
        assert outlook.sums == begun().sums


def test_a_forecast_that_no_body_could_hold_is_refused_with_what_helps() -> None:
    """A week under a hundred limits, each minute another number."""
    many = Limits(tuple(Limit(f"flow:f{number}", 0, rate=5) for number in range(100)))
    week = MinuteSpan(NOON, NOON + 8 * DAY_MS)
    outlook, progress = Outlook(week, NOON, limits=many), ReadSoFar.begin(NOON, QUESTION)
    for place, sums in enumerate(outlook.sums):
        sums.due[:] = [(minute * 7_919 + place) % 9_973 for minute in range(week.minutes)]
    progress.advance(AlikePage((), place="here"))
    with pytest.raises(InvalidQuery, match="shorter span"):
        progress.cursor(outlook)
