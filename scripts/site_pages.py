"""Hook of mkdocs: the pages of the site that do not stand in docs/, links that lead from one to another, and tabs.

Every text is written once, to be read in a clone: README.md is the site's home, links to code name a file, and a block
in Python below one of the command shows the same. The page of commands is made from the command itself.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from textwrap import indent
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

COMMANDS = ("evenlag.cli.app", "evenlag")  # module and name of the group of commands
ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/snapshot/README.md": "examples/snapshot.md",
}
HOMES = {page: source for source, page in PAGES.items()} | {"examples/snapshot.md": "evenlag/examples/README.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
FENCE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
BLOCK = r"^```(?:{})\n(?:(?!```).*\n)+```$"
SAME_TASK = re.compile(rf"({BLOCK.format('sh|console')})\n\n({BLOCK.format('python|pycon')})", re.MULTILINE)
OPTION = re.compile(r"--[a-z-]+")
TABS = ("Command", "Python")
NOT_FOR_USERS = ("Contributing",)  # sections that the search leaves out, with the tables of benchmarks


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not stand in docs/."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "reference/commands.md", content="\n".join(commands_page())))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Lead links to where the pages are in the site, and set commands and Python side by side.

    Files that are not in the site, such as code, are named without a link.
    """
    uri = page.file.src_uri
    if uri.startswith("benchmarks/") or any(section.title in NOT_FOR_USERS for section in page.ancestors):
        page.meta["search"] = {"exclude": True}
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

    linked = "".join(part if part.startswith("```") else LINK.sub(led, part) for part in FENCE.split(markdown))
    return SAME_TASK.sub(tabs, linked)


def tabs(blocks: re.Match[str]) -> str:
    """Return a block of commands and the block in Python below it as two tabs."""
    return "\n\n".join(
        f'=== "{title}"\n\n{indent(block, "    ")}' for title, block in zip(TABS, blocks.groups(), strict=True)
    )


def on_page_content(html: str, **_: Any) -> str:
    """Keep what is short on one line, and leave out the dash after a parameter whose name and type say enough."""
    html = re.sub(r"<code>([^<\s]{1,24})</code>", r'<code class="short">\1</code>', html)
    html = re.sub(r"<code>[^<]*</code>", lambda code: OPTION.sub(r'<span class="short">\g<0></span>', code[0]), html)
    html = re.sub(r"<td([^>]*)>([^<]{1,14})</td>", r'<td class="short"\1>\2</td>', html)
    return re.sub(r"\s*–\s*(</p>\s*|<div class=\"doc-md-description\">\s*</div>\s*)*</li>", r"\1</li>", html)


def commands_page() -> Iterator[str]:
    """Yield the lines of the page of commands, from the help that the command prints."""
    module, name = COMMANDS
    group = getattr(import_module(module), name)
    yield from ["# Commands", "", "What `evenlag COMMAND --help` prints. [The command](../command.md) says what all of"]
    yield from ["them have in common: exit statuses, interrupts, completion.", ""]
    yield from commands_of(group, click.Context(group, info_name="evenlag"), "")


def commands_of(group: Any, above: click.Context, prefix: str) -> Iterator[str]:
    """Yield the sections of a group's commands."""
    for command_name in group.list_commands(above):
        command = group.get_command(above, command_name)
        context = click.Context(command, info_name=command_name, parent=above)
        if isinstance(command, click.Group):
            yield from commands_of(command, context, f"{prefix}{command_name} ")
            continue
        yield from [f"## {prefix}{command_name}", "", literal(command.help or ""), ""]
        yield from ["```sh", command.get_usage(context).removeprefix("Usage: ")]
        yield from ["", *(command.epilog or "").splitlines()[2:], "```", ""]
        for option in command.get_params(context):
            record = option.get_help_record(context)
            if record and record[1]:
                yield from [f"`{record[0]}`", f":   {literal(record[1])}", ""]


def literal(text: str) -> str:
    """Return a help text as Markdown that shows it as it is: options as code, the default apart."""
    text = " ".join(text.replace("<", "&lt;").replace("[", r"\[").split())
    text = re.sub(r"(?<![\w-])(--[a-z-]+)", r"`\1`", text)
    return re.sub(r"\\\[([^\]]*)\]$", r"*(\1)*", text)
