"""The difference between a field that was chosen and one that was left out."""

from typing import Any, Self


class Choosing:
    """The base of a dataclass that remembers which of its fields were given when it was made.

    A copy by `copy` or `pickle` does not remember them. Therefore a field also counts as chosen if
    it differs from its default. `_later` is JSON of the fields that only a later version knows.
    """

    __slots__ = ("_given", "_later")
    __match_args__: tuple[str, ...] = ()
    _given: frozenset[str]
    _later: str

    def __new__(cls, *places: object, **names: object) -> Self:
        """Note the names of the fields that are given, by place or by name."""
        made = object.__new__(cls)
        by_place = cls.__match_args__[: len(places)]
        object.__setattr__(made, "_given", frozenset((*by_place, *names)))
        object.__setattr__(made, "_later", "")
        return made

    @property
    def chosen(self) -> dict[str, Any]:
        """The fields that were chosen, with their values."""
        usual = type(self)()
        return {
            name: getattr(self, name)
            for name in self.__match_args__
            if name in self._given or getattr(self, name) != getattr(usual, name)
        }
