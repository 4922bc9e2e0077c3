"""Typed input: JSON becomes the declared type of an action's input, or is refused."""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import partial
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Any,
    Final,
    ForwardRef,
    Literal,
    Protocol,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

from duetick.core.authors import words_of
from duetick.core.shapes import Path, either, flaws_of
from duetick.domain.errors import Flaw, InvalidSchedule, check_all, kind_of, sentence
from duetick.domain.schedule import Json

AnyName = TypeVar("AnyName", str, int)

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
    """The class of a pydantic model, as far as it is used here."""

    def model_validate(self, value: Json) -> object:
        """Return the model of a JSON value. Raises ValueError."""


@dataclass(frozen=True, slots=True)
class InputType:
    """The type of an action's input: a dataclass, a pydantic model, a plain JSON type, or any."""

    annotation: object

    def read(self, value: Json) -> object:
        """Return the value as that type. Raises InvalidSchedule with the fields that do not fit."""
        return _read(self.annotation, value, ("input",))

    def read_part(self, given: Mapping[str, Json]) -> object:
        """Return the part of an object that a dataclass names, as that dataclass. A model itself
        decides about names that it does not have.
        """
        known = fields_of(self.annotation) if _is_dataclass(self.annotation) else given
        return _read(self.annotation, {name: given[name] for name in given if name in known}, ())

    def names(self) -> frozenset[str] | None:
        """Return the names of all fields, at any depth; None if it takes fields of any name."""
        found: set[str] = set()
        return frozenset(found) if _collect(self.annotation, found, set()) else None


def input_type(function: Callable[..., object]) -> InputType:
    """Return the type of an action's first argument. Raises InvalidSchedule if JSON cannot be it.

    The other annotations are not read: they may exist for a type checker only.
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


def settings_type(wanted: object) -> InputType:
    """Return the type of a flow's settings. Raises InvalidSchedule unless it is a dataclass or a
    pydantic model, with fields that JSON can be.
    """
    if not (_is_dataclass(wanted) or isinstance(wanted, Model)):
        shown = wanted.__name__ if isinstance(wanted, type) else wanted
        raise InvalidSchedule("settings", f"expected a dataclass or a pydantic model, got {shown}.")
    _check(wanted, "settings", set())
    return InputType(wanted)


def _check(wanted: object, path: str, seen: set[object]) -> None:
    """Raise InvalidSchedule if JSON cannot become a part of the type."""
    origin, inners = get_origin(wanted), get_args(wanted)
    if _is_dataclass(wanted):
        if wanted not in seen:
            seen.add(wanted)
            _check_constructor(wanted, path)
            for name, inner in hints_of(wanted).items():
                _check(inner, f"{path}.{name}", seen)
    elif origin in (list, Union, UnionType) or (origin is dict and inners[0] is str):
        for inner in inners:
            _check(inner, path, seen)
    elif not (is_anything(wanted) or isinstance(wanted, Model) or _is_plain(wanted)):
        shown = wanted.__name__ if isinstance(wanted, type) else wanted
        raise InvalidSchedule(path, f"no JSON can become {shown}. {_READABLE}")


def _check_constructor(wanted: type, path: str) -> None:
    """Raise InvalidSchedule if the constructor takes more than the fields: an `InitVar`, or a
    handwritten `__init__`.
    """
    try:
        inspect.signature(wanted).bind(**dict.fromkeys(fields_of(wanted)))
    except TypeError as problem:
        raise InvalidSchedule(
            path, f"no {wanted.__name__} can be made of its fields ({problem})."
        ) from None


def _collect(wanted: object, found: set[str], seen: set[object]) -> bool:
    """Put the names of all fields into `found`. Return False if the type takes others too."""
    if _is_dataclass(wanted):
        if wanted in seen:
            return True
        seen.add(wanted)
        hints = hints_of(wanted)
        found.update(hints)
        return all(_collect(each, found, seen) for each in hints.values())
    origin = get_origin(wanted)
    if origin in (list, Union, UnionType):
        return all(_collect(each, found, seen) for each in get_args(wanted))
    return origin is Literal or wanted is None or wanted in (str, int, float, bool, NoneType)


def hints_of(wanted: type) -> dict[str, object]:
    """Return the fields of a dataclass's constructor with their types."""
    hints = get_type_hints(wanted)
    return {name: hints[name] for name in fields_of(wanted)}


def fields_of(wanted: type) -> dict[str, Field[object]]:
    """Return the fields that the constructor of a dataclass takes."""
    return {field.name: field for field in fields(wanted) if field.init}


def is_anything(wanted: object) -> bool:
    """Return True for a type that takes anything, such as the reference of `Json` to itself."""
    itself = isinstance(wanted, ForwardRef) and wanted.__forward_arg__ == "Json"
    return wanted is Any or wanted is object or itself


