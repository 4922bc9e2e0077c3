"""T-05 with a process that is really killed: at the port, and inside a store's transaction."""

from pathlib import Path

import pytest

from tests.simulation.killed import Place, flaws_after, kill_there
from tests.simulation.story import Fault

pytestmark = pytest.mark.slow

DEATHS = [
    Fault("claim", 3, "dies after"),
    Fault("begin", 2, "dies after"),
    Fault("effects", 2, "dies before"),
    Fault("effects", 2, "dies after"),
    *(Fault("statement", nth, "dies after") for nth in (14, 20, 31, 44, 61)),
]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return the place of an empty database, for this process and the killed ones."""
    if request.param == "postgres":
        return Place(str(request.getfixturevalue("postgres_url")))
    return Place(str(tmp_path))


@pytest.mark.parametrize("death", DEATHS, ids=lambda one: f"{one.boundary} {one.nth} {one.kind}")
def test_t05_what_a_killed_process_leaves_behind_is_accounted_for(
    place: Place, death: Fault
) -> None:
    place.ground().close()
    assert kill_there(place, death) == -9
    assert flaws_after(place) == []
