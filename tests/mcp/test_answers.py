"""Each tool answers with the document that its command prints with --json, and with the sentences."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

import evenlag
from evenlag.mcp.tools import TOOLS
from tests.support.assistants import EXAMPLES, ROOT, TABLES, TEXTS, Assistant, without_times
from tests.support.command import evenlag as command

PAGE = ROOT / "docs" / "mcp.md"
BILLING = EXAMPLES / "billing.txt"
RECORD = "snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id\n" + "".join(
    f"2026-11-20T10:0{minute}:00Z,g,t,{p},{1000 + minute * 600 * (p + 1)},{100 + minute * 300 * (p + 2)},c{p % 2}\n"
    for minute in range(4)
    for p in range(8)
)
REPEATED = {"deterministic": True, "time_limit": 5}
WORDS = ("--deterministic", "--time-limit", 5)
CALLS: list[tuple[str, dict[str, Any], tuple[object, ...]]] = [
    ("diagnose", {**REPEATED}, WORDS),
    ("diagnose", {"drain_seconds": 900, "capacity": 100, **REPEATED}, ("--drain", "15m", "--capacity", 100, *WORDS)),
    ("plan", {**REPEATED}, WORDS),
    ("plan", {"stickiness": "fewest-moves", "max_moves": 2, **REPEATED},
     ("--stickiness", "fewest-moves", "--max-moves", 2, *WORDS)),
    ("plan", {"first": ["moves"], "only_if_better": "99%", **REPEATED},
     ("--first", "moves", "--only-if-better", "99%", *WORDS)),
    ("explain", {**REPEATED}, WORDS),
    ("explain", {"name": "orders-2", **REPEATED}, ("orders-2", *WORDS)),
    ("audit", {"deterministic": True, "time_limit": 2}, ("--deterministic", "--group-time-limit", 2)),
    ("size", {"drain_seconds": 900, "capacity": 100, **REPEATED}, ("--drain", "15m", "--capacity", 100, *WORDS)),
    ("whatif", {"change": {"members": 1, "partitions": {"orders": 30}}, **REPEATED},
     ("--change-members", "+1", "--partitions", "orders=30", *WORDS)),
    ("migrate", {"deterministic": True, "time_limit": 2}, ("--deterministic", "--group-time-limit", 2)),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments", "words"), CALLS)
def test_a_tool_answers_with_the_document_of_its_command(
    assistant: Assistant, tool: str, arguments: dict[str, Any], words: tuple[object, ...]
) -> None:
    printed = json.loads(command(tool, BILLING, *words, "--json").stdout)
    if tool == "audit":
        (printed,) = printed
    assert without_times(assistant.answer(tool, source="billing.txt", **arguments)) == without_times(printed)


@pytest.mark.parametrize("tool", ["diagnose", "plan", "explain", "audit", "whatif"])
def test_a_record_is_read_as_the_command_reads_it(assistant: Assistant, tool: str, tmp_path: Path) -> None:
    path = tmp_path / "record.csv"
    path.write_text(RECORD)
    limit = ("--group-time-limit", 2) if tool == "audit" else ("--time-limit", 2)
    change = ("--change-members", "+1") if tool == "whatif" else ()
    printed = json.loads(command(tool, path, *limit, *change, "--deterministic", "--json").stdout)
    more = {"change": {"members": 1}} if tool == "whatif" else {}
    found = assistant.answer(tool, source=RECORD, time_limit=2, deterministic=True, **more)
    assert without_times(found) == without_times(printed[0] if tool == "audit" else printed)


def test_groups_are_listed(assistant: Assistant) -> None:
    tables = {"source": "offsets.csv", "members": "members.csv"}
    found = assistant.answer("groups", **tables)
    known = evenlag.read_groups(**{name: TABLES / file for name, file in tables.items()})
    assert [row["group"] for row in found["groups"]] == [*known]
    assert [row["lag"] for row in found["groups"]] == [sum(each.lags.tolist()) for each in known.values()]
    assert found["errors"] == {}


def test_a_group_with_bad_rows_is_listed_with_its_error(assistant: Assistant) -> None:
    text = "group,topic,partition,lag,consumer_id\ng,orders,0,9,c0\nh,paid,0,many,c1\nh,paid,1,4,c1"
    found = assistant.answer("groups", source=text)
    assert [row["group"] for row in found["groups"]] == ["g"]
    assert "lag is not a whole number" in found["errors"]["h"]


def test_control_characters_of_names_are_escaped_in_texts(assistant: Assistant) -> None:
    lines = [{"group": "g\x1b[31m\nh", "topic": "t", "partition": p, "lag": 5, "consumer_id": "a"} for p in (0, 1)]
    source = "".join(json.dumps({"snapshot_ts": "2026-01-01T00:00:00Z", **row}) + "\n" for row in lines)
    text = assistant.call("groups", source=source).content[0].text
    assert text == r"g\x1b[31m\nh: 2 partitions, 1 member, 10 messages of lag"


def test_a_text_is_a_source_and_sentences_are_the_text(assistant: Assistant) -> None:
    result = assistant.call("diagnose", source=BILLING.read_text())
    assert result.structured_content["verdict"] in result.content[0].text.replace("\n", " ")
    explained = assistant.call("explain", source=BILLING.read_text())
    sentences = [claim["sentence"] for claim in explained.structured_content["claims"]]
    shown = " ".join(explained.content[0].text.split())
    assert len(sentences) > 3
    assert all(sentence in shown for sentence in sentences)


def test_a_plan_is_verified_and_a_changed_one_is_refused(assistant: Assistant) -> None:
    plan = assistant.answer("plan", source="kip-169.json")
    verdict = assistant.answer("verify", source="kip-169.json", result=plan)
    assert verdict["outcome"] == "verified"
    assert assistant.answer("verify", source="kip-169.json", result=json.dumps(plan)) == verdict
    changed = assistant.answer("verify", source="kip-169.json", result={**plan, "spread": plan["spread"] + 1})
    assert changed["outcome"] == "refused"


def test_members_are_names_or_a_mapping(assistant: Assistant) -> None:
    text = "group,topic,partition,lag\ng,t,0,9\ng,t,1,5\ng,t,2,4\n"
    found = assistant.answer("plan", source=text, members=["a", "b"])
    assert sorted(found["assignment"]) == ["a", "b"]
    found = assistant.answer("plan", source=text, members={"c": ["t"], "d": None})
    assert sorted(found["assignment"]) == ["c", "d"]


@pytest.mark.parametrize("sample", sorted({*TEXTS.iterdir()} - {TEXTS / "right.json"}, key=str))
def test_each_sample_text_has_a_diagnosis_or_an_error_in_words(assistant: Assistant, sample: Path) -> None:
    listed = assistant.call("groups", source=str(sample))
    groups = [] if listed.is_error else [row["group"] for row in listed.structured_content["groups"]]
    for given in [{"group": name} for name in groups] or [{}]:
        result = assistant.call("diagnose", source=str(sample), time_limit=1, **given)
        text = result.content[0].text
        assert text
        assert "evenlag failed" not in text
        assert result.is_error or result.structured_content["verdict"]


# ---- descriptions ----------------------------------------------------------------------------------------------------


def test_tools_are_described_by_the_python_calls(assistant: Assistant) -> None:
    tools = assistant.tools()
    assert sorted(tools) == sorted(TOOLS)
    plan = tools["plan"].input_schema["properties"]
    assert set(inspect.signature(evenlag.solve).parameters) - set(plan) == {"problem", "threads", "start", "rates"}
    assert plan["balance"]["enum"] == ["both", "topic", "group", "none"]
    assert plan["balance"]["default"] == "both"
    assert plan["first"]["type"] == "array"
    change = tools["whatif"].input_schema["properties"]["change"]
    assert set(change["properties"]) == set(inspect.signature(evenlag.Change).parameters)
    for tool in tools.values():
        assert tool.annotations.read_only_hint
        assert tool.description
        schema = tool.input_schema
        assert "source" in schema["required"]
        for name, each in schema["properties"].items():
            text = each.get("description") or plan[name]["description"]
            assert "As in" not in text
            assert "DataFrame" not in text
            assert {"type"} <= set(each)


def test_a_parameter_with_another_meaning_than_in_plan_is_described(assistant: Assistant) -> None:
    tools = {name: tool.input_schema["properties"] for name, tool in assistant.tools().items()}
    assert "deadline" in tools["size"]["drain_seconds"]["description"]
    assert tools["diagnose"]["capacity"]["description"] != tools["plan"]["capacity"]["description"]
    for name, properties in tools.items():
        for parameter, each in properties.items():
            assert "description" in each or parameter in tools["plan"], (name, parameter)


def test_the_list_of_tools_is_short(assistant: Assistant) -> None:
    listed = [tool.model_dump_json(exclude_none=True, by_alias=True) for tool in assistant.tools().values()]
    assert sum(map(len, listed)) < 25_000


def test_requirements_are_those_of_the_calls(assistant: Assistant) -> None:
    required = {name: set(tool.input_schema["required"]) - {"source"} for name, tool in assistant.tools().items()}
    extra = {"size": {"drain_seconds"}, "whatif": {"change"}, "verify": {"result"}}
    assert required == {name: extra.get(name, set()) for name in TOOLS}


def test_the_page_lists_the_tools() -> None:
    listed = re.findall(r"^\| `(\w+)` \|.*\| `(?:evenlag|Result)\.(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert listed == [(name, tool.call.__name__) for name, tool in TOOLS.items()]
