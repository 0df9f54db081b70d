"""Every form of a group that is read: its writer, and the facts that it can tell."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import evenlag
from evenlag import live
from evenlag.tables.columns import MEMBERS, OFFSETS
from evenlag.tables.formats.exporters import EXPORTERS, Exporter
from tests.support import told_monitors as monitors
from tests.support import told_texts as texts
from tests.support.told_groups import Group

Source = dict[str, Any]
"""Arguments of `evenlag.read`."""
STAMP = "2026-11-20T10:00:00.000Z"


@dataclass(frozen=True)
class Form:
    """A form of a group.

    Attributes
    ----------
    write : callable (Group, Path) -> Source
        Writes a group, into a folder if it needs files.
    tells : str
        The words of `told_reference.TELLS` for what it tells.
    source : str
        Name of the form in notes; `{}` is the folder.
    shown : callable (Group) -> (Group, list of str) or None
        Returns the group as the form shows it, and notes on its gaps; None for a group that it cannot show.
    """

    write: Callable[[Group, Path], Source]
    tells: str
    source: str = "{}/group.txt"
    shown: Callable[[Group], tuple[Group, list[str]] | None] = lambda group: (group, [])

    def facts(self) -> set[str]:
        """Return the words for what it tells."""
        return {*self.tells.split()}


def text(*writers: Callable[[Group], str], suffix: str = ".txt") -> Callable[[Group, Path], Source]:
    """Return a writer of one file with several texts."""

    def write(group: Group, folder: Path) -> Source:
        path = folder / f"group{suffix}"
        path.write_text("".join(writer(group) for writer in writers))
        return {"source": path, "group": group.name}

    return write


def two_texts(offsets: Callable[[Group], str], members: Callable[[Group], str]) -> Callable[[Group, Path], Source]:
    """Return a writer of a text of partitions and one of members."""

    def write(group: Group, folder: Path) -> Source:
        found = text(offsets)(group, folder)
        if group.members:
            (folder / "members.txt").write_text(members(group))
            found["members"] = folder / "members.txt"
        return found

    return write


def exposed(exporter: Exporter, writer: Callable[[Exporter, Group], str], suffix: str) -> Form:
    """Return the form of an exporter's series; members are given by name where it does not know of any."""

    def write(group: Group, folder: Path) -> Source:
        found = text(partial(writer, exporter), suffix=suffix)(group, folder)
        if not monitors.tells_members(exporter):
            found["members"] = {each.name: each.topics for each in group.members}
        return found

    shown = partial(monitors.reported, exporter, drops_empty=suffix == ".json")
    return Form(write, monitors.facts_told(exporter), f"{{}}/group{suffix}", shown)


# ---- tables ----------------------------------------------------------------------------------------------------------


def offset_rows(group: Group, names: tuple[str, ...] = OFFSETS.names) -> list[dict[str, Any]]:
    """Return the rows of the offsets table with some of its columns."""
    rows = []
    for each in group.partitions:
        owner = group.member(each.owner)
        row = {
            "snapshot_ts": STAMP, "group": group.name, "topic": each.topic, "partition": each.number,
            "log_start_offset": each.start, "log_end_offset": each.end, "current_offset": each.current,
            "consumer_id": each.owner, "client_id": owner and owner.client, "host": owner and owner.host,
            "lag": texts.kafka_lag(each),
        }  # fmt: skip
        rows.append({name: row.get(name) for name in names})
    return rows


def member_rows(group: Group) -> list[dict[str, Any]]:
    """Return the rows of the members table."""
    rows = []
    for each in group.members:
        row = {
            "snapshot_ts": STAMP, "group": group.name, "consumer_id": each.name, "client_id": each.client,
            "host": each.host, "group_instance_id": each.instance, "topics": list(each.topics), "rack": each.rack,
            "generation": group.epoch, "protocol": each.protocol, "assignor": group.assignor,
            "group_state": group.state, "group_epoch": group.epoch, "assignment_epoch": group.assignment_epoch,
        }  # fmt: skip
        rows.append({name: row.get(name) for name in MEMBERS.names})
    return rows


Maker = Callable[[list[dict[str, Any]], tuple[str, ...], Path], Any]


