"""The pool of connections to Postgres, where threads meet in it."""

from typing import SupportsIndex

import pytest
from duetick.domain.errors import StoreUnavailable
from duetick.stores.postgres.database import Pool
from duetick.stores.postgres.errors import ConnectionLost
from duetick.stores.postgres.wire import Wire
from pg8000.core import CoreConnection


class TakenMeanwhile(list[Wire]):
    """Idle connections that are there when one looks, and another thread's when one takes."""

    def pop(self, index: SupportsIndex = -1, /) -> Wire:
        self.clear()
        return super().pop(index)


def connect() -> CoreConnection:
    """Return a connection on which nothing is said."""
    return object.__new__(CoreConnection)


def test_a_connection_that_breaks_is_told_whoever_takes_the_idle_ones_meanwhile() -> None:
    pool = Pool(connect, 2)
    pool._idle = TakenMeanwhile()

    def break_one() -> None:
        with pool.lend():
            pool._idle.append(Wire(connect()))
            raise ConnectionLost("gone")

    with pytest.raises(StoreUnavailable):
        break_one()
