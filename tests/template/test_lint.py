"""Every combination of parameters is a template that SAM and cfn-lint have nothing against."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.lab.process import LabError
from tests.lab.sam import Sam
from tests.template.combinations import GIVEN, combinations, covering
from tests.template.parsed import TEMPLATE, Deployment, template

DEPLOYMENT: Final = re.compile(r"Deployment[0-9a-f]{10}|deployment id: [0-9a-f]{40}")
"""An API's deployment is named after the second in which it is made."""

pytestmark = pytest.mark.slow


def test_sam_finds_nothing_wrong(sam: Sam) -> None:
    assert "is a valid SAM Template" in sam.validate(TEMPLATE)


@pytest.fixture(scope="module")
def translated(sam: Sam, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Yield AWS's translations of the template, with each choice of each parameter."""
    made = sam.translate(TEMPLATE, tmp_path_factory.mktemp("translated"), covering())
    return [DEPLOYMENT.sub("Deployment", one) for one in made]


def test_the_linter_finds_nothing_in_what_aws_makes_of_any_combination(
    sam: Sam, translated: list[str], tmp_path: Path
) -> None:
    """The transform decides no condition: it fills the cadence in, and no other choice."""
    given = covering()
    assert len(translated) == len(given)
    cadences = {one.get("TickMinutes"): text for one, text in zip(given, translated, strict=True)}
    assert set(cadences.values()) == set(translated)
    assert [sam.lint(one, tmp_path) for one in cadences.values()] == ["", ""]


def test_the_linter_looks_behind_every_condition(
    sam: Sam, translated: list[str], tmp_path: Path
) -> None:
    wrong = translated[0].replace("com.amazonaws.${AWS::Region}.secretsmanager", "${Nothing}")
    assert wrong != translated[0]
    with pytest.raises(LabError, match="Nothing"):
        sam.lint(wrong, tmp_path)


def test_the_linter_finds_nothing_where_no_parameter_is_empty(
    sam: Sam, translated: list[str], tmp_path: Path
) -> None:
    """The template's exceptions are about empty parameters alone."""
    made = yaml.safe_load(translated[0])
    del made["Metadata"]["cfn-lint"]
    for name, parameter in made["Parameters"].items():
        parameter["Default"] = GIVEN.get(name, parameter["Default"])
        assert parameter["Default"] != "", name
    assert sam.lint(yaml.safe_dump(made), tmp_path) == ""


def test_the_transform_makes_no_queue_of_its_own(translated: list[str]) -> None:
    ours = len(Deployment(Transport="queue").of_type("AWS::SQS::Queue"))
    assert {one.count("Type: AWS::SQS::Queue\n") for one in translated} == {ours}


def test_what_the_transform_looks_up_in_a_map_is_a_text(translated: list[str]) -> None:
    assert "Fn::FindInMap" in translated[0]
    assert [key for key in looked_up(yaml.safe_load(translated[0])) if isinstance(key, int)] == []


def looked_up(part: object) -> Iterator[object]:
    """Yield every key that a map is asked for."""
    if isinstance(part, dict):
        yield from part.get("Fn::FindInMap", ())
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from looked_up(one)


def test_each_combination_is_allowed_and_leads_to_a_stack() -> None:
    for parameters in combinations():
        deployment = Deployment(**parameters)
        assert deployment.refused_by() == []
        assert deployment.resources.keys() <= template()["Resources"].keys()
