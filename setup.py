"""The README of the package, whose links are absolute; all else stands in pyproject.toml."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^]]*)\]\((?!\w+:|#)(?P<path>[^)\s]+)\)")


def for_index(readme: str, repository: str | None, version: str) -> str:
    """Return the text with links into the repository at a version's tag; without a repository, return it unchanged."""
    if repository is None:
        return readme

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['text']}]({repository.rstrip('/')}/{kind}/v{version}/{link['path']})"

    return _LINK.sub(absolute, readme)


if __name__ == "__main__":
    root = Path(__file__).parent
    readme, project, package = (
        (root / name).read_text(encoding="utf-8") for name in ("README.md", "pyproject.toml", "evenlag/__init__.py")
    )
    repository = tomllib.loads(project)["project"].get("urls", {}).get("Repository")
    [version] = re.findall(r'^__version__ = "(.+)"$', package, re.MULTILINE)
    setup(long_description=for_index(readme, repository, version), long_description_content_type="text/markdown")
