"""Hook of mkdocs: files of the repository that are pages of the site too, and links that lead to them.

The pages are written once, to be read in a clone: README.md is the site's home, and `../examples/…` leads to a file.
"""

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/snapshot/README.md": "examples/snapshot.md",
}
HOMES = {page: source for source, page in PAGES.items()}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
FENCE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand outside docs/."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where the pages are in the site; what is not in it, such as code, is named without a link."""
    uri = page.file.src_uri
    here = dirname(HOMES.get(uri, f"docs/{uri}"))

    def led(link: re.Match[str]) -> str:
        picture, text, target, anchor = link.groups(default="")
        if "://" in target:
            return link[0]
        path = normpath(join(here, target))
        if not (ROOT / path).exists():
            raise PluginError(f"{uri} links to {target}, which does not exist")
        if path not in PAGES and not path.startswith("docs/"):
            return text
        there = PAGES.get(path, path.removeprefix("docs/"))
        return f"{picture}[{text}]({relpath(there, dirname(uri) or '.')}{anchor})"

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(led, part) for part in parts)
