"""Python environments for executors, made of the packages that are installed here."""

import os
import re
import shutil
import sys
import tomllib
import venv
from collections.abc import Iterable
from importlib.metadata import distribution, distributions, requires
from pathlib import Path

from packaging.requirements import Requirement

from tests.support.jars import filled, run

ROOT = Path(__file__).parents[2]
CLIENT = "pyspark-client"
LEFT_OUT = {"tests", "include"}  # folders that nobody imports, a fifth of all


def with_all_that_they_require(packages: Iterable[str]) -> set[str]:
    """Names of packages, and of those that they depend on here."""
    found: set[str] = set()
    queue = [name.lower() for name in packages]
    while queue:
        name = queue.pop().replace("_", "-")
        if name not in found:
            found.add(name)
            needs = map(Requirement, requires(name) or ())
            queue += [each.name.lower() for each in needs if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


def make_environment(home: Path, packages: Iterable[str] = ()) -> Path:
    """Make an environment of these packages and what they require, as pip would; return where modules lie in it.

    It takes a second: files are linked, not copied, where the file system allows it.
    """
    venv.EnvBuilder(symlinks=True).create(home)
    [modules] = home.glob("lib/python*/site-packages")
    for name in with_all_that_they_require(packages):
        package = distribution(name)
        for file in package.files or ():
            if ".." not in file.parts and not LEFT_OUT & set(file.parts):
                (modules / file).parent.mkdir(parents=True, exist_ok=True)
                _link(Path(str(package.locate_file(file))), modules / file)
    return modules


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:  # several packages have it
        pass
    except OSError:  # another disk
        shutil.copy2(source, target)


def packages_of_client() -> set[str]:
    """The packages that evenlag and `pyspark-client` require, without this one."""
    [client] = distributions(path=[str(pyspark_client())])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = list(map(Requirement, [*project["dependencies"], *(client.requires or ())]))
    extras = {(each.name, extra) for each in wanted for extra in each.extras}
    further = {
        need.name
        for name, extra in extras
        for need in map(Requirement, requires(name) or ())
        if need.marker is not None and need.marker.evaluate({"extra": extra})
    }
    return {each.name for each in wanted} | further


def pyspark_client() -> Path:
    """The folder with `pyspark-client`, in the version of requirements/spark-client.txt, fetched by pip on first use.

    It cannot be among the packages of the tests: its modules are named like those of PySpark.
    """
    locked = ROOT / "requirements" / "spark-client.txt"
    [version] = re.findall(rf"^{CLIENT}==(\S+)", locked.read_text(), re.MULTILINE)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    wanted = ["--require-hashes", "--requirement", str(locked)]
    return filled(f"{CLIENT}-{version}", lambda folder: run([*pip, "--target", str(folder), *wanted]))
