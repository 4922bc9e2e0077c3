"""Pickles of others, read without running any of their code.

A pickle names functions and classes, and its reader calls them: the writer of a pickle decides what
the reader runs. So this reader gives it none. A short list of names has harmless counterparts:
dates, time zones, plain containers. Any other name becomes a `StandIn`, which keeps what the pickle
says and does nothing.
"""

import datetime
import io
import pickle
from collections.abc import Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo

LARGEST: Final = 1024 * 1024
"""The most bytes of a pickle that is read."""


class NotAPickle(ValueError):
    """Bytes that cannot be read as a pickle of data."""


class StandIn:
    """An object of a class that is not loaded: the class's name, the arguments, and the state."""

    ref = ""

    def __new__(cls, *arguments: object, **named: object) -> "StandIn":
        """Keep the arguments."""
        made = object.__new__(cls)
        made.arguments = (*arguments, *named.values())
        made.state = {}
        return made

    arguments: tuple[object, ...]
    state: Mapping[str, Any]

    def __init__(self, *arguments: object, **named: object) -> None:
        """See `__new__`."""

    def __setstate__(self, state: object) -> None:
        """Keep the state. One of slots comes as a pair."""
        parts = state if isinstance(state, tuple) else (state,)
        whole: dict[str, Any] = {}
        for part in parts:
            whole |= part if isinstance(part, dict) else {}
        self.state = whole

    def append(self, value: object) -> None:
        """Drop an element: the class was a list."""

    def extend(self, values: object) -> None:
        """Drop elements: the class was a list."""

    def __setitem__(self, key: object, value: object) -> None:
        """Drop an entry: the class was a mapping."""


def _reconstruct(cls: type, base: type, state: object) -> object:
    """Make an object as old pickles do (`copyreg._reconstructor`): a stand-in for a stand-in."""
    del base, state
    return cls()


class _Zone:
    """The counterpart of `zoneinfo.ZoneInfo`."""

    @staticmethod
    def of(key: object, *_: object) -> ZoneInfo:
        """Return the zone of a name."""
        return ZoneInfo(str(key))


def _attribute(owner: object, name: object) -> object:
    """Return the one attribute that pickles of zones ask for (`getattr`)."""
    if owner is _Zone and name == "_unpickle":
        return _Zone.of
    raise NotAPickle(f"it asks for an attribute {name!r}")


def _bytes(text: object, *_: object) -> bytes:
    """Return bytes as old pickles write them, as a text (`codecs.encode`)."""
    return str(text).encode("latin-1")


def _utc(*_: object) -> datetime.tzinfo:
    return datetime.UTC


def _make_fixed(minutes: object, *_: object) -> datetime.tzinfo:
    return datetime.timezone(datetime.timedelta(minutes=int(str(minutes))))


KNOWN: Final[Mapping[tuple[str, str], object]] = {
    ("datetime", "datetime"): datetime.datetime,
    ("datetime", "date"): datetime.date,
    ("datetime", "time"): datetime.time,
    ("datetime", "timedelta"): datetime.timedelta,
    ("datetime", "timezone"): datetime.timezone,
    ("zoneinfo", "ZoneInfo"): _Zone,
    ("zoneinfo", "ZoneInfo._unpickle"): _Zone.of,
    ("backports.zoneinfo", "ZoneInfo._unpickle"): _Zone.of,
    ("pytz", "_p"): _Zone.of,
    ("pytz", "_UTC"): _utc,
    ("pytz", "_FixedOffset"): _make_fixed,
    ("dateutil.tz.tz", "tzutc"): _utc,
    ("copyreg", "_reconstructor"): _reconstruct,
    ("_codecs", "encode"): _bytes,
    ("builtins", "object"): object,
    ("builtins", "getattr"): _attribute,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("collections", "OrderedDict"): dict,
}
"""The names that have a counterpart. None of them can do more than make a value."""


RENAMED: Final = {"__builtin__": "builtins", "copy_reg": "copyreg"}
"""Modules that old pickles name as Python 2 did."""


class _Reader(pickle.Unpickler):
    """An unpickler that loads no class and no function."""

    def find_class(self, module: str, name: str) -> object:
        """Return the counterpart of a name, or a stand-in for the name."""
        found = KNOWN.get((RENAMED.get(module, module), name))
        return found or type("StandIn", (StandIn,), {"ref": f"{module}:{name}"})


def read_pickle(data: bytes) -> object:
    """Return the data of a pickle. Raises NotAPickle."""
    if len(data) > LARGEST:
        raise NotAPickle(f"it has {len(data):,} bytes, and {LARGEST:,} are read at most")
    try:
        return _Reader(io.BytesIO(data)).load()
    except Exception as problem:  # a broken pickle may raise anything
        raise NotAPickle(f"{type(problem).__name__}: {problem}") from problem
