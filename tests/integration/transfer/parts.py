"""Parts for tests of readers: the items of a text, by their fate."""

from collections.abc import Iterable
from typing import TypeVar

from duetick.cli.transfer.items import RefusedItem, Remark, SourceItem, SourcePart

Part = TypeVar("Part", SourceItem, RefusedItem, Remark)


def items(found: Iterable[SourcePart]) -> list[SourceItem]:
    """Return the items. Each can be a schedule."""
    return _all(found, SourceItem)


def only(found: Iterable[SourcePart]) -> SourceItem:
    """Return the one item, which can be a schedule."""
    (one,) = found
    assert isinstance(one, SourceItem), one
    return one


def refused(found: Iterable[SourcePart]) -> RefusedItem:
    """Return the one item, which is refused, with its reason and the text to write instead."""
    (one,) = found
    assert isinstance(one, RefusedItem), one
    assert one.why
    assert one.instead
    return one


def _all(found: Iterable[SourcePart], kind: type[Part]) -> list[Part]:
    every = [*found]
    assert all(isinstance(one, kind) for one in every), every
    return [one for one in every if isinstance(one, kind)]
