import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    """Leave out the thousands of lines with which members wait for brokers and leaders tell their decisions."""
    log = logging.getLogger("evenlag.live")
    before, log.level = log.level, logging.CRITICAL
    yield
    log.setLevel(before)
