"""The errors of expressions and zones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetick.domain.errors import Flaw, Refusal, sentence

if TYPE_CHECKING:
    from duetick.domain.codes import Code


class InvalidExpression(Refusal, ValueError):
    """A text that is no expression, or that can never fire.

    The message says what is wrong and where, and shows a correct expression.
    """

    def __init__(
        self, message: str, code: Code = "invalid_cron", path: tuple[str, ...] = ("cron",)
    ) -> None:
        super().__init__(message)
        self.code: Code = code
        self._flaws: tuple[Flaw, ...] = (Flaw(path, code, message),)

    @classmethod
    def of(cls, flaws: list[Flaw]) -> InvalidExpression:
        """Return one refusal for several flaws of a day map."""
        made = InvalidExpression(" ".join(sentence(one.problem) for one in flaws), flaws[0].code)
        made._flaws = tuple(flaws)
        return made

    @property
    def flaws(self) -> tuple[Flaw, ...]:
        """See `Refusal`."""
        return self._flaws


class InvalidTimezone(InvalidExpression):
    """A name that is no IANA zone of the pinned database. The message offers similar names."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"timezone: {problem}", "unknown_timezone")
        self.problem = problem

    @property
    def flaws(self) -> tuple[Flaw, ...]:
        """See `Refusal`."""
        return (Flaw(("timezone",), self.code, self.problem),)


def quote(text: str) -> str:
    """Return at most 40 characters of foreign text, with everything unprintable escaped."""
    return repr(text if len(text) <= 40 else text[:40] + "…")
