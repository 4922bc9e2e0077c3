"""A call gets the first route of its method and path."""

import pytest
from duetick.api.routes import ANY, OWN
from duetick.api.routing import find, methods


def found(method: str, path: str) -> tuple[str, str, dict[str, str]] | None:
    """Return the name, the prefix and the names of the route of a call."""
    route = find(method, path)
    return route and (route[0].name, route[1], route[2])


@pytest.mark.parametrize("end", ["", "/", "///"])
def test_a_path_may_end_with_slashes(end: str) -> None:
    assert found("GET", f"/api/schedules{end}") == ("list_schedules", OWN, {})
    shown = ("get_schedule", OWN, {"key": "a"})
    assert found("GET", f"/api/schedules/a{end}") == shown


@pytest.mark.parametrize("path", ["", "/", "/api", "api/schedules", "/api//schedules", "/api/s"])
def test_a_path_that_no_route_has_is_nobodys(path: str) -> None:
    assert found("GET", path) is None
    assert methods(path) == set()


@pytest.mark.parametrize("name", ["a%2Fb", "a~2Fb", "a b", "é", "o'clock", "x|y^z", "{key}", "-"])
def test_a_name_is_one_part_of_the_path_as_it_came(name: str) -> None:
    assert found("PUT", f"/api/users/ann/schedules/{name}") == (
        "put_schedule", ANY, {"user": "ann", "key": name},
    )  # fmt: skip


@pytest.mark.parametrize("name", ['a"b', "a#b", "a?b", "a\\b", "a\tb"])
def test_a_name_with_what_no_address_has_is_refused(name: str) -> None:
    assert found("GET", f"/api/schedules/{name}") is None
    assert "GET" in methods(f"/api/schedules/{name}")


def test_of_two_routes_that_a_path_fits_the_first_is_called() -> None:
    by_external = ("get_by_external", OWN, {"key": "upcoming"})
    assert found("GET", "/api/schedules/by-external/upcoming") == by_external
    paused = ("pause_schedule", OWN, {"key": "by-external"})
    assert found("POST", "/api/schedules/by-external/pause") == paused


def test_a_method_is_told_from_the_routes_of_a_path() -> None:
    assert found("PATCH", "/api/schedules") is None
    assert methods("/api/schedules") == {"GET", "POST"}
    assert methods("/api/schedules/") == set()
