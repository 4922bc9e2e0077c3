"""Print what AWS makes of a SAM template. Runs in the environment of the AWS SAM CLI."""

import sys
from pathlib import Path

from samcli.lib.translate.sam_template_validator import SamTemplateValidator
from samcli.yamlhelper import yaml_parse


class ManagedPolicies:
    """AWS would be asked for these; templates name theirs by ARN."""

    def load(self) -> dict[str, str]:
        return {}


def translate(template: Path, region: str, parameters: dict[str, str]) -> str:
    parsed = yaml_parse(template.read_text())
    validator = SamTemplateValidator(
        parsed, ManagedPolicies(), region=region, parameter_overrides=parameters
    )
    return str(validator.get_translated_template_if_valid())


if __name__ == "__main__":
    path, region, *given = sys.argv[1:]
    sys.stdout.write(translate(Path(path), region, dict(each.split("=", 1) for each in given)))
