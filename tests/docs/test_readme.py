"""README and docs do not lie: their commands and examples run, and their links lead somewhere."""

import doctest
import re

import pytest

import evenlag
from evenlag import live, spark
from tests.support.consoles import ROOT, consoles, patience, printed, without_times

README = (ROOT / "README.md").read_text()
# Whole output, which must be what is printed.
SHOWN = (
    "docs/tutorial.md",
    "docs/diagnose.md",
    "docs/whatif.md",
    "docs/pays.md",
    "docs/explain.md",
    "docs/size.md",
    "docs/racks.md",
    "docs/migrate.md",
)
# Not all of their plans are proven: how far these come depends on the machine, so only the heads are compared.
OPEN = re.compile(r"evenlag (audit|frontier) examples/racks/")
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))]


def test_there_are_examples() -> None:
    assert consoles("README.md")
    assert len(consoles("docs/tutorial.md")) >= 4
    assert ">>> " in README


@pytest.mark.parametrize(("command", "message"), consoles("README.md"))
def test_commands_print_what_the_readme_shows(command: str, message: str) -> None:
    *shown, last = without_times(message.rstrip()).splitlines()
    output = without_times(printed(command)).splitlines()
    assert shown == output[: len(shown)]
    assert last == "…", "the README shows how the output begins"
    assert len(output) > len(shown)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command", "message"), [(page, *shown) for page in SHOWN for shown in consoles(page)])
def test_commands_print_what_the_pages_show(page: str, command: str, message: str) -> None:
    shown, output = without_times(message.rstrip()).splitlines(), without_times(printed(command)).splitlines()
    if OPEN.match(command):
        assert _heads(shown) == _heads(output)
    else:
        assert output == shown, f"python -m tests.support.consoles {page}"


def _heads(lines: list[str]) -> list[list[str]]:
    """Return the words of the first lines below the verdict, from the name of the group on."""
    start = next(place for place, line in enumerate(lines) if line.startswith("shop"))
    return [line.split() for line in lines[start : start + 4] if "─" not in line]


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if ">>> " in (ROOT / page).read_text()])
def test_examples_in_pages_run(page: str) -> None:
    with patience():
        assert doctest.testfile(str(ROOT / page), module_relative=False, encoding="utf-8").failed == 0


def test_the_tutorial_shows_its_example() -> None:
    lines = (ROOT / "examples/billing.txt").read_text().splitlines()
    shown = re.findall(r"```text\n(.*?)```", (ROOT / "docs/tutorial.md").read_text(), re.DOTALL)[0].splitlines()
    assert [line for line in shown if line != "…"] == [line for line in lines if line in shown and line]


def test_make_targets_in_the_readme_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"make ([a-z]+)", README):
        assert target in targets


@pytest.mark.parametrize("page", PAGES)
def test_links_have_a_target(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    for link, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", text):
        if "://" not in link:
            target = (ROOT / page).parent / link if link else ROOT / page
            assert target.exists(), f"{page} links to {link}"
            if anchor and target.parent.name != "reference":  # its headings come from docstrings
                assert anchor in anchors(target.read_text()), f"{page} links to {link}#{anchor}"


def anchors(page: str) -> set[str]:
    """Return the anchors of a page: those of its headings, as the site and GitHub name them, and `<a id="…">`."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    plain = (re.sub(r"\]\([^)]*\)", "", heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    named = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in plain}
    return named | set(re.findall(r'<a id="([^"]+)">', text))


def test_anchors_are_found() -> None:
    page = '# 1. Build `x_y`\n\n```\n# no\n```\n\n## [A](b.md), and B\n* <a id="c"></a>C\n'
    assert anchors(page) == {"1-build-x_y", "a-and-b", "c"}


def test_the_reference_covers_every_public_name() -> None:
    pages = "\n".join(path.read_text() for path in ROOT.glob("docs/reference/*.md"))
    shown = set(re.findall(r"^::: evenlag\.([\w.]+)$", pages, re.MULTILINE))
    modules = {"compare": evenlag.compare, "live": live, "spark": spark}
    public = {f"{home}.{name}" for home, module in modules.items() for name in module.__all__}
    short = set(evenlag.compare.__all__)  # under both names
    public |= {name for name in evenlag.__all__ if name not in {"heuristics", "pipeline", *modules, *short}}
    others = {
        "heuristics.HEURISTICS",
        "heuristics.PROMISED_BALANCE",
        "live.assignor.AioEvenlagAssignor",
        "live.assignor.EvenlagAssignor",
        "live.assignor.Decision",
        "live.follow.Follow",
        "live.follow.FollowedPlan",
        "live.follow.PlanFile",
        "live.follow.PlanTopic",
        "live.follow.publish",
        "protocol.user_data",
        "errors",
    }
    assert shown == public | others
