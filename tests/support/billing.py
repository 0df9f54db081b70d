"""A small group, as arguments and as a document."""

from typing import Any

MEMBERS = {"c0": ["orders", "paid"], "c1": ["orders"]}
LAGS = {"orders": [5, 3], "paid": [8]}


def billing_document(**changes: Any) -> dict[str, Any]:
    return {
        "group": "billing",
        "topics": {"orders": [5, 3], "paid": [8]},
        "members": {"c0": {"topics": ["orders", "paid"]}, "c1": {"topics": ["orders"]}},
        **changes,
    }


def billing_with(**fields: Any) -> dict[str, Any]:
    return billing_document(members={"c0": {"topics": ["orders", "paid"], **fields}, "c1": {"topics": ["orders"]}})
