"""Typed input: JSON becomes what an action declares to take, or is refused with the reason."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Any,
    Final,
    ForwardRef,
    Literal,
    Protocol,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import Json

_NAMES: Final[dict[object, str]] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
    list: "a list",
    dict: "an object",
}
_READABLE: Final = (
    "Take text, numbers, true or false, null, lists, objects with text for keys, a dataclass of "
    "these, or a pydantic model, which converts what it is given."
)


@runtime_checkable
class Model(Protocol):
    """A pydantic model's class, as far as it is used here."""

    def model_validate(self, value: Json) -> object:
        """The model made of JSON; raises ValueError."""


@dataclass(frozen=True, slots=True)
class InputType:
    """What an action takes: a dataclass, a pydantic model, a plain JSON type, or anything."""

    annotation: object

    def read(self, value: Json) -> object:
        """The value as that type; raise InvalidSchedule naming the field that does not fit."""
        return _read(self.annotation, value, "input")

    def names(self) -> frozenset[str] | None:
        """Every field that it can hold, at any depth; None where it takes fields of any name."""
        found: set[str] = set()
        return frozenset(found) if _collect(self.annotation, found, set()) else None


def input_type(function: Callable[..., object]) -> InputType:
    """What the first argument of an action is annotated as; raise where no input can be read so.

    Its other annotations are nobody's business here, and may name what is there for a type checker
    alone.
    """
    first = next(iter(inspect.signature(function).parameters))
    named = inspect.unwrap(function)
    written = named if inspect.isroutine(named) else named.__call__
    annotation = getattr(written, "__annotations__", {}).get(first, Any)
    alone = SimpleNamespace(__annotations__={first: annotation})
    try:
        found = get_type_hints(alone, getattr(written, "__globals__", {}))[first]
        _check(found, "input", set())
    except NameError as problem:
        raise InvalidSchedule(
            "input",
            f"its type needs {problem.name!r}, which is not there yet when the action is "
            "registered. Define or import it above, and not for a type checker alone.",
        ) from None
    return InputType(found)


def _check(wanted: object, path: str, seen: set[object]) -> None:
    """Raise InvalidSchedule where a part of it is nothing that JSON can become."""
    origin, inners = get_origin(wanted), get_args(wanted)
    if isinstance(wanted, type) and is_dataclass(wanted):
        if wanted not in seen:
            seen.add(wanted)
            _check_made(wanted, path)
            for name, inner in _hints(wanted).items():
                _check(inner, f"{path}.{name}", seen)
    elif origin in (list, Union, UnionType) or (origin is dict and inners[0] is str):
        for inner in inners:
            _check(inner, path, seen)
    elif not (_is_anything(wanted) or isinstance(wanted, Model) or _is_plain(wanted)):
        shown = wanted.__name__ if isinstance(wanted, type) else wanted
        raise InvalidSchedule(path, f"no JSON can become {shown}. {_READABLE}")


def _check_made(wanted: type, path: str) -> None:
    """Raise InvalidSchedule where its fields do not make one: `InitVar`, or an `__init__` of its
    own.
    """
    try:
        inspect.signature(wanted).bind(**dict.fromkeys(_fields(wanted)))
    except TypeError as problem:
        raise InvalidSchedule(
            path, f"no {wanted.__name__} can be made of its fields ({problem})."
        ) from None


def _collect(wanted: object, found: set[str], seen: set[object]) -> bool:
    """Put the names of its fields into `found`; False where it takes others too."""
    if isinstance(wanted, type) and is_dataclass(wanted):
        if wanted in seen:
            return True
        seen.add(wanted)
        hints = _hints(wanted)
        found.update(hints)
        return all(_collect(each, found, seen) for each in hints.values())
    origin = get_origin(wanted)
    if origin in (list, Union, UnionType):
        return all(_collect(each, found, seen) for each in get_args(wanted))
    return origin is Literal or wanted is None or wanted in (str, int, float, bool, NoneType)


