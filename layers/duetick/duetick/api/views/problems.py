"""The refusals of the API."""

from typing import NotRequired

from duetick.api.views.fields import TypedDict
from duetick.domain.codes import Code


class ProblemView(TypedDict):
    """One problem. `field` is a JSON pointer into the body, empty for the whole body. For a header,
    or a part of the path or query, it is the name.
    """

    field: str
    code: Code
    message: str


class ErrorView(TypedDict):
    """An error, and what to do. Every refusal has this form, also one of the gateway before any of
    our code runs: then the code is `refused` or `unavailable`. `problems` lists everything that is
    wrong with the request; `limit` and `value` name a quota.
    """

    error: str
    message: str
    problems: NotRequired[list[ProblemView]]
    limit: NotRequired[str]
    value: NotRequired[int]