def to_csv(rows: list[dict[str, Any]], names: tuple[str, ...], path: Path) -> Path:
    """Write rows as CSV."""
    cells = [
        {name: ";".join(value) if isinstance(value, list) else value for name, value in row.items()} for row in rows
    ]
    frame = pd.DataFrame(cells, columns=list(names), dtype=object)
    frame.to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


def to_jsonl(rows: list[dict[str, Any]], _: tuple[str, ...], path: Path) -> Path:
    """Write rows as JSON Lines, without nulls."""
    lines = [json.dumps({name: value for name, value in row.items() if value is not None}) for row in rows]
    path.with_suffix(".jsonl").write_text("".join(f"{line}\n" for line in lines))
    return path.with_suffix(".jsonl")


def to_arrow(rows: list[dict[str, Any]], names: tuple[str, ...], _: Path) -> pa.Table:
    """Return rows as an Arrow table."""
    kinds = {column.name: column for column in (*OFFSETS, *MEMBERS)}
    return pa.Table.from_pylist(rows, schema=type(OFFSETS)(kinds[name] for name in names).arrow())


def to_parquet(rows: list[dict[str, Any]], names: tuple[str, ...], path: Path) -> Path:
    """Write rows as Parquet."""
    pq.write_table(to_arrow(rows, names, path), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def to_pandas(rows: list[dict[str, Any]], names: tuple[str, ...], _: Path) -> pd.DataFrame:
    """Return rows as a DataFrame of pandas, with whole numbers beside nulls as objects."""
    return pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in names})


def to_polars(rows: list[dict[str, Any]], names: tuple[str, ...], path: Path) -> pl.DataFrame:
    """Return rows as a DataFrame of Polars."""
    found = pl.from_arrow(to_arrow(rows, names, path))
    assert isinstance(found, pl.DataFrame)
    return found


def tables(make: Maker, columns: tuple[str, ...] = OFFSETS.names, *, members: bool) -> Callable[[Group, Path], Source]:
    """Return a writer of the offsets table, and of the members table if it is wanted."""

    def write(group: Group, folder: Path) -> Source:
        found: Source = {"source": make(offset_rows(group, columns), columns, folder / "offsets"), "group": group.name}
        if members:
            found["members"] = make(member_rows(group), MEMBERS.names, folder / "members")
        return found

    return write


def snapshot_folder(format: str) -> Callable[[Group, Path], Source]:  # noqa: A002
    """Return a writer of the folder of a snapshot."""

    def write(group: Group, folder: Path) -> Source:
        live.write_snapshot(live.Snapshot(offset_rows(group), member_rows(group)), folder / "taken", format=format)
        return {"source": folder / "taken", "group": group.name}

    return write


def problem_file(of: Callable[[Group, Path], Source]) -> Callable[[Group, Path], Source]:
    """Return a writer of the problem of another form as a problem file."""

    def write(group: Group, folder: Path) -> Source:
        path = folder / "problem.json"
        path.write_text(json.dumps(evenlag.read(**of(group, folder)).to_dict()))
        return {"source": path}

    return write


# ---- the table of forms and facts ------------------------------------------------------------------------------------

