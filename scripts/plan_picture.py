"""Draw docs/plan.svg: how a plan comes about. `python scripts/plan_picture.py` from the root of a clone.

Boxes have grounds of their own and arrows a middle grey, so the picture reads in light and in dark.
"""

from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "plan.svg"
WIDTH, HEIGHT = 1000, 292
GREY = "#7a8290"
BLUE, GREEN, AMBER = ("#dbe7ff", "#3b63c4"), ("#d9f2e0", "#2f8a4c"), ("#fdeccd", "#b7791f")
BOXES = {  # name: left, top, width, height, colours, lines
    "text": (10, 44, 178, 62, BLUE, ("describe text", "of Kafka, rpk or a monitor")),
    "snapshot": (10, 124, 178, 62, BLUE, ("snapshot", "evenlag snapshot")),
    "tables": (10, 204, 178, 62, BLUE, ("tables", "CSV, Parquet, DataFrame")),
    "problem": (238, 104, 142, 102, GREEN, ("problem", "lag of each partition", "members, owners", "rules and prices")),
    "search": (430, 64, 150, 62, AMBER, ("search", "finds better plans")),
    "bounds": (430, 184, 150, 62, AMBER, ("bounds", "prove a limit")),
    "result": (630, 104, 142, 102, GREEN, ("result", "the plan", "the bound", "the gap")),
    "assignor": (822, 44, 168, 62, BLUE, ("assignor", "kafka-python, aiokafka")),
    "publish": (822, 124, 168, 62, BLUE, ("publish and follow", "confluent-kafka")),
    "file": (822, 204, 168, 62, BLUE, ("plan as a file", "for tools of your own")),
}
ARROWS = [
    *((source, "problem") for source in ("text", "snapshot", "tables")),
    *(("problem", stage) for stage in ("search", "bounds")),
    *((stage, "result") for stage in ("search", "bounds")),
    *(("result", way) for way in ("assignor", "publish", "file")),
]
COLUMNS = {99: "read", 309: "state", 505: "solve", 701: "report", 906: "apply"}
SPOKEN = (
    "A describe text, a snapshot or tables become a problem. Search finds plans and bounds prove a limit. "
    "The result is a plan, a bound and a gap. An assignor, followers or your own tools apply it."
)


def main() -> None:
    """Write the picture."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="system-ui, Helvetica, Arial, sans-serif" text-anchor="middle" role="img">',
        f"<title>How a plan comes about</title><desc>{SPOKEN}</desc>",
        *(f'<text x="{x}" y="26" font-size="15" fill="{GREY}">{word}</text>' for x, word in COLUMNS.items()),
        *(arrow(*ends) for ends in ARROWS),
        f'<path d="M505 132 V178" stroke="{GREY}" stroke-width="2" stroke-dasharray="4 4"/>',
        f'<text x="513" y="160" font-size="12" fill="{GREY}" text-anchor="start">until they meet</text>',
        *(box(name) for name in BOXES),
        "</svg>",
    ]
    PAGE.write_text("\n".join(lines) + "\n")


def box(name: str) -> str:
    """Return a box with a heading and lines below it."""
    left, top, width, height, (ground, edge), (heading, *more) = BOXES[name]
    middle = left + width / 2
    first = top + height / 2 - 9 * len(more) + 5
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="8" fill="{ground}" stroke="{edge}"/>'
        f'<text x="{middle}" y="{first}" font-size="14" font-weight="bold" fill="#1f2937">{heading}</text>'
        + "".join(
            f'<text x="{middle}" y="{first + 19 * row}" font-size="12" fill="#374151">{line}</text>'
            for row, line in enumerate(more, 1)
        )
    )


def arrow(source: str, target: str) -> str:
    """Return a line from the right edge of one box to the left edge of another, with a head."""
    left, top, width, height, *_ = BOXES[source]
    to_left, to_top, _, to_height, *_ = BOXES[target]
    y, to_y = top + height / 2, to_top + to_height / 2
    to_y += (y - to_y) / 4  # arrows into one box come in one below another
    x, to_x = left + width, to_left - 4
    bend = (x + to_x) / 2
    return (
        f'<path d="M{x} {y} C{bend} {y} {bend} {to_y} {to_x - 6} {to_y}" fill="none" stroke="{GREY}" stroke-width="2"/>'
        f'<path d="M{to_x} {to_y} l-9 -5 v10 z" fill="{GREY}"/>'
    )


if __name__ == "__main__":
    main()
