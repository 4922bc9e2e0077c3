"""The AWS SAM CLI and cfn-lint: validate, build without Docker, deploy to the emulated AWS."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.credentials import DUMMY
from tests.lab.emulated_aws import REGION, EmulatedAws
from tests.lab.process import run
from tests.lab.pythons import environment, working_python
from tests.lab.wheels import offline

PART = "The AWS SAM CLI"
Parameters = Mapping[str, str]


class Sam:
    """The command line, with a folder of its own: neither telemetry nor anyone's settings."""

    def __init__(self, home: Path) -> None:
        self._bin = environment("sam", PART) / "bin"
        self._env = {
            **os.environ,
            **DUMMY,
            **offline(),
            "AWS_DEFAULT_REGION": REGION,
            "__SAM_CLI_APP_DIR": str(home),
            "SAM_CLI_TELEMETRY": "0",
            "SAM_CLI_POLL_DELAY": "0.2",
            "PATH": f"{working_python(PART).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        }

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a shell that finds the command."""
        return {**self._env, "PATH": f"{self._bin}{os.pathsep}{self._env['PATH']}"}

    def validate(self, template: Path) -> str:
        """Run both of SAM's own checks; each passes templates that the other refuses."""
        command = ["validate", "--template-file", str(template)]
        return self._sam(*command, folder=template.parent) + self._sam(
            *command, "--lint", folder=template.parent
        )

    def lint_translated(self, template: Path, folder: Path, parameters: Parameters) -> str:
        """Run cfn-lint on the template as AWS translates it with these parameters; a finding
        raises.
        """
        (made,) = self.translate(template, folder, [parameters])
        return self.lint(made, folder)

    def lint(self, translated: str, folder: Path) -> str:
        """cfn-lint on a template that was translated; a finding raises."""
        written = folder / "translated.yaml"
        written.write_text(translated)
        return run([self._bin / "cfn-lint", written], env=self._env)

    def translate(self, template: Path, folder: Path, every: Sequence[Parameters]) -> list[str]:
        """Return the templates that AWS makes of this one, with each of these sets of
        parameters.
        """
        given, made = folder / "parameters.json", folder / "translated.json"
        given.write_text(json.dumps([dict(one) for one in every]))
        script = Path(__file__).parent / "translate.py"
        run([self._bin / "python", script, template, REGION, given, made], env=self._env)
        read: list[str] = json.loads(made.read_text())
        return read

    def build(self, template: Path, build_dir: Path, parameters: Parameters | None = None) -> Path:
        """Build functions and layers into a folder; returns the built template."""
        command = ["build", "--template-file", str(template), "--build-dir", str(build_dir)]
        self._sam(*command, *_overrides(parameters), folder=template.parent)
        return build_dir / "template.yaml"

    def package(self, aws: EmulatedAws, built_template: Path, packaged: Path) -> None:
        """Upload what was built once for many deployments, and write the template that names it.

        It is JSON: SAM reads YAML of this length for a second, several times a deployment.
        """
        command = ["package", "--template-file", str(built_template), "--resolve-s3", "--use-json"]
        self._sam(
            *command,
            "--output-template-file",
            str(packaged),
            folder=built_template.parent,
            env={"AWS_ENDPOINT_URL": aws.endpoint},
        )

    def deploy(
        self,
        aws: EmulatedAws,
        built_template: Path,
        stack: str,
        parameters: Parameters | None = None,
    ) -> dict[str, str]:
        """Deploy a built template to the emulated AWS; returns the stack's outputs."""
        command = ["deploy", "--template-file", str(built_template), "--stack-name", stack]
        flags = ["--resolve-s3", "--no-confirm-changeset", "--no-fail-on-empty-changeset"]
        capabilities = ["--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
        self._sam(
            *command,
            *flags,
            *capabilities,
            *_overrides(parameters),
            folder=built_template.parent,
            env={"AWS_ENDPOINT_URL": aws.endpoint},
        )
        return aws.outputs(stack)

    def deploy_environment(self, aws: EmulatedAws, built_template: Path, name: str) -> None:
        """Deploy the template with the parameters that its `samconfig.toml` has for an environment
        alone.
        """
        command = ["deploy", "--template-file", str(built_template), "--config-env", name]
        away = {"AWS_ENDPOINT_URL": aws.endpoint}
        self._sam(*command, folder=built_template.parent, env=away)

    def _sam(self, *arguments: str, folder: Path, env: Mapping[str, str] | None = None) -> str:
        """Run in the template's folder, so that only its own samconfig.toml can be found."""
        return run([self._bin / "sam", *arguments], env={**self._env, **(env or {})}, cwd=folder)


def _overrides(parameters: Parameters | None) -> list[str]:
    if not parameters:
        return []
    return ["--parameter-overrides", *(f"{name}={value}" for name, value in parameters.items())]
