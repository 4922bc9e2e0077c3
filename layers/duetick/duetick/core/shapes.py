"""The errors of a pydantic model in plain words.

Pydantic's own texts speak of dictionaries and parsing. This module does not import pydantic.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from duetick.core.authors import UNFIT, words_of
from duetick.domain.codes import Code
from duetick.domain.errors import Flaw, kind_of, say_count, sentence
from duetick.domain.schedule import HALF_A_PAIR

Detail: TypeAlias = Mapping[str, Any]
"""One of the errors of a ValidationError."""
Saying: TypeAlias = Callable[[Detail], tuple[Code, str]]
"""A function that returns the code and the text of a mistake."""
Path: TypeAlias = tuple[str | int, ...]

_WANTED: Final[Mapping[str, str]] = {
    "string": "text",
    "bytes": "text",
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "fraction": "a number",
    "complex": "a number",
    "bool": "true or false",
    "none": "null",
    **dict.fromkeys(("dict", "mapping", "model", "model_attributes", "dataclass"), "an object"),
    **dict.fromkeys(("frozen_dict", "ordered_dict", "counter"), "an object"),
    **dict.fromkeys(("list", "tuple", "named_tuple", "set", "frozen_set", "deque"), "a list"),
    "iterable": "a list",
    "date": "a date such as 2026-12-01",
    "time": "a time of day such as 09:00:00",
    "datetime": "a time such as 2026-12-01T09:00:00Z",
    "time_delta": "a duration such as PT15M",
    "uuid": "a UUID",
    "url": "an address such as https://example.org",
}
"""Our words for the types of pydantic, by the first part of the names of its errors."""


def _says(code: Code, text: str) -> Saying:
    return lambda _: (code, text)


def _kind(wanted: str) -> Saying:
    def say(one: Detail) -> tuple[Code, str]:
        got = kind_of(one["input"])
        if got == wanted:
            return "out_of_range", f"is too large for {wanted}."
        return "wrong_type", f"expected {wanted}, got {got}."

    return say


def _bound(words: str, name: str) -> Saying:
    return lambda one: ("out_of_range", f"expected {words} {one['ctx'][name]}.")


def _most(noun: str, name: str) -> Saying:
    return lambda one: ("too_long", f"expected at most {say_count(one['ctx'][name], noun)}.")


def _least(noun: str) -> Saying:
    return lambda one: (
        "too_short",
        f"expected at least {say_count(one['ctx']['min_length'], noun)}.",
    )


def _say_too_short(one: Detail) -> tuple[Code, str]:
    if not one["input"]:
        return "blank", "must not be empty."
    has, least = say_count(len(one["input"]), "character"), one["ctx"]["min_length"]
    return "too_short", f"has {has}; the least is {least:,}."


def _say_too_long(one: Detail) -> tuple[Code, str]:
    has, most = say_count(len(one["input"]), "character"), one["ctx"]["max_length"]
    return "too_long", f"has {has}; the most is {most:,}."


def _choice(one: Detail) -> tuple[Code, str]:
    """Say the expected choices. Python's True, False and None outside of quotes become JSON's."""
    words = {"True": "true", "False": "false", "None": "null"}
    quoted_or_word = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+"
    known = one["ctx"].get("expected") or one["ctx"]["expected_tags"]
    choices = re.sub(quoted_or_word, lambda found: words.get(found[0], found[0]), str(known))
    return "not_one_of", f"expected {choices}."


def _explain_raised(one: Detail) -> tuple[Code, str]:
    error = one["ctx"]["error"]
    return "invalid", sentence(words_of(error) if isinstance(error, Exception) else UNFIT)


def _unread(one: Detail) -> tuple[Code, str]:
    """Say why pydantic refused a text that Python's JSON reader accepted."""
    deep = "recursion" in str(one["ctx"])
    why = "is nested too deeply; make it flatter." if deep else f"holds {HALF_A_PAIR}"
    return "not_json", f"The body {why}"


