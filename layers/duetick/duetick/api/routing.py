"""The route of a call, by its method and its path."""

import re
from typing import Final, NamedTuple

from duetick.api.routes import ROUTES, Route

NAME: Final = re.compile(r"[-\w.~()'!*:@,;=+&$%<> \[\]{}|^]+")
"""A user, a key or another name as a path has it: encoded, or as a gateway decoded it."""


class Form(NamedTuple):
    """A route below one of its prefixes, and the parts of its path."""

    route: Route
    base: str
    parts: list[str]

    def names(self, parts: list[str]) -> dict[str, str] | None:
        """Return the names in a path of this form, or None if it has another."""
        if len(parts) != len(self.parts):
            return None
        found = {}
        for form, part in zip(self.parts, parts, strict=True):
            if form.startswith("{") and NAME.fullmatch(part):
                found[form[1:-1]] = part
            elif form != part:
                return None
        return found

    def may_be(self, parts: list[str]) -> bool:
        """Return True if a path has this form. Its names may have any characters."""
        return len(parts) == len(self.parts) and all(
            form == part or (part and form.startswith("{"))
            for form, part in zip(self.parts, parts, strict=True)
        )


FORMS: Final = tuple(
    Form(route, base, (base + route.path).split("/")) for route in ROUTES for base in route.bases
)


def find(method: str, path: str) -> tuple[Route, str, dict[str, str]] | None:
    """Return the first route of that method and path, its prefix and the names in the path. The
    path may end with slashes.
    """
    parts = path.rstrip("/").split("/")
    for form in FORMS:
        names = form.names(parts) if form.route.method == method else None
        if names is not None:
            return form.route, form.base, names
    return None


def methods(path: str) -> set[str]:
    """Return the methods of the routes of a path."""
    parts = path.split("/")
    return {form.route.method for form in FORMS if form.may_be(parts)}
