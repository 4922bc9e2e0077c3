"""The check of bodies and queries against their shapes, in plain words. Pydantic is loaded here."""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from duetick.core.shapes import flaws_of
from duetick.domain.errors import Flaw, InvalidSchedule
from duetick.domain.schedule import Json

Read = TypeVar("Read", bound=BaseModel)


def check_shape(shape: type[Read], given: Mapping[str, object]) -> Read:
    """Return the fields as that shape. Raise InvalidSchedule naming all that do not fit."""
    try:
        return shape.model_validate(given)
    except ValidationError as problem:
        flaws = flaws_of(problem.errors(), given)
    raise InvalidSchedule.of(_add_known_fields(shape, flaw) for flaw in flaws)


def _add_known_fields(shape: type[BaseModel], flaw: Flaw) -> Flaw:
    """Add the known fields to a flaw that is an unknown field."""
    if flaw.code != "unknown_field":
        return flaw
    known = _known_fields(shape, [str(part) for part in flaw.path])
    return Flaw(flaw.path, flaw.code, f"is not a field; the fields are {known}.")


def _known_fields(shape: type[BaseModel], path: list[str]) -> str:
    """Return the known fields at the path."""
    properties = _schema(shape)
    known = properties
    for part in path[:-1]:
        known = _follow(known.get("properties", {}).get(part, {}), properties.get("$defs", {}))
    return ", ".join(known.get("properties", {}))


@cache
def _schema(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a shape, made once: to make it costs more than to check a body."""
    return shape.model_json_schema()


def _follow(schema: Mapping[str, object], defs: Mapping[str, dict[str, Json]]) -> dict[str, Json]:
    """Return the schema that a reference, or the first of several, leads to."""
    several = schema.get("anyOf")
    first = several[0] if isinstance(several, list) else schema
    return defs.get(str(first.get("$ref", "")).rpartition("/")[2], {})