_DEEP: Final = _says("not_json", "is nested too deeply; make it flatter.")
_SAID: Final[Mapping[str, Saying]] = {
    **{f"{name}_type": _kind(wanted) for name, wanted in _WANTED.items()},
    **{f"{name}_parsing": _kind(wanted) for name, wanted in _WANTED.items()},
    "missing": _says("missing", "is missing."),
    "extra_forbidden": _says("unknown_field", "is not a field."),
    "none_required": _kind("null"),
    "int_from_float": _kind("a whole number"),
    "int_parsing_size": _says("out_of_range", "is too large."),
    "finite_number": _says("out_of_range", "expected a number that is not infinite."),
    "greater_than_equal": _bound("at least", "ge"),
    "less_than_equal": _bound("at most", "le"),
    "greater_than": _bound("more than", "gt"),
    "less_than": _bound("less than", "lt"),
    "multiple_of": _bound("a multiple of", "multiple_of"),
    "decimal_max_digits": _most("digit", "max_digits"),
    "decimal_whole_digits": _most("digit", "whole_digits"),
    "decimal_max_places": _most("digit after the point", "decimal_places"),
    "too_short": _least("item"),
    "too_long": _most("item", "max_length"),
    "bytes_too_short": _least("byte"),
    "bytes_too_long": _most("byte", "max_length"),
    "url_too_long": _most("character", "max_length"),
    "string_too_short": _say_too_short,
    "string_too_long": _say_too_long,
    "string_pattern_mismatch": _says("invalid", "does not have the form that is expected here."),
    "string_not_ascii": _says("character", "holds a character beyond ASCII."),
    "string_unicode": _says("character", f"holds {HALF_A_PAIR}"),
    "date_from_datetime_parsing": _kind(_WANTED["date"]),
    "date_from_datetime_inexact": _says("invalid", "expected a date without a time of day."),
    "datetime_from_date_parsing": _kind(_WANTED["datetime"]),
    "date_past": _says("invalid", "expected a date in the past."),
    "date_future": _says("invalid", "expected a date to come."),
    "datetime_past": _says("invalid", "expected a time in the past."),
    "datetime_future": _says("invalid", "expected a time to come."),
    "timezone_naive": _says("invalid", "expected a time without a zone: 2026-12-01T09:00:00."),
    "timezone_aware": _says("invalid", "expected a time with its zone: 2026-12-01T09:00:00Z."),
    "url_scheme": _says("invalid", "expected an address that begins otherwise, as https:// does."),
    "url_syntax_violation": _kind(_WANTED["url"]),
    "uuid_version": _says("invalid", "expected a UUID of another version."),
    "recursion_loop": _DEEP,
    "recursion_depth_exceeded": _DEEP,
    "json_invalid": _unread,
    "literal_error": _choice,
    "enum": _choice,
    "union_tag_not_found": _says("missing", "is missing."),
    "union_tag_invalid": _choice,
    "value_error": _explain_raised,
    "assertion_error": _explain_raised,
}


def flaws_of(details: Iterable[Detail], value: object, at: Path = ()) -> list[Flaw]:
    """Return the flaws of the value at a path, one for each field.

    If a value fits none of several types, one flaw says what each type expected.
    """
    groups: dict[Path, dict[str, list[Flaw]]] = {}
    for detail in details:
        path, fork, option = _locate(detail, value)
        flaw = Flaw((*at, *path), *_explain(detail))
        groups.setdefault((*at, *fork), {}).setdefault(option, []).append(flaw)
    found: dict[Path, Flaw] = {}
    for fork, options in groups.items():
        several = list(options.values())
        for flaw in [either(fork, several)] if several[1:] else several[0]:
            found.setdefault(flaw.path, flaw)
    return list(found.values())


def either(path: Path, options: Iterable[Sequence[Flaw]]) -> Flaw:
    """Return one flaw for a value that fits none of several types."""
    texts = {", ".join(_say_below(path, flaw) for flaw in option): None for option in options}
    return Flaw(path, "wrong_type", f"{'; or '.join(texts)}.")


def _say_below(path: Path, flaw: Flaw) -> str:
    return str(Flaw(flaw.path[len(path) :], flaw.code, flaw.problem)).rstrip(".")


def _explain(detail: Detail) -> tuple[Code, str]:
    """Return the code and text of an error. An error of the model's author has no `url`."""
    if "url" not in detail:
        return "invalid", sentence(str(detail["msg"]))
    say = _SAID.get(detail["type"], _says("invalid", UNFIT))
    return say(detail)


def _locate(detail: Detail, value: object) -> tuple[Path, Path, str]:
    """Return the path of an error in the value, and the path and name of a type that was tried.

    Pydantic's path also contains the types that it tried. The first of them is returned.
    """
    found: list[str | int] = []
    fork: Path | None = None
    option, last = "", len(detail["loc"]) - 1
    for place, part in enumerate(detail["loc"]):
        misses = detail["type"] == "missing" and place == last
        if isinstance(value, dict) and (part in value or misses):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and (part < len(value) or misses):
            value = value[part] if part < len(value) else None
        else:
            if fork is None and part != "[key]":
                fork, option = tuple(found), str(part)
            continue
        found.append(part)
    if detail["type"].startswith("recursion"):
        del found[1:]  # the long path of a recursion helps nobody
    path = (*found, *_tag(detail))
    return path, path if fork is None else fork, option


def _tag(detail: Detail) -> Path:
    """Return the field that chooses between several types, if the error names one."""
    name = str((detail.get("ctx") or {}).get("discriminator", ""))
    quoted = re.fullmatch(r"'(.*)'", name)
    return (quoted[1],) if quoted else ()
