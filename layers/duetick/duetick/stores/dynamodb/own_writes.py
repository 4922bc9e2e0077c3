"""The form of an action's own writes. DynamoDB's words for a wrong form do not say where it is."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

KINDS: Final = ("Put", "Update", "Delete", "ConditionCheck")
_WITH_VALUES: Final = ("Item", "Key", "ExpressionAttributeValues")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_binary(value: object) -> bool:
    return isinstance(value, str | bytes | bytearray)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _are(every: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(every, value))


_SCALARS: Final[Mapping[str, Callable[[object], bool]]] = {
    "S": _is_text,
    "N": _is_text,
    "B": _is_binary,
    "BOOL": _is_flag,
    "NULL": _is_flag,
    "SS": _are(_is_text),
    "NS": _are(_is_text),
    "BS": _are(_is_binary),
}


def faults_of(write: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults in the form of a write, each with its place."""
    for kind, what in write.items():
        if kind not in KINDS:
            yield f"{kind} is none of {', '.join(KINDS)}"
        elif not isinstance(what, Mapping):
            yield f"{kind} is {_name_type(what)}, not a dict"
        else:
            for part in _WITH_VALUES:
                yield from _faults_of_values(f"{kind}.{part}", what.get(part, {}))


def _faults_of_values(place: str, values: object) -> Iterator[str]:
    if not isinstance(values, Mapping):
        yield f"{place} is {_name_type(values)}, not a dict"
        return
    for name, value in values.items():
        yield from _faults_of_value(f"{place}.{name}", value)


def _faults_of_value(place: str, value: object) -> Iterator[str]:
    if not isinstance(value, Mapping) or len(value) != 1:
        yield f"{place} is {_name_type(value)}, not an attribute such as {{'S': 'text'}}"
        return
    ((kind, inner),) = value.items()
    if kind == "M":
        yield from _faults_of_values(f"{place}.M", inner)
    elif kind == "L" and isinstance(inner, list | tuple):
        for number, one in enumerate(inner):
            yield from _faults_of_value(f"{place}.L[{number}]", one)
    elif kind not in _SCALARS:
        yield f"{place} has the type {kind}, which is none of DynamoDB's"
    elif not _SCALARS[kind](inner):
        yield f"{place}.{kind} is {_name_type(inner)}, which that type does not hold"


def _name_type(value: object) -> str:
    """Name the type alone: the value may be a secret."""
    return f"of the type {type(value).__name__}"
