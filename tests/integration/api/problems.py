"""The problems of a refusal: a form can show each at its field, and anybody can read them."""

import re
from typing import Any, Final, TypeAlias

from duetick.client import Fields

from tests.integration.api.asking import HELLO
from tests.integration.local_product import Product

Told: TypeAlias = list[tuple[str, str]]

PATH: Final = "/api/schedules/hello"
PAST: Final = "2026-11-01T09:00:00Z"

PYTHONS: Final = re.compile(
    r"\b(NoneType|None|True|False|str|dict|tuple|int\(|codec|Expecting|ctx|dataclass|lambda|"
    r"[Ii]nvalid|[Vv]alid|should be|Input|Unable to|discriminator|pattern|tag)\b|\?\.|\.\."
)
"""What Python and pydantic say, and stops that are doubled."""
OPERATORS: Final = re.compile(r"DUETICK_|migrate|\bTurn |setting|transactional|Declare")
"""What operators and authors do."""


def told(answer: dict[str, Any]) -> Told:
    """Return the fields and codes of an answer's problems."""
    return sorted((each["field"], each["code"]) for each in answer["problems"])


def check_told(answer: dict[str, Any]) -> None:
    """Check that the message has each problem, that each field has one, and that none is for
    operators.
    """
    fields = [each["field"] for each in answer["problems"]]
    assert sorted(set(fields)) == sorted(fields)
    for problem in answer["problems"]:
        assert set(problem) == {"field", "code", "message"}
        assert problem["message"].rstrip(".") in answer["message"]
        assert re.fullmatch(r"\S.*\S", problem["message"], re.DOTALL)
    assert not PYTHONS.findall(answer["message"])
    assert not OPERATORS.findall(answer["message"])


def put(running: Product, change: Fields) -> dict[str, Any]:
    """Return the refusal of a schedule with that change."""
    status, answer = running.call("PUT", PATH, HELLO | change)
    assert status in (400, 409)
    check_told(answer)
    refusal: dict[str, Any] = answer
    return refusal
