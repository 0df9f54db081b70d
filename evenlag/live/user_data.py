"""The former name of `evenlag.protocol.user_data`, kept for existing imports."""

from evenlag.protocol.user_data import (
    StickyUserData,
    WeightedUserData,
    decode_own,
    decode_sticky,
    decode_weighted,
    encode_own,
    encode_sticky,
    encode_weighted,
)

__all__ = [
    "StickyUserData",
    "WeightedUserData",
    "decode_own",
    "decode_sticky",
    "decode_weighted",
    "encode_own",
    "encode_sticky",
    "encode_weighted",
]
