"""README and docs do not lie: their commands run, their links lead somewhere (Python examples are run as doctests)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def consoles() -> list[tuple[str, str]]:
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    return [(command, said) for block in blocks for command, said in re.findall(r"\$ (.+)\n((?:[^$].*\n)*)", block)]


def test_there_are_examples() -> None:
    assert consoles()
    assert ">>> " in README


@pytest.mark.parametrize(("command", "said"), consoles())
def test_commands_print_what_the_readme_shows(command: str, said: str) -> None:
    name, *words = command.split()
    assert name == "evenlag"
    done = subprocess.run(
        [sys.executable, "-m", "evenlag", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for line in said.splitlines():
        assert line in done.stdout


def test_make_targets_in_the_readme_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"make ([a-z]+)", README):
        assert target in targets


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/*.md"))]
)
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in link:
            assert (ROOT / page).parent.joinpath(link).exists(), f"{page} links to {link}"
