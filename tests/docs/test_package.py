import re
import runpy
import tomllib
from datetime import date
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import evenlag
from evenlag.errors import EXTRAS

ROOT = Path(__file__).parents[2]
POM = ROOT / "java" / "pom.xml"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
REPOSITORY = "https://example.org/a/evenlag"


def for_index(readme: str, repository: str | None) -> str:
    """Return what setup.py makes of a README."""
    return str(runpy.run_path(str(ROOT / "setup.py"))["for_index"](readme, repository, "1.2.0"))


def locked(name: str) -> dict[str, list[tuple[str, str]]]:
    """Return the versions of each package in a file of requirements/, and the lines up to the next package."""
    text = (ROOT / "requirements" / name).read_text()
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in re.split(r"\n(?=\w)", text.partition("\n")[2]):
        requirement = Requirement(entry.partition("\\")[0])
        [pin] = requirement.specifier
        found.setdefault(requirement.name, []).append((pin.version, entry))
    return found


def grouped(name: str) -> list[str]:
    """Return the requirements of a dependency group and of the groups that it includes."""
    lists = [[each] if isinstance(each, str) else grouped(each["include-group"]) for each in group_of(name)]
    return [each for requirements in lists for each in requirements]


def group_of(name: str) -> list[str | dict[str, str]]:
    return list(PYPROJECT["dependency-groups"][name])


def test_links_of_the_readme_are_absolute_on_an_index() -> None:
    text = "![a plan](docs/demo.png), [it](docs/size.md#use), [there](https://kafka.apache.org), [here](#install)"
    assert for_index(text, f"{REPOSITORY}/") == (
        f"![a plan]({REPOSITORY}/raw/v1.2.0/docs/demo.png), [it]({REPOSITORY}/blob/v1.2.0/docs/size.md#use), "
        "[there](https://kafka.apache.org), [here](#install)"
    )
    assert for_index(text, None) == text


def test_no_link_of_our_readme_stays_relative() -> None:
    readme = for_index((ROOT / "README.md").read_text(), REPOSITORY)
    targets = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert len(targets) > 20
    assert all(re.match(r"https://|#", target) for target in targets)


@pytest.mark.parametrize("name", ["dev.txt", "release.txt", "spark-client.txt"])
def test_locked_packages_have_hashes_and_no_address(name: str) -> None:
    for package, versions in locked(name).items():
        for _, entry in versions:
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), package
    assert "://" not in (ROOT / "requirements" / name).read_text()


def test_the_lock_has_what_pyproject_asks_for() -> None:
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *grouped("dev")]
    wanted += [each for name, needs in extras.items() if name not in ("all", "connect") for each in needs]
    for lock, requirements in (
        ("dev.txt", wanted),
        ("release.txt", grouped("release")),
        ("spark-client.txt", [each for each in extras["connect"] if each.startswith("pyspark-client")]),
    ):
        pins = locked(lock)
        for requirement in map(Requirement, requirements):
            if requirement.name != "evenlag":
                assert all(requirement.specifier.contains(version) for version, _ in pins[requirement.name]), (
                    requirement,
                    lock,
                )


def test_extras_install_what_errors_say_they_do() -> None:
    extras = PROJECT["optional-dependencies"]
    modules = {"kafka": "kafka-python"}
    for module, extra in EXTRAS.items():
        names = {Requirement(each).name for each in extras[extra]}
        assert modules.get(module, module.replace("_", "-")) in names, extra
    [together] = map(Requirement, extras["all"])
    assert together.extras == set(extras) - {"all", "connect"}  # connect and spark exclude each other


def test_the_workflow_runs_each_python_that_is_promised() -> None:
    promised = {each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    assert promised == set(re.findall(r'"(3\.\d+)"', workflow))


def test_versions_of_the_changelog_come_down_in_order() -> None:
    found = re.findall(r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    versions, dates = [Version(version) for version, _ in found], [date.fromisoformat(day) for _, day in found]
    assert len(found) >= 5
    assert versions == sorted(versions, reverse=True)
    assert dates == sorted(dates, reverse=True)
    assert Version(evenlag.__version__) >= versions[0]
    assert "\n## Unreleased\n" in (ROOT / "CHANGELOG.md").read_text() or Version(evenlag.__version__) == versions[0]


def test_the_jar_has_the_same_version_in_its_build_its_example_and_its_page() -> None:
    version = Version(evenlag.__version__)
    named = f"{version.base_version}-SNAPSHOT" if version.is_devrelease else str(version)
    own = re.findall(r"<artifactId>(.+)</artifactId>\s*<version>(.+)</version>", POM.read_text())[0]
    assert own == ("evenlag-plan-assignor", named)
    group = re.findall(r"<groupId>(.+)</groupId>", POM.read_text())[0]
    page = (ROOT / "docs" / "java.md").read_text()
    dependency = rf"<groupId>{group}</groupId>\s*<artifactId>{own[0]}</artifactId>\s*<version>(.+)</version>"
    for text in (page, (ROOT / "examples" / "spring" / "pom.xml").read_text()):
        assert re.findall(dependency, text) == [named]
    assert f"'{group}:{own[0]}:{named}'" in page
    assert set(re.findall(rf"{own[0]}-([\w.-]+)\.jar", page)) == {named}
