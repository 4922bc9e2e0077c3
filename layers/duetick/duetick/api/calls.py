"""A call of the API, read: what it asks for, and on what condition."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from duetick.api.conditions import Condition
from duetick.core.schedules import UserSchedules
from duetick.core.wire import require_object
from duetick.domain.creation import Repeatable
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import DAY
from duetick.domain.schedule import Json
from duetick.ports import Transport

LARGEST_BODY: Final = 256 * 1024
LONGEST_IDEMPOTENCY_KEY: Final = 256

Read = TypeVar("Read", bound=BaseModel)


class TooLarge(Exception):
    """A body that is not looked at."""


@dataclass(frozen=True, slots=True)
class Call:
    """As it came, apart from the user, who was found out before. `key` is decoded.

    `operator` says that it comes from a machine or an operator, for any user.
    """

    schedules: UserSchedules
    transport: Callable[[], Transport]
    operator: bool
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    text: str

    @property
    def condition(self) -> Condition:
        """What If-Match and If-None-Match ask for."""
        return Condition.read(self.headers)

    def body(self, shape: type[BaseModel]) -> dict[str, Json]:
        """The body, checked, with the fields that were given; an empty one counts as {}."""
        if len(self.text) > LARGEST_BODY:
            raise TooLarge(f"A body may have {LARGEST_BODY // 1024} KB.")
        given = require_object(self.text or "{}")
        check_shape(shape, given)
        return given

    def asked(self, shape: type[Read]) -> Read:
        """The query, checked."""
        return check_shape(shape, dict(self.query))

    def idempotent_key(self) -> str | None:
        """The schedule's key that an Idempotency-Key stands for; None without one."""
        given = self.headers.get("idempotency-key")
        if given is None:
            return None
        if not 0 < len(given) <= LONGEST_IDEMPOTENCY_KEY or not given.isprintable():
            raise InvalidSchedule(
                "Idempotency-Key", f"expected 1 to {LONGEST_IDEMPOTENCY_KEY} plain characters."
            )
        return f"i-{hashlib.sha256(given.encode()).hexdigest()[:24]}"

    def repeatable(self) -> Repeatable | None:
        """The creation that an Idempotency-Key stands for, for a day; None without one."""
        name = self.idempotent_key()
        if name is None:
            return None
        asked = json.dumps(require_object(self.text or "{}"), sort_keys=True)
        digest = hashlib.sha256(asked.encode()).hexdigest()
        return Repeatable(name, digest, self.schedules.clock() + DAY * 1_000)


def check_shape(shape: type[Read], given: Mapping[str, object]) -> Read:
    """The fields as that shape; raise InvalidSchedule naming the first that does not fit."""
    try:
        return shape.model_validate_json(json.dumps(given))
    except ValidationError as problem:
        raise _explained(shape, problem.errors(include_url=False)[0]) from None


def _explained(shape: type[BaseModel], problem: ErrorDetails) -> InvalidSchedule:
    path = [str(part) for part in problem["loc"]] or ["body"]
    field = ".".join(path)[:80]
    if problem["type"] == "extra_forbidden":
        return InvalidSchedule(field, f"is not a field; the fields are {_fields(shape, path)}.")
    if problem["type"] == "missing":
        return InvalidSchedule(field, "is missing.")
    return InvalidSchedule(field, f"{re.sub(r'^Input ', '', problem['msg'])}.")


def _fields(shape: type[BaseModel], path: list[str]) -> str:
    """Those that are known where an unknown one was found."""
    properties = shape.model_json_schema()
    known = properties
    for part in path[:-1]:
        known = _inner(known.get("properties", {}).get(part, {}), properties.get("$defs", {}))
    return ", ".join(known.get("properties", {}))


def _inner(schema: Mapping[str, object], defs: Mapping[str, dict[str, Json]]) -> dict[str, Json]:
    """What a reference, or the first of several, leads to."""
    several = schema.get("anyOf")
    first = several[0] if isinstance(several, list) else schema
    return defs.get(str(first.get("$ref", "")).rpartition("/")[2], {})
