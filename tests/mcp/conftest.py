from collections.abc import Iterator

import pytest

from tests.support.assistants import EXAMPLES, TABLES, TEXTS, Assistant, assistant_with


@pytest.fixture(scope="session")
def assistant() -> Iterator[Assistant]:
    """A client of one server for all tests of the session; it may read the examples and the sample texts."""
    with assistant_with(EXAMPLES, TABLES, TEXTS) as connected:
        yield connected
