"""The standing orders: what an operator has ordered, for as long as it holds."""

from typing import Final, Literal, NamedTuple, TypeAlias

OrderKind: TypeAlias = Literal["pause", "backfill", "limit"]

OF_USER: Final = "user:"


class StandingOrder(NamedTuple):
    """An order of an operator that holds from `since` until it ends.

    Its name is unique within its kind, for ever. If it is about a user, the name begins with
    `prefix_of_user`, so that an erasure finds it. `rev` counts its writes; a new order has 1. An
    order that has ended is final. `body` is JSON, with the fields of its kind.
    """

    kind: OrderKind
    name: str
    since: int
    body: str
    ended_at: int | None = None
    rev: int = 1

    def change(self, body: str) -> "StandingOrder":
        """Return the order with another body, as its next write."""
        return self._replace(body=body, rev=self.rev + 1)

    def end(self, at: int, body: str | None = None) -> "StandingOrder":
        """Return the order as it ends, as its last write."""
        kept = self.body if body is None else body
        return self._replace(ended_at=at, body=kept, rev=self.rev + 1)


def escape(scope: str) -> str:
    """Return a scope without `#`, which ends it in the name of an order."""
    return scope.replace("%", "%25").replace("#", "%23")


def prefix_of_user(user_id: str) -> str:
    """Return the beginning of the names of all orders about a user, and of no others."""
    return f"{escape(f'{OF_USER}{user_id}')}#"
