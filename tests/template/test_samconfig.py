"""samconfig.toml has two environments, dev and prod; the backend is a parameter of either."""

import re
import tomllib

import pytest

from tests.template.parsed import TEMPLATE, Deployment, template

TEXT = TEMPLATE.with_name("samconfig.toml").read_text()
CONFIG = tomllib.loads(TEXT)


def pairs(text: str) -> dict[str, str]:
    """Parameters as they are written in a row."""
    return dict(pair.split("=", 1) for pair in text.split())


def others() -> list[dict[str, str]]:
    """Return the backends that the comments of the file show."""
    return [pairs(line) for line in re.findall(r"^#   (Backend=.*)$", TEXT, re.MULTILINE)]


def given(name: str) -> dict[str, str]:
    """Return the parameters of an environment."""
    return pairs(CONFIG[name]["deploy"]["parameters"]["parameter_overrides"])


def test_there_are_two_environments_and_the_one_without_a_name_is_dev() -> None:
    assert {name for name in CONFIG if name != "version"} == {"dev", "prod", "default"}
    assert CONFIG["default"] == CONFIG["dev"]
    stacks = [CONFIG[name]["global"]["parameters"]["stack_name"] for name in ("dev", "prod")]
    assert stacks == ["duetick-dev", "duetick"]


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_each_environment_deploys_with_nothing_else(name: str) -> None:
    assert given(name).keys() <= template()["Parameters"].keys()
    assert Deployment(**given(name)).refused_by() == []


def test_production_alone_is_asked_about_before_it_changes() -> None:
    asked = {
        name: CONFIG[name]["deploy"]["parameters"]["confirm_changeset"]
        for name in CONFIG
        if name != "version"
    }
    assert asked == {"dev": False, "default": False, "prod": True}


def test_each_backend_is_one_parameter_away() -> None:
    backends = {given("dev")["Backend"], *(one["Backend"] for one in others())}
    assert backends == set(template()["Parameters"]["Backend"]["AllowedValues"])
    assert all(one.keys() <= template()["Parameters"].keys() for one in others())


def test_what_is_left_to_be_filled_in_is_refused_until_it_is() -> None:
    left = [pair for one in others() for pair in one.items() if "YOURS" in pair[1]]
    assert len(left) == 4
    for name, value in left:
        assert not re.fullmatch(template()["Parameters"][name]["AllowedPattern"], value)