OF_MEMBERS = (
    "owners idle topics nobody state assignor epoch assignment_epoch protocol classic instance client rack generation"
)
OF_KAFKA_4 = "owners idle assignment instance client protocol classic generation"
ROWS = ("group", "topic", "partition", "log_end_offset", "current_offset", "consumer_id", "client_id")
FORMS: dict[str, Form] = {
    "Kafka --offsets": Form(text(texts.offsets), "owners client message"),
    "Kafka 1, with idle members": Form(text(texts.offsets_and_idle), "owners idle rows client message"),
    "Kafka --offsets --verbose": Form(text(texts.offsets_verbose), "owners client message"),
    "Kafka 0.9": Form(text(texts.commas), "owners"),
    "ConsumerOffsetChecker": Form(text(texts.checker), "owners"),
    "Kafka --offsets --members": Form(text(texts.offsets, texts.members), "owners idle instance client message"),
    "Kafka 2 --members --verbose": Form(
        text(lambda group: texts.members(group, verbose="2"), texts.offsets),
        "owners idle assignment instance client message",
    ),
    "Kafka 4 --members --verbose": Form(
        text(texts.offsets, lambda group: texts.members(group, verbose="4")),
        f"{OF_KAFKA_4} assignment_epoch message",
    ),
    "members in a text of their own": Form(
        two_texts(texts.offsets, lambda group: texts.members(group, verbose="4")),
        f"{OF_KAFKA_4} assignment_epoch message twice",
        "{}/members.txt",
    ),
    "Kafka --state": Form(text(texts.state, texts.offsets), "owners client state assignor count message"),
    "Kafka 4 --state --verbose": Form(
        text(texts.offsets, lambda group: texts.state(group, verbose=True)),
        "owners client state assignor count protocol epoch assignment_epoch message",
    ),
    "all three of Kafka 4": Form(
        text(
            lambda group: texts.state(group, verbose=True),
            lambda group: texts.members(group, verbose="4"),
            texts.offsets,
        ),
        f"{OF_KAFKA_4} state assignor count epoch assignment_epoch message",
    ),
    "loop": Form(text(texts.loop), "owners client message loop"),
    "rpk": Form(text(texts.rpk), "owners client statics instance state assignor count start whole"),
    "rpk as JSON": Form(
        text(texts.rpk_json, suffix=".json"),
        "owners idle client instance state assignor count start whole zero",
        "{}/group.json",
    ),
    "kcl": Form(text(texts.kcl), "owners idle assignment client instance state assignor count whole"),
    "newer kcl": Form(
        text(lambda group: texts.kcl(group, newer=True)),
        "owners idle topics client instance rack state assignor count start whole protocol generation",
    ),
    "kcl as JSON": Form(
        text(texts.kcl_json, suffix=".json"),
        "owners idle client instance state assignor count whole zero",
        "{}/group.json",
    ),
    "newer kcl as JSON": Form(
        text(lambda group: texts.kcl_json(group, newer=True), suffix=".json"),
        "owners idle topics client instance rack state assignor count start whole zero protocol generation",
        "{}/group.json",
    ),
    "Kafbat as JSON": Form(text(texts.kafbat_json, suffix=".json"), "owners state assignor count", "{}/group.json"),
    "Kafbat as CSV": Form(text(texts.kafbat_csv, suffix=".csv"), "owners", "{}/group.csv"),
    "Kestra": Form(text(texts.kestra, suffix=".json"), "owners idle client state count", "{}/group.json"),
    **{
        f"offsets as {name}": Form(tables(make, ROWS, members=False), "owners client")
        for name, make in (("CSV", to_csv), ("JSONL", to_jsonl), ("Parquet", to_parquet), ("pandas", to_pandas))
    },
    **{
        f"both tables as {name}": Form(tables(make, members=True), f"{OF_MEMBERS} start", source)
        for name, make, source in (
            ("CSV", to_csv, "{}/members.csv"),
            ("JSONL", to_jsonl, "{}/members.jsonl"),
            ("Parquet", to_parquet, "{}/members.parquet"),
            ("pandas", to_pandas, "the DataFrame of members"),
            ("Polars", to_polars, "the DataFrame of members"),
            ("Arrow", to_arrow, "the DataFrame of members"),
        )
    },
    **{
        f"snapshot folder of {name}": Form(snapshot_folder(name), f"{OF_MEMBERS} start", f"{{}}/taken/members.{name}")
        for name in ("csv", "jsonl", "parquet")
    },
    **{
        f"{exporter.name}, {name}": exposed(exporter, write, suffix)
        for exporter in EXPORTERS
        for name, write, suffix in (("text", monitors.exposition, ".prom"), ("PromQL", monitors.promql, ".json"))
    },
    "Burrow": Form(text(monitors.burrow, suffix=".json"), "owners idle", "{}/group.json", monitors.of_burrow),
    "Confluent's API": Form(
        text(monitors.confluent_api, suffix=".json"),
        "owners idle instance client",
        "{}/group.json",
        monitors.of_confluent,
    ),
    "Confluent's command": Form(
        text(monitors.confluent_table), "owners idle instance client", "{}/group.txt", monitors.of_confluent
    ),
    "problem file of tables": Form(
        problem_file(tables(to_arrow, members=True)), f"{OF_MEMBERS.replace('instance ', '')} start final"
    ),
}

OF_ALL = "all three of Kafka 4"
FORMS["problem file of a text"] = Form(
    problem_file(FORMS[OF_ALL].write), f"{FORMS[OF_ALL].tells.replace('instance ', '').replace(' message', '')} final"
)
