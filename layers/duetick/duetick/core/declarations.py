"""Checks of an action's declaration.

They run when its module is imported. The store's kind of transaction is checked before anything
fires.
"""

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

from duetick.core.inputs import InputType
from duetick.domain.errors import ConfigurationError, InvalidSchedule
from duetick.domain.occurrence import Occurrence
from duetick.domain.policies import Delivery
from duetick.ports import Dialect

if TYPE_CHECKING:
    from duetick.core.action import Action
    from duetick.core.flows import Flows

Transactional: TypeAlias = bool | Dialect
"""The kind of transaction that holds an action's effects; True for either kind, False for none."""

STORES: Final[dict[Dialect, str]] = {
    "sql": "sqlite:///… or postgresql://… (the stack's Backend=aurora or postgres)",
    "dynamodb": "dynamodb://… (the stack's Backend=dynamodb)",
}
WORDS: Final[dict[Dialect, str]] = {
    "sql": "run(sql, name=value)",
    "dynamodb": "write({'Put': {...}})",
}


def check_called(name: str, function: Callable[..., object]) -> None:
    """Raise InvalidSchedule unless the function takes (input, ctx). A class would run nothing."""
    try:
        if isinstance(function, type):
            raise TypeError(f"{function.__name__} is a class")
        inspect.signature(function).bind(None, None)
    except TypeError as problem:
        raise InvalidSchedule(
            "action",
            f"{name!r} must take two arguments by their places: (input, ctx), in this order "
            f"({problem}).",
        ) from None


def check_withheld(takes: InputType, names: Collection[str]) -> frozenset[str]:
    """Return the names. Raises InvalidSchedule if the input has no field of such a name."""
    if isinstance(names, str):
        raise InvalidSchedule("redact", f"expected several names, such as ({names!r},).")
    known = takes.names()
    unknown = set() if known is None else set(names) - known
    if unknown:
        fields = ", ".join(sorted(known or ())) or "none"
        raise InvalidSchedule(
            "redact", f"{', '.join(sorted(unknown))}: no field of the input; its fields: {fields}."
        )
    return frozenset(names)


@contextmanager
def naming(key: str) -> Iterator[None]:
    """Put the name of the action or static schedule before the text of a ValueError."""
    try:
        yield
    except ValueError as problem:
        raise InvalidSchedule(key, str(problem)) from None


def check_transactional(given: object) -> None:
    """Raise InvalidSchedule unless an action may declare the value as `transactional`."""
    known: tuple[str, ...] = get_args(Dialect)
    if not isinstance(given, bool) and given not in known:
        dialects = ", ".join(map(repr, known))
        raise InvalidSchedule(
            "transactional", f"expected {dialects}, or True for either; got {given!r}."
        )


def check_promise(action: str, transactional: Transactional, promise: Delivery) -> None:
    """Raise InvalidSchedule if the action cannot keep the promise of its schedule."""
    if promise is Delivery.EFFECTIVELY_ONCE and not transactional:
        raise InvalidSchedule(
            "policies.delivery",
            f"{action!r} cannot keep this promise; use at_least_once, or at_most_once.",
            "not_transactional",
            "The action does not commit its effects through ctx.transaction(), so they can happen "
            "twice. Declare it with transactional=True, or with what it speaks ('sql', "
            "'dynamodb').",
        )


def check_kept(action: "Action", occurrence: Occurrence) -> None:
    """Raise InvalidSchedule if the action cannot keep the promise of the occurrence in the ledger.

    The flow defines a static schedule and a resolver's answer, and the store holds their policies.
    The two differ during a deployment, and after one that refused some of its schedules.
    """
    if occurrence.policies.delivery is Delivery.EFFECTIVELY_ONCE and not action.transactional:
        raise InvalidSchedule(
            "policies.delivery",
            f"{action.name!r} cannot keep the promise that is stored, effectively_once.",
            "not_transactional",
            "The store has other policies for this schedule than its flow. Run migrate, which "
            "stores those of a static schedule; or correct the row that your application wrote.",
        )


def check_dialects(flows: "Flows", spoken: Dialect | None) -> None:
    """Raise ConfigurationError if the store does not have the transaction of an action."""
    for name, action in flows.actions():
        wanted = action.transactional
        if isinstance(wanted, str) and wanted != spoken:
            raise ConfigurationError(_refusal(f"{name}.{action.name}", wanted, spoken))


def _refusal(action: str, wanted: Dialect, spoken: Dialect | None) -> str:
    said = f"The action {action} is declared with transactional={wanted!r}"
    way_out = f"Give the deployment a store that speaks it: {STORES[wanted]}"
    if spoken is None:
        return f"{said}, and the store takes no effects of actions. {way_out}."
    return (
        f"{said}, and the store speaks {spoken!r}. {way_out}; or let the action write its effects "
        f"with {WORDS[spoken]}, and declare transactional={spoken!r}."
    )
