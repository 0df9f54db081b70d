"""Ownership of partitions in a followed group, stored in the metadata of committed offsets (docs/formats.md).

A commit replaces offset and metadata atomically, so a single commit both records the processed offset and hands the
partition on. Brokers keep up to 4096 bytes of metadata.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from evenlag.errors import UserDataError

VERSION, WITH_RACK = 1, 2  # versions of the metadata without and with a rack
LEASE = 30.0  # seconds without a commit after which others may take a partition, if a follower has no other value
MOST_BYTES = 255  # longest rack, as brokers keep only 4096 bytes of metadata


@dataclass(frozen=True)
class Ownership:
    """The owner of a partition, as its commit's metadata names it.

    Attributes
    ----------
    plan : int
        Version of the plan that the writer of the commit followed.
    owner : str or None
        Member that owns the partition; None if it was given up without a successor.
    instance : str or None
        Random id of the consumer that holds the partition under the owner's name; None if it was handed to the owner,
        who has not taken it yet.
    beat : int
        Counter that grows with each commit of a holder and so shows that it is alive.
    rack : str or None
        Rack of the consumer that holds the partition; None if unknown, or if no consumer holds it yet.

    Examples
    --------
    >>> Ownership(7, "c1", "5f3a", 12).encode()
    '{"evenlag": 1, "plan": 7, "owner": "c1", "instance": "5f3a", "beat": 12}'
    >>> Ownership.decode(Ownership(8, "c2").encode())
    Ownership(plan=8, owner='c2', instance=None, beat=0, rack=None)
    """

    plan: int
    owner: str | None
    instance: str | None = None
    beat: int = 0
    rack: str | None = None

    def goes_to(self, member: str) -> bool:
        """Return whether the partition was handed to this member, which has not taken it yet."""
        return self.owner == member and self.instance is None

    def encode(self) -> str:
        """Return the ownership as commit metadata."""
        fields = dict(self.__dict__)
        if self.rack is None:
            del fields["rack"]
        return json.dumps({"evenlag": VERSION if self.rack is None else WITH_RACK} | fields)

    @classmethod
    def decode(cls, metadata: str | None) -> Ownership | None:
        """Decode commit metadata; return None if a follower did not write it.

        Raises
        ------
        UserDataError
            A follower wrote it in a version that this evenlag does not know.
        """
        try:
            fields = json.loads(
                (metadata or "").rstrip("\0")
            )  # confluent-kafka includes the terminating NUL of its C string
        except (ValueError, RecursionError):
            return None
        if not isinstance(fields, dict) or "evenlag" not in fields:
            return None
        version = fields.pop("evenlag")
        kinds = {"plan": int, "owner": str | None, "instance": str | None, "beat": int}
        if version == WITH_RACK:
            kinds["rack"] = str
        if version not in (VERSION, WITH_RACK) or fields.keys() != kinds.keys():
            raise UserDataError(
                f"metadata of version {version!r}, not {VERSION} or {WITH_RACK}: {metadata!r}; update evenlag"
            )
        if not all(isinstance(fields[name], kind) for name, kind in kinds.items()):
            raise UserDataError(f"metadata of version {version} with a value of the wrong type: {metadata!r}")
        return cls(**fields)
