"""The record of operations on SQL."""

from collections.abc import Callable, Sequence

from duetick.domain.operations import Operation, OperationPlace
from duetick.stores.sql.session import Params, Row


def operation_params(one: Operation) -> Params:
    """Return the parameters of `operation_put`."""
    return {
        "id": one.id,
        "at": one.at,
        "who": one.who,
        "verb": one.verb,
        "user_id": one.user_id,
        "target": one.target,
        "why": one.why,
        "outcome": one.outcome,
    }


def operations(
    run: Callable[[str, Params], Sequence[Row]],
    after: OperationPlace,
    limit: int,
    user_id: str | None,
) -> Sequence[Operation]:
    """Return a page of the record, the newest first."""
    at, name = after
    params: Params = {"at": at, "id": name, "limit": limit}
    if user_id is None:
        rows = run("operations", params)
    else:
        rows = run("operations_of_user", {**params, "user_id": user_id})
    return [Operation(*row) for row in rows]
