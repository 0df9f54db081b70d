"""The table in the docs of which input tells which fact of a group, and samples of inputs with facts.

`python -m tests.support.fact_table` writes the table into the page anew, from random groups in every form.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import evenlag
from evenlag.model.facts import Facts
from tests.support.told_forms import FORMS
from tests.support.told_groups import told_group

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "formats.md"
BLOCK = re.compile(r"<!-- facts -->\n.*?<!-- end -->", re.DOTALL)
COLUMNS = (
    "state", "protocol", "assignor", "group_epoch", "assignment_epoch", "members", "classic_members", "application",
    "left_over",
)  # fmt: skip
ROWS = {
    "`kafka-consumer-groups --describe`": "Kafka --offsets",
    "… `--state --verbose`": "Kafka 4 --state --verbose",
    "… `--members --verbose`": "Kafka 4 --members --verbose",
    "`rpk group describe`": "rpk",
    "… `--format json`": "rpk as JSON",
    "kcl, also its JSON": "newer kcl",
    "Kafbat": "Kafbat as JSON",
    "Kestra": "Kestra",
    "KMinion": "KMinion, text",
    "other exporters that count members": "kafka_exporter, text",
    "monitors that name owners": "Confluent's API",
    "offsets table": "offsets as CSV",
    "offsets and members tables": "both tables as CSV",
    "problem file": "problem file of a text",
}
"""The form of each row, by its name in `told_forms.FORMS`."""
GROUPS = range(40)  # seeds

OFFSETS = (
    "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
    "g live 0 100 110 10 c-1 /192.0.2.1 c\ng live 1 100 120 20 c-2 /192.0.2.2 c\ng old 0 100 500 400 - - -\n"
)
RPK = (
    "GROUP g\nCOORDINATOR-NODE 0\nSTATE Stable\nBALANCER range\nMEMBERS 3\nTOTAL-LAG 30\n\n"
    "TOPIC PARTITION CURRENT-OFFSET LOG-START-OFFSET LOG-END-OFFSET LAG MEMBER-ID CLIENT-ID HOST\n"
    "live 0 100 0 110 10 c-1 c 192.0.2.1\nlive 1 100 0 120 20 c-2 c 192.0.2.2\nold 0 100 0 500 400\n"
)
_PARTITIONS = [
    {"topic": topic, "partition": p, "current_offset": 100, "log_start_offset": 0, "log_end_offset": end,
     "lag": end - 100, "member_id": owner, "client_id": owner and "c", "host": owner and "192.0.2.1"}
    for topic, p, end, owner in (("live", 0, 110, "c-1"), ("live", 1, 120, "c-2"), ("old", 0, 500, ""))
]  # fmt: skip
_GROUP = {"state": "Stable", "balancer": "range", "members": 3, "partitions": _PARTITIONS}
_KMINION = "kminion_kafka_consumer_group"
_ROWS = "group,topic,partition,lag,consumer_id\ng,live,0,10,c-1\ng,live,1,20,c-2\ng,old,0,400,\n"
_MEMBERS = (
    "group,consumer_id,topics,protocol,assignor,group_state,group_epoch\n"
    "g,c-1,live,consumer,range,Stable,7\ng,c-2,live,classic,range,Stable,7\n"
)
_TIMES = ("2026-01-31T12:00:00Z", "2026-01-31T12:10:00Z")
_RECORD = "snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id\n" + "".join(
    f"{time},g,{topic},{p},{1_000 + 600 * step},{1_000 + 600 * step - lag},{owner}\n"
    for step, time in enumerate(_TIMES)
    for topic, p, lag, owner in (("live", 0, 10, "c-1"), ("live", 1, 20, "c-2"), ("old", 0, 400, ""))
)
_HEAD, *_LINES = _MEMBERS.splitlines()
_ROSTER = f"snapshot_ts,{_HEAD}\n" + "".join(f"{time},{line}\n" for time in _TIMES for line in _LINES)
SAMPLES: dict[str, tuple[str, str, str]] = {
    "`kafka-consumer-groups --describe`": (".txt", OFFSETS, ""),
    "… `--state`": (
        ".txt",
        OFFSETS + "\nGROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH #MEMBERS\n"
        "g 192.0.2.9:9092 (1) uniform Stable 7 7 3\n",
        "",
    ),
    "… `--members --verbose`": (
        ".txt",
        OFFSETS + "\nGROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT UPGRADED\n"
        "g c-1 /192.0.2.1 c 1 7 live(0) true\ng c-2 /192.0.2.2 c 1 7 live(1) false\n",
        "",
    ),
    "`rpk group describe`": (".txt", RPK, ""),
    "… `--format json`": (".json", json.dumps([{"group_name": "g", **_GROUP}]), ""),
    "JSON of kcl, Kestra, Kafbat": (".json", json.dumps({"groups": [{"group": "g", **_GROUP}]}), ""),
    "KMinion": (
        ".prom",
        "".join(
            f'{_KMINION}_topic_partition_lag{{group_id="g",topic_name="{topic}",partition_id="{p}"}} {lag}\n'
            for topic, p, lag in (("live", 0, 10), ("live", 1, 20), ("old", 0, 400))
        )
        + f'{_KMINION}_members{{group_id="g"}} 2\n'
        f'{_KMINION}_info{{group_id="g",protocol="range",protocol_type="consumer",state="Stable"}} 1\n',
        "",
    ),
    "offsets table": (".csv", _ROWS, ""),
    "offsets and members tables": (".csv", _ROWS, _MEMBERS),
    "… of several times": (".csv", _RECORD, _ROSTER),
    "problem file": (".json", "", ""),
}
"""The suffix, the text and the members table of each input; the problem file is made from the text with `--state`."""


@contextmanager
def files() -> Iterator[dict[str, tuple[Path, Path | None]]]:
    """Write the samples to files: the input and the members table of each."""
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, tuple[Path, Path | None]] = {}
        for number, (name, (suffix, text, members)) in enumerate(SAMPLES.items()):
            path, table = Path(folder) / f"{number}{suffix}", Path(folder) / f"{number}-members.csv"
            if name == "problem file":
                document = evenlag.read(found["… `--state`"][0]).to_dict()
                text = json.dumps(document)
            path.write_text(text)
            if members:
                table.write_text(members)
            found[name] = (path, table if members else None)
        yield found


def facts() -> dict[str, Facts]:
    """Return the facts that each input tells."""
    with files() as samples:
        return {name: evenlag.read(path, members=members).facts for name, (path, members) in samples.items()}


def told_by(name: str) -> set[str]:
    """Return the facts that a form tells of any of the random groups."""
    form, found = FORMS[name], set()
    with tempfile.TemporaryDirectory() as folder:
        for group in map(told_group, GROUPS):
            if form.shown(group) is not None:
                told = vars(evenlag.read(**form.write(group, Path(folder))).facts)
                found |= {column for column in COLUMNS if told[column] not in (None, ())}
    return found


def markdown() -> str:
    """Return the table."""
    lines = [f"| Input | {' | '.join(f'`{name}`' for name in COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, form in ROWS.items():
        told = told_by(form)
        lines.append(f"| {name} | {' | '.join('yes' if column in told else '' for column in COLUMNS)} |")
    return "\n".join(lines)


def renewed(text: str) -> str:
    """Return the text of the page with its table written anew."""
    return BLOCK.sub(f"<!-- facts -->\n\n{markdown()}\n\n<!-- end -->", text)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
