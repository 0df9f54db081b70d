"""Random texts of `kafka-consumer-groups --describe`, foreign lines between theirs, and changes that people make."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

UUID = "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}"
FOREIGN = (
    "SLF4J: Class path contains multiple SLF4J bindings.",
    "OpenJDK 64-Bit Server VM warning: Option UseConcMarkSweepGC was deprecated in version 9.0",
    "[2024-08-02 12:22:13,881] ERROR [AdminClient clientId=adminclient-1] Received unknown topic error for topic T1 "
    "(org.apache.kafka.clients.admin.internals.PartitionLeaderStrategy)",
    "[2024-01-04 07:41:32,504] WARN [AdminClient clientId=adminclient-1] Connection to node -1 "
    "(broker.example/192.0.2.9:9093) could not be established. (org.apache.kafka.clients.NetworkClient)",
    "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition.",
    "\tat java.base/java.util.concurrent.CompletableFuture.reportGet(CompletableFuture.java:396)",
    'pod "kafka-consumer-groups" deleted',
    "If you don't see a command prompt, try pressing enter.",
    'Defaulted container "kafka" out of: kafka, init (init)',
    "$ kafka-consumer-groups --bootstrap-server localhost:9092 --describe --group billing | sort -k 6 -n",
    "user@host:~$ docker exec -it kafka kafka-consumer-groups.sh --describe --all-groups",
    "PS C:\\kafka> .\\bin\\windows\\kafka-consumer-groups.bat --describe --group billing",
    "==> offsets.txt <==",
    "Every 2.0s: kafka-consumer-groups --describe                             host: Thu Nov 26 05:10:38 2026",
    "Thu Nov 26 05:10:38 UTC 2026",
    "Warning: Permanently added '192.0.2.7' (ED25519) to the list of known hosts.",
    "Picked up JAVA_TOOL_OPTIONS: -Xmx256m -Dfile.encoding=UTF-8",
    "command terminated with exit code 1",
    "real\t0m3.456s",
    "-- more --",
    "42",
    "exit 0",
    "(6 rows)",
    "total lag 1234567",
    "lag 3 of 12 partitions",
    "Processed a total of 15 messages",
    "--------------------------------",
    "EOF",
    "[INFO] 17 partitions read in 3 ms",
    "kafka-0   1/1     Running   0          3d4h",
    "see https://example.org/a?b=c&d=5 for more",
    "Consumer group 'elsewhere' has no active members.",
    "größer als nötig: 100 %",
)


def aligned(rows: Sequence[Sequence[str]], least: Sequence[int], *, fitted: Iterable[int], first: int = 0) -> list[str]:
    """Return rows in columns of a least width, as Java's `printf` aligns them; `fitted` columns grow with cells."""
    grows = {*fitted}
    widths = [
        max(width, *(len(row[column]) for row in rows[1:])) if column in grows and len(rows) > 1 else width
        for column, width in enumerate(least)
    ]
    return [" ".join(cell.ljust(width) for cell, width in list(zip(row, widths, strict=True))[first:]) for row in rows]


@dataclass
class Table:
    """A table as Kafka 4 prints it: its header, its rows, and the group that a reader should find."""

    header: str
    rows: list[str]
    group: str
    partitions: dict[str, tuple[int, str | None]]
    members: set[str]


def table(rng: random.Random, *, spaced: bool = True) -> Table:
    """Return a random table; `spaced`: names may have blanks, so that fields go by their places."""
    grouped = rng.random() < 0.8
    blank = " " if spaced and rng.random() < 0.25 else "-"
    group = f"pay{blank}{rng.randrange(100)}"
    clients = [f"app{blank}{number}" for number in range(rng.randint(1, 4))]
    ids = {f"{client}-{UUID.format(*(rng.randrange(1 << 16) for _ in range(5)))}": client for client in clients}
    cells, partitions, held = [], {}, set()
    for topic in rng.sample(["orders", "t.1", "2024", "re_funds", "A-b"], rng.randint(1, 3)):
        for number in range(rng.randint(1, 5)):
            owner = rng.choice([*ids, None]) if ids else None
            end, behind = rng.randrange(10 ** rng.randint(1, 10)), rng.randrange(10 ** rng.randint(1, 6))
            current = max(end - behind, 0)
            committed = rng.random() < 0.9
            host = f"/192.0.2.{1 + clients.index(ids[owner])}" if owner else "-"
            client = "" if owner and rng.random() < 0.1 else ids.get(owner or "", "-")
            middle = (str(current), str(end), str(end - current)) if committed else ("-", str(end), "-")
            cells.append((group, topic, str(number), *middle, owner or "-", host, client))
            partitions[f"{topic}-{number}"] = (end - current if committed else 0, owner)
            held |= {owner} - {None}
    names = (
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    )
    least = (15, 15, 10, 15, 15, 15, 15, 15, 0)
    first = 0 if grouped else 1
    lines = aligned([names, *cells], least, fitted=(0, 1, 6, 7), first=first)
    return Table(lines[0], lines[1:], group if grouped else "", partitions, {name for name in held if name})


def _cells(line: str, starts: list[int]) -> list[str]:
    return [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]


def _markdown(lines: list[str], header: str) -> list[str]:
    starts = [at for at, char in enumerate(header) if char != " " and (at == 0 or header[at - 1] == " ")]
    rule = "|" + "---|" * len(starts)
    piped = []
    for line in lines:
        is_of_table = line == header or (line[:1].strip() and all(line[at - 1 : at] in (" ", "") for at in starts))
        piped.append("| " + " | ".join(_cells(line, starts)) + " |" if is_of_table else line)
        if line == header:
            piped.append(rule)
    return piped


def _coloured(rng: random.Random, line: str) -> str:
    words = line.split(" ")
    at = rng.randrange(len(words))
    return " ".join([*words[:at], f"\x1b[01;31m\x1b[K{words[at]}\x1b[m\x1b[K", *words[at + 1 :]])


CHANGES: dict[str, Callable[[random.Random, list[str], str], list[str]]] = {
    "as printed": lambda _rng, lines, _header: ["", *lines, ""],
    "sorted": lambda _rng, lines, _header: sorted(lines),
    "reversed": lambda _rng, lines, _header: lines[::-1],
    "shuffled": lambda rng, lines, _header: rng.sample(lines, len(lines)),
    "piped": lambda _rng, lines, header: _markdown(lines, header),
    "coloured": lambda rng, lines, _header: [_coloured(rng, line) for line in lines],
    "fenced": lambda _rng, lines, _header: ["```console", *lines, "```"],
    "quoted": lambda _rng, lines, _header: [f"> {line}" for line in lines],
    "indented": lambda _rng, lines, _header: [f"    {line}" for line in lines],
    "with carriage returns": lambda _rng, lines, _header: [f"{line}\r" for line in lines],
}
"""What people do to a text."""
