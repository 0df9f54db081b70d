"""Messages that docs/troubleshooting.md quotes are those that the command prints for such an input."""

from pathlib import Path

import pytest

from tests.support.command import evenlag
from tests.support.consoles import ROOT

PAGE = " ".join((ROOT / "docs/troubleshooting.md").read_text().split())
SNAPSHOT = ROOT / "examples/snapshot/offsets.csv"
MEMBERS = ROOT / "examples/snapshot/members.csv"
FILES = {
    "bars.csv": "group|topic|partition|lag\ng|t|0|5\n",
    "no_owners.csv": "group,topic,partition,lag\ng,t,0,5\n",
    "twice.csv": "group,topic,partition,lag\ng,t,0,5\ng,t,0,7\n",
    "hot.csv": "group,topic,partition,lag,consumer_id\ng,t,0,1000000,a\ng,t,1,5,b\ng,t,2,7,b\n",
    "junk.txt": "garbage\nhello\n",
    "full.json": '{"group":"g","topics":{"t":[5,6,7]},"members":{"a":{"topics":["t"],"max_partitions":1}}}',
    "misspelt.properties": "security.protocol=SASL_SSL\nsasl.mechanim=PLAIN\n",
    "no_mechanism.properties": "security.protocol=SASL_SSL\n",
    "java.properties": "security.protocol=SSL\nssl.truststore.location=/x/y.jks\n",
}
ABSENT = ("snapshot", "--bootstrap-server", "localhost:1", "--out", "out", "--timeout", "2")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory of a test, with the files of all cases."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    later = [MEMBERS.read_text().splitlines()[0]]
    later += ["2026-01-01T00:00:00Z," + row.partition(",")[2] for row in MEMBERS.read_text().splitlines()[1:]]
    (tmp_path / "later.csv").write_text("\n".join(later))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "status", "quoted"),
    [
        (("plan", "absent.csv"), 1, "no such file or folder"),
        (("plan", SNAPSHOT), 1, "choose one with --group"),
        (("plan", "bars.csv"), 1, "separate columns by commas"),
        (("plan", "bars.csv"), 1, "no column"),
        (("plan", "junk.txt"), 1, "no header with TOPIC, PARTITION,"),
        (("plan", "no_owners.csv"), 1, "shows neither the members of group"),
        (("plan", "twice.csv"), 1, "but the rows differ in"),
        (
            ("plan", "hot.csv", "--max-load", "100"),
            1,
            "--max-load is 100, but the fullest member needs 1,000,000 messages",
        ),
        (("plan", "hot.csv", "--only-if-better", "50%"), 3, "the group is left alone"),
        (("plan", "hot.csv"), 0, "limited by hot-partition"),
        (("plan", "full.json"), 1, "do not fit"),
        (
            ("plan", SNAPSHOT, "--members", MEMBERS, "--group", "nightly-report"),
            0,
            "EMPTY: no member can take anything",
        ),
        (("plan", SNAPSHOT, "--members", "later.csv", "--group", "billing"), 0, "but none at"),
        (
            ("plan", SNAPSHOT, "--members", "later.csv", "--group", "billing"),
            0,
            "owned entries dropped: their member is not in the group",
        ),
        (("replay", SNAPSHOT, "--group", "billing"), 1, "a replay needs at least two snapshots"),
        (("size", SNAPSHOT, "--group", "billing", "--drain", "15m"), 1, "a single snapshot has no rates"),
        (ABSENT, 1, "no Kafka broker answers at"),
        ((*ABSENT, "--command-config", "misspelt.properties"), 1, "; did you mean"),
        ((*ABSENT, "--command-config", "misspelt.properties"), 1, "unknown client property"),
        ((*ABSENT, "--command-config", "no_mechanism.properties"), 1, "is missing"),
        ((*ABSENT, "--command-config", "java.properties"), 1, "only Java reads"),
    ],
)
def test_quoted_messages_are_printed(words: tuple[str, ...], status: int, quoted: str) -> None:
    done = evenlag(*words)
    assert done.returncode == status, done
    assert quoted in " ".join((done.stdout + done.stderr).split())
    assert quoted in PAGE
