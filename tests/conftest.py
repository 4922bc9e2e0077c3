"""Every test can have the lab."""

pytest_plugins = ["tests.lab.missing", "tests.lab.fixtures", "pytester"]
