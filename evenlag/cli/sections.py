"""Headings of options in the help: each option has one, the same in every command."""

from __future__ import annotations

HEADINGS: dict[str, tuple[str, ...]] = {
    "Input": (
        "--members", "--group", "--format", "--input-format", "--subscribed", "--auto-offset-reset", "--weights",
        "--weight", "--horizon", "--past", "--since", "--log-ends", "--from-commits", "--together", "--move-sizes",
        "--traffic",
    ),
    "Change": (
        "--change-members", "--add", "--remove", "--partitions", "--new-partitions", "--balance-before",
    ),
    "Rules and limits": (
        "--balance", "--slack", "--max-moves", "--max-moved", "--max-load", "--max-drain", "--max-crossings",
        "--budget", "--assignor",
    ),
    "Objective and prices": (
        "--objective", "--across", "--first", "--stickiness", "--price", "--rack-price", "--fetch-from", "--against",
        "--only-if-better", "--pause",
    ),
    "Questions": (
        "--drain", "--capacity", "--most", "--at-least", "--lag-limit", "--strategies", "--rebalance-above",
        "--traffic-price", "--effort",
    ),
    "Search": (
        "--method", "--time-limit", "--group-time-limit", "--gap", "--seed", "--deterministic", "--threads",
    ),
    "Reading and serving": (
        "--bootstrap-server", "--command-config", "--timeout", "--every", "--read-every", "--settle", "--once",
        "--metrics", "--http", "--cluster", "--rows", "--most-groups", "--stale-after", "--checkpoint",
    ),
    "Publishing": ("--publish", "--least", "--dry-run"),
    "Spark": ("--master", "--conf", "--option", "--tasks", "--allow-errors"),
    "Output": (
        "--fleet", "--cooperative", "--out", "--append", "--overwrite", "--plot", "--quiet", "--json",
    ),
}  # fmt: skip
"""Options by heading, in the order of the help; `--help` stands below the last."""


def heading_of(option: str) -> str:
    """Return the heading of an option; that of the output for one that no heading names."""
    return next((heading for heading, options in HEADINGS.items() if option in options), "Output")
