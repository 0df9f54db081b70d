"""The site's hook: tabs from adjacent blocks, and pages that the users' search leaves out."""

import re
from importlib import util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = "```pycon\n>>> 1\n1\n\n```"


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    pytest.importorskip("mkdocs")
    spec = util.spec_from_file_location("site_pages", ROOT / "scripts" / "site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(uri: str, *sections: str) -> Any:
    """Return a page of the site below the given sections of the navigation."""
    ancestors = [SimpleNamespace(title=title) for title in sections]
    return SimpleNamespace(file=SimpleNamespace(src_uri=uri), ancestors=ancestors, meta={})


def test_a_command_and_python_below_it_become_tabs(hook: ModuleType) -> None:
    text = f"Before.\n\n```console\n$ evenlag --help\n```\n\n{PYTHON}\n\nAfter.\n"
    command = '=== "Command"\n\n    ```console\n    $ evenlag --help\n    ```'
    python = '=== "Python"\n\n    ```pycon\n    >>> 1\n    1\n\n    ```'
    assert hook.on_page_markdown(text, page=page("size.md")) == f"Before.\n\n{command}\n\n{python}\n\nAfter.\n"


@pytest.mark.parametrize(
    "text",
    [
        f"```sh\nls\n```\n\nIn Python:\n\n{PYTHON}\n",
        f"```json\n1\n```\n\n{PYTHON}\n",
        f"```sh\nls\n```\n\n```sh\nls\n```\n\n```json\n1\n```\n\n{PYTHON}\n",
    ],
    ids=["with text between", "not a command", "further up"],
)
def test_other_blocks_stay(hook: ModuleType, text: str) -> None:
    assert hook.on_page_markdown(text, page=page("size.md")) == text


@pytest.mark.parametrize(
    ("uri", "sections", "excluded"),
    [
        ("size.md", ("A group", "How-to"), False),
        ("decisions/live.md", ("Decisions", "Contributing"), True),
        ("benchmarks/grid.md", (), True),
        ("benchmarks.md", ("Explanation",), False),
    ],
)
def test_the_search_leaves_out_pages_for_contributors(
    hook: ModuleType, uri: str, sections: tuple[str, ...], excluded: bool
) -> None:
    shown = page(uri, *sections)
    hook.on_page_markdown("Text.\n", page=shown)
    assert shown.meta == ({"search": {"exclude": True}} if excluded else {})


def test_pages_have_tabs(hook: ModuleType) -> None:
    paired = {path.stem for path in (ROOT / "docs").glob("*.md") if hook.SAME_TASK.search(path.read_text())}
    assert paired >= {"diagnose", "explain", "size", "whatif", "replay", "pays", "migrate", "verify", "history", "past"}


def test_the_section_for_contributors_holds_decisions_and_the_solver(hook: ModuleType) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1].split("\n\n")[0]
    (title,) = hook.NOT_FOR_USERS
    users, contributors = navigation.split(f"\n  - {title}:")
    inner = "decisions/|contributing|architecture|solver-|fleet-run"
    assert re.findall(rf": (?:{inner}).*", users) == []
    assert len(re.findall(rf": (?:{inner}).*", contributors)) > 20
