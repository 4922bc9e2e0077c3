"""samconfig.toml has an environment for each backend, which names parameters that there are."""

import tomllib

from tests.template.parsed import TEMPLATE, template

CONFIG = tomllib.loads(TEMPLATE.with_name("samconfig.toml").read_text())


def test_each_backend_is_one_environment_away() -> None:
    environments = {name: one for name, one in CONFIG.items() if name != "version"}
    chosen = {
        name: dict(
            pair.split("=", 1)
            for pair in one["deploy"]["parameters"]["parameter_overrides"].split()
        )
        for name, one in environments.items()
    }
    backends = {name: given["Backend"] for name, given in chosen.items()}
    assert backends == {"default": "dynamodb", "aurora": "aurora", "postgres": "postgres"}
    for given in chosen.values():
        assert given.keys() <= template()["Parameters"].keys()


def test_no_two_environments_are_one_stack() -> None:
    names = [
        one["global"]["parameters"]["stack_name"]
        for one in CONFIG.values()
        if isinstance(one, dict)
    ]
    assert len(set(names)) == len(names) == 3
