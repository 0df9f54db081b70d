"""Who holds a partition that followers read: said in the metadata of its committed offset (docs/formats.md).

A commit replaces offset and metadata in one step, so a partition is handed on in the very commit that says how far it
was processed. Brokers keep up to 4096 bytes of metadata.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from evenlag.errors import UserDataError

VERSION, WITH_RACK = 1, 2  # of this form, without and with the rack of the holder
MOST_BYTES = 255  # of a rack: brokers keep 4096 bytes of metadata


@dataclass(frozen=True)
class Ownership:
    """Whose a partition is.

    Attributes
    ----------
    plan : int
        Version of the plan that whoever wrote this followed.
    owner : str or None
        The member; None where it was given up for nobody in particular.
    instance : str or None
        Which of the consumers that ever went by that name holds it; None where it has been handed to the owner, who has
        not taken it yet.
    beat : int
        Grows with each commit of a holder, so that one that is alive can be told from one that is not.
    rack : str or None
        The rack of the consumer that holds it; None where it did not say, or does not hold it yet.

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
        """Whether it has been handed to this member, which has not taken it yet."""
        return self.owner == member and self.instance is None

    def encode(self) -> str:
        """Return the metadata."""
        fields = dict(self.__dict__)
        if self.rack is None:
            del fields["rack"]
        return json.dumps({"evenlag": VERSION if self.rack is None else WITH_RACK} | fields)

    @classmethod
    def decode(cls, metadata: str | None) -> Ownership | None:
        """Read metadata; None where they are not a follower's.

        Raises
        ------
        UserDataError
            They are a follower's, in a form that this version of evenlag does not know.
        """
        try:
            fields = json.loads((metadata or "").rstrip("\0"))  # confluent-kafka commits the end of its C string too
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
                f"metadata of form {version!r}, not {VERSION} or {WITH_RACK}: {metadata!r}; update evenlag"
            )
        if not all(isinstance(fields[name], kind) for name, kind in kinds.items()):
            raise UserDataError(f"metadata of form {version} with a value that cannot be: {metadata!r}")
        return cls(**fields)
