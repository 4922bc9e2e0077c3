"""Every combination of parameters is a template that SAM and cfn-lint have nothing against."""

from pathlib import Path

import pytest

from tests.lab.sam import Sam
from tests.template.combinations import combinations, spoken
from tests.template.parsed import TEMPLATE, Deployment, template

pytestmark = pytest.mark.slow


def test_sam_finds_nothing_wrong(sam: Sam) -> None:
    assert "is a valid SAM Template" in sam.validate(TEMPLATE)


@pytest.mark.parametrize("parameters", combinations()[::12], ids=spoken)
def test_the_linter_finds_nothing_in_what_aws_makes_of_it(
    sam: Sam, tmp_path: Path, parameters: dict[str, str]
) -> None:
    assert sam.lint_translated(TEMPLATE, tmp_path, parameters) == ""


def test_the_transform_makes_no_queue_of_its_own(sam: Sam) -> None:
    assert sam.translate(TEMPLATE, {}).count("Type: AWS::SQS::Queue\n") == 1


def test_each_combination_is_allowed_and_leads_to_a_stack() -> None:
    for parameters in combinations():
        deployment = Deployment(**parameters)
        assert deployment.refused_by() == []
        assert deployment.resources.keys() <= template()["Resources"].keys()
