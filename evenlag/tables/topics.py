"""Addresses of Kafka topics, accepted in place of a path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from evenlag.errors import SourceError

_ADDRESS = re.compile(r"kafka://(?P<servers>[^/\s,]+:\d+(,[^/\s,]+:\d+)*)/(?P<topics>[A-Za-z0-9._,-]+)")


@dataclass(frozen=True)
class TopicAddress:
    """The `host:port` of brokers, and the names of topics; several of each are joined by commas."""

    servers: str
    topics: str


def is_topic(place: str | Path) -> bool:
    """Return whether a place is the address of a topic rather than a path."""
    return isinstance(place, str) and place.startswith("kafka:")


def topic_address(url: str) -> TopicAddress:
    """Parse `kafka://HOST:PORT/TOPIC`, with several brokers or topics joined by commas.

    Raises
    ------
    SourceError
        The text is not such an address.

    Examples
    --------
    >>> topic_address("kafka://a:9092,b:9092/plans")
    TopicAddress(servers='a:9092,b:9092', topics='plans')
    """
    match = _ADDRESS.fullmatch(url)
    if match is None:
        raise SourceError(
            f"{url}: not a topic address; write kafka://HOST:PORT/TOPIC, several of each joined by commas"
        )
    return TopicAddress(match["servers"], match["topics"])