def _is_dataclass(wanted: object) -> TypeGuard[type]:
    return isinstance(wanted, type) and is_dataclass(wanted)


def _is_plain(wanted: object) -> bool:
    if get_origin(wanted) is Literal:
        return all(isinstance(one, (str, int, NoneType)) for one in get_args(wanted))
    return wanted is None or (isinstance(wanted, type) and wanted in _NAMES)


def _read(wanted: object, value: Json, path: Path) -> object:
    if is_anything(wanted):
        return value
    if _is_dataclass(wanted):
        return _read_dataclass(wanted, value, path)
    if isinstance(wanted, Model):
        return _read_model(wanted, value, path)
    return _read_generic(wanted, value, path)


def _read_generic(wanted: object, value: Json, path: Path) -> object:
    origin = get_origin(wanted)
    if origin in (Union, UnionType):
        return _read_union(get_args(wanted), value, path)
    if origin is Literal:
        known = get_args(wanted)
        fits = any(type(value) is type(one) and value == one for one in known)
        return _expect(fits, value, path, f"one of {', '.join(map(_json, known))}")
    if origin in (list, dict):
        return _read_collection(origin, get_args(wanted), value, path)
    return _read_plain(wanted if isinstance(wanted, type) else NoneType, value, path)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read_plain(wanted: type, value: Json, path: Path) -> object:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return _float(value, path)
    fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    return _expect(fits, value, path, _NAMES[wanted])


def _float(value: int, path: Path) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InvalidSchedule(path, "is too large for a number.", "out_of_range") from None


def _expect(fits: bool, value: Json, path: Path, wanted: str) -> Json:
    if fits:
        return value
    raise InvalidSchedule(path, f"expected {wanted}, got {kind_of(value)}.", "wrong_type")


def _read_union(options: Sequence[object], value: Json, path: Path) -> object:
    """Read the value as the first option that fits. If none fits, say what each expected."""
    problems: list[InvalidSchedule] = []
    for option in options:
        try:
            return _read(option, value, path)
        except InvalidSchedule as error:
            if option is not NoneType:
                problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    raise InvalidSchedule.of([either(path, [problem.flaws for problem in problems])])


def _read_collection(origin: object, inner: tuple[object, ...], value: Json, path: Path) -> object:
    if origin is list:
        _expect(isinstance(value, list), value, path, "a list")
        items = value if isinstance(value, list) else []
        read = _read_each(
            (place, inner[0], item, (*path, place)) for place, item in enumerate(items)
        )
        return list(read.values())
    _expect(isinstance(value, dict), value, path, "an object")
    pairs = value if isinstance(value, dict) else {}
    return _read_each((key, inner[1], item, (*path, key)) for key, item in pairs.items())


def _read_each(parts: Iterable[tuple[AnyName, object, Json, Path]]) -> dict[AnyName, object]:
    """Read each part by its name or place. One refusal lists everything that is wrong."""
    read: dict[AnyName, object] = {}

    def keep(name: AnyName, wanted: object, value: Json, path: Path) -> None:
        read[name] = _read(wanted, value, path)

    check_all(*(partial(keep, *part) for part in parts))
    return read


def _read_model(wanted: Model, value: Json, path: Path) -> object:
    try:
        return wanted.model_validate(value)
    except Exception as problem:
        errors = getattr(problem, "errors", None)
        if callable(errors):
            raise InvalidSchedule.of(flaws_of(errors(), value, path)) from None
        raise InvalidSchedule(path, sentence(words_of(problem))) from None


def _read_dataclass(wanted: type, value: Json, path: Path) -> object:
    if not isinstance(value, dict):
        raise InvalidSchedule(path, f"expected an object, got {kind_of(value)}.", "wrong_type")
    known, hints = fields_of(wanted), hints_of(wanted)
    given = {name: value[name] for name in value if name in known}
    read: dict[str, object] = {}
    check_all(
        lambda: _check_names(value, known, path),
        lambda: read.update(
            _read_each((name, hints[name], given[name], (*path, name)) for name in given)
        ),
    )
    try:
        instance: object = wanted(**read)
        return instance
    except Exception as problem:
        raise InvalidSchedule(path, sentence(words_of(problem))) from None


def _check_names(value: Mapping[str, Json], known: Mapping[str, Field[object]], path: Path) -> None:
    names = ", ".join(known)
    unknown = f"is not known; known are {names}."
    flaws = [Flaw((*path, name), "unknown_field", unknown) for name in value if name not in known]
    missing = [name for name, field in known.items() if name not in value and is_required(field)]
    flaws += [Flaw((*path, name), "missing", "is missing.") for name in missing]
    if flaws:
        raise InvalidSchedule.of(flaws)


def is_required(field: Field[object]) -> bool:
    """Return True if a dataclass has no default for the field."""
    return field.default is MISSING and field.default_factory is MISSING