def _hints(wanted: type) -> dict[str, object]:
    """The fields of a dataclass that can be given, with their types."""
    hints = get_type_hints(wanted)
    return {name: hints[name] for name in _fields(wanted)}


def _fields(wanted: type) -> dict[str, Field[object]]:
    return {field.name: field for field in fields(wanted) if field.init}


def _is_anything(wanted: object) -> bool:
    """Also what is left of `Json` where it holds itself."""
    itself = isinstance(wanted, ForwardRef) and wanted.__forward_arg__ == "Json"
    return wanted is Any or wanted is object or itself


def _is_plain(wanted: object) -> bool:
    if get_origin(wanted) is Literal:
        return all(isinstance(one, (str, int, NoneType)) for one in get_args(wanted))
    return wanted is None or (isinstance(wanted, type) and wanted in _NAMES)


def _read(wanted: object, value: Json, path: str) -> object:
    if _is_anything(wanted):
        return value
    if isinstance(wanted, type) and is_dataclass(wanted):
        return _read_dataclass(wanted, value, path)
    if isinstance(wanted, Model):
        return _read_model(wanted, value, path)
    return _read_generic(wanted, value, path)


def _read_generic(wanted: object, value: Json, path: str) -> object:
    origin = get_origin(wanted)
    if origin in (Union, UnionType):
        return _read_union(wanted, value, path)
    if origin is Literal:
        known = get_args(wanted)
        fits = any(type(value) is type(one) and value == one for one in known)
        return _expect(fits, value, path, f"one of {known}")
    if origin in (list, dict):
        return _read_collection(origin, get_args(wanted), value, path)
    return _read_plain(wanted if isinstance(wanted, type) else NoneType, value, path)


def _read_plain(wanted: type, value: Json, path: str) -> object:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    return _expect(fits, value, path, _NAMES[wanted])


def _expect(fits: bool, value: Json, path: str, wanted: str) -> Json:
    if fits:
        return value
    raise InvalidSchedule(path, f"expected {wanted}, got {type(value).__name__}.")


def _read_union(wanted: object, value: Json, path: str) -> object:
    problems = []
    for option in get_args(wanted):
        try:
            return _read(option, value, path)
        except InvalidSchedule as error:
            problems.append(str(error))
    raise InvalidSchedule(path, "; or ".join(problems))


def _read_collection(origin: object, inner: tuple[object, ...], value: Json, path: str) -> object:
    if origin is list:
        _expect(isinstance(value, list), value, path, "a list")
        items = value if isinstance(value, list) else []
        return [_read(inner[0], item, f"{path}[{place}]") for place, item in enumerate(items)]
    _expect(isinstance(value, dict), value, path, "an object")
    pairs = value if isinstance(value, dict) else {}
    return {key: _read(inner[1], item, f"{path}.{key}") for key, item in pairs.items()}


def _read_model(wanted: Model, value: Json, path: str) -> object:
    try:
        return wanted.model_validate(value)
    except ValueError as error:
        raise InvalidSchedule(path, f"does not fit: {_first_of(error)}") from None


def _first_of(error: ValueError) -> str:
    """The first problem of a pydantic model. Its own text would quote the input."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    first = errors(include_input=False, include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}." if where else f"{first['msg']}."


def _read_dataclass(wanted: type, value: Json, path: str) -> object:
    if not isinstance(value, dict):
        raise InvalidSchedule(path, f"expected an object, got {type(value).__name__}.")
    known, hints = _fields(wanted), _hints(wanted)
    for name in value:
        if name not in known:
            raise InvalidSchedule(path, f"{name!r} is not known; known are {', '.join(known)}.")
    read = {name: _read(hints[name], value[name], f"{path}.{name}") for name in value}
    missing = [name for name, field in known.items() if name not in read and _required(field)]
    if missing:
        raise InvalidSchedule(path, f"{', '.join(missing)} is missing.")
    try:
        made: object = wanted(**read)
        return made
    except ValueError as error:
        raise InvalidSchedule(path, str(error)) from None


def _required(field: Field[object]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
