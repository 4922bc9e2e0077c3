"""Write down AWS's translation of a SAM template with each set of parameters of a JSON file.

Runs in the environment of the AWS SAM CLI.
"""

import json
import sys
from pathlib import Path

from samcli.lib.translate.sam_template_validator import SamTemplateValidator
from samcli.yamlhelper import yaml_parse


class ManagedPolicies:
    """AWS would be asked for these; templates name theirs by ARN."""

    def load(self) -> dict[str, str]:
        return {}


def translate(template: str, region: str, parameters: dict[str, str]) -> str:
    validator = SamTemplateValidator(
        yaml_parse(template), ManagedPolicies(), region=region, parameter_overrides=parameters
    )
    return str(validator.get_translated_template_if_valid())


if __name__ == "__main__":
    source, given, made = map(Path, (sys.argv[1], sys.argv[3], sys.argv[4]))
    every = [
        translate(source.read_text(), sys.argv[2], parameters)
        for parameters in json.loads(given.read_text())
    ]
    made.write_text(json.dumps(every))
