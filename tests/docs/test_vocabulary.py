"""One word, one meaning: options, parameters of Python and columns."""

import pytest

from evenlag.cli.former_names import present_form
from tests.support import vocabulary
from tests.support.vocabulary import OTHER_NAMES, PAGE, columns_by_name, commands, options, parameters, renewed

KINDS_DIFFER = {
    "partition": "an int in Spark's tables that are written, any integer in those that are read",
    "lag": "a replay's lags are means over scenarios",
}
"""Columns of one name and several types, each with the reason."""


def test_the_page_lists_options_and_columns() -> None:
    text = PAGE.read_text()
    assert text.count("<!-- vocabulary:") == len(vocabulary.TABLES)
    assert renewed(text) == text, "python -m tests.support.vocabulary"


def test_an_option_has_one_form_of_values() -> None:
    """A flag is a flag in every command, and a repeatable option is repeatable in every command that takes several."""
    for name, of in options().items():
        assert len({option.is_flag for option in of.values()}) == 1, name


def test_other_names_are_names_of_python() -> None:
    for option, name in OTHER_NAMES.items():
        last = name.rpartition(".")[2]
        assert last in parameters() | {*vocabulary.evenlag.Change.__dataclass_fields__}, option
        assert option.removeprefix("--").replace("-", "_") != name, option


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_no_command_has_a_former_option(name: str) -> None:
    assert [option for option, of in options().items() if name in of and present_form(name, option)] == []


def test_a_column_has_one_type() -> None:
    found = {name: {column.kind for column in tables.values()} for name, tables in columns_by_name().items()}
    assert {name for name, kinds in found.items() if len(kinds) > 1} == {*KINDS_DIFFER}
