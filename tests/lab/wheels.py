"""The wheels that layers and projects install, downloaded once: no test asks the package index."""

import hashlib
import re
import tomllib
from pathlib import Path
from zipfile import ZipFile

from tests.lab.cache import TOP, made_once
from tests.lab.process import run
from tests.lab.pythons import working_python

PART = "The wheels of layers and projects"
LAYER = TOP / "layers/deps/requirements.txt"
LOCK = TOP / "requirements.lock"
MACHINES = ("manylinux2014_aarch64", "manylinux2014_x86_64")
EXTRAS = ("cli", "testing")


def wheels() -> Path:
    """Return the folder with the wheels: the layer's for each machine, a project's for this one."""
    return made_once(wheels_name(), _download)


def wheels_name() -> str:
    """Return the cache's name for the folder."""
    source = LAYER.read_bytes() + LOCK.read_bytes() + "".join(wanted()).encode()
    return f"wheels-{hashlib.sha256(source).hexdigest()[:12]}"


def offline() -> dict[str, str]:
    """Return the variables with which pip finds these wheels, and asks nobody for others."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels()), "PIP_CONFIG_FILE": "/dev/null"}


def wanted() -> list[str]:
    """Return the packages for which a project asks pip, without Duetick itself."""
    extras = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return sorted({one for extra in EXTRAS for one in extras[extra]})


def _download(place: Path) -> None:
    pip: list[str | Path] = [working_python(PART), "-m", "pip", "download", "--quiet"]
    into: list[str | Path] = ["--disable-pip-version-check", "--dest", place]
    for machine in MACHINES:
        chosen = ["--no-deps", "--only-binary=:all:", "--platform", machine]
        run([*pip, *into, *chosen, "--python-version", "3.13", "--require-hashes", "-r", LAYER])
    pinned = re.findall(r"^[A-Za-z0-9._-]+==[^\s;\\]+", LOCK.read_text(), re.MULTILINE)
    constraints = place / "constraints.txt"
    constraints.write_text("\n".join(pinned))
    run([*pip, *into, "-c", constraints, *wanted()])


def write_wheel(folder: Path, name: str, version: str, source: str = "", *requires: str) -> Path:
    """Write an unpublished package of one module."""
    folder.mkdir(exist_ok=True)
    about, path = f"{name}-{version}.dist-info", folder / f"{name}-{version}-py3-none-any.whl"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        f"{name}.py": source,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{about}/WHEEL": tag,
    }
    record = "".join(f"{one},,\n" for one in (*files, f"{about}/RECORD"))
    with ZipFile(path, "w") as wheel:
        for one, text in {**files, f"{about}/RECORD": record}.items():
            wheel.writestr(one, text)
    return path
