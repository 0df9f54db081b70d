"""The limits of a server: size of answers, time of calls, cancelled calls, processes that die."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import anyio
import pytest

from evenlag.mcp import pool
from evenlag.mcp.access import Access
from evenlag.mcp.cutting import LONGEST_TEXT, MOST_CHARACTERS, MOST_FIELDS, MOST_REPORT, cut_document, cut_report
from tests.support.assistants import HARD, LONG, Assistant, assistant_with, group
from tests.support.processes import children, wait_until_ended


@contextmanager
def noted_processes() -> Iterator[list[Any]]:
    """Yield the list of the processes that a server starts."""
    started: list[Any] = []
    start = pool._started

    async def noted() -> Any:
        started.append(await start())
        return started[-1]

    with mock.patch.object(pool, "_started", noted):
        yield started


# ---- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["diagnose", "plan", "explain", "audit", "migrate"])
def test_answers_about_large_groups_are_bounded(assistant: Assistant, tool: str) -> None:
    result = assistant.call(tool, source=group(5_000, 50), time_limit=2)
    assert not result.is_error, result.content[0].text
    assert len(json.dumps(result.structured_content)) <= MOST_CHARACTERS
    assert len(result.content[0].text) <= MOST_REPORT + 100
    if tool == "plan":
        plan = result.structured_content
        shown = sum(map(len, plan["assignment"].values()))
        assert plan["left_out"]["assignment"] == 5_000 - shown
        assert sum(plan["counts"].values()) == 5_000


@pytest.mark.slow
def test_a_plan_that_was_cut_is_not_verified(assistant: Assistant) -> None:
    source = group(5_000, 50)
    plan = assistant.answer("plan", source=source, time_limit=1)
    assert "left out" in assistant.error("verify", source=source, result=plan)


@pytest.mark.slow
def test_rows_are_limited_at_the_start() -> None:
    with assistant_with(rows=5) as assistant:
        plan = assistant.answer("plan", source=group(60, 5), time_limit=1)
        assert {len(held) for held in plan["assignment"].values()} == {5}
        assert plan["left_out"]["assignment"] == 60 - 25


def test_documents_within_the_limits_stay_whole() -> None:
    document = {"a": [1, 2, 3], "b": {"c": None, "d": "x" * LONGEST_TEXT}}
    assert cut_document(document, 3) == document


def test_what_is_cut_is_counted_by_field() -> None:
    names = {f"m{n}": [n, n, n] for n in range(MOST_FIELDS + 7)}
    found = cut_document({"a": list(range(10)), "b": names, "c": "x" * (LONGEST_TEXT + 5)}, 2)
    assert found["a"] == [0, 1]
    assert found["left_out"] == {"a": 8, "b": 7 + MOST_FIELDS}
    assert found["c"].endswith("… (5 more characters)")


def test_a_document_is_cut_further_until_it_is_short_enough() -> None:
    wide = {f"m{n}": [["a-long-name-of-a-topic", p] for p in range(100)] for n in range(MOST_FIELDS)}
    found = cut_document({"assignment": wide}, 100)
    assert len(json.dumps(found)) <= MOST_CHARACTERS
    assert len({len(held) for held in found["assignment"].values()}) == 1
    assert 0 < len(found["assignment"]["m0"]) < 100


def test_reports_are_cut_by_lines_and_characters() -> None:
    assert cut_report("a\nb") == "a\nb"
    assert cut_report("a\n" * 150).endswith("… 30 more lines")
    assert len(cut_report("x" * 10 * MOST_REPORT)) < MOST_REPORT + 100


# ---- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_time_limit_of_the_start_applies_to_calls_that_ask_for_more() -> None:
    with assistant_with(time_limit=0.5) as assistant:
        plan = assistant.answer("plan", source=HARD, time_limit=LONG)
        assert plan["stopped_by"] == "time"


@pytest.mark.slow
def test_a_call_that_takes_too_long_is_ended() -> None:
    short = mock.patch.object(pool, "READING_SECONDS", 3.0 - LONG)
    with noted_processes() as started, short, assistant_with(time_limit=LONG) as assistant:
        assert "was ended" in assistant.error("plan", source=HARD, time_limit=LONG)
        wait_until_ended(started[0].process.pid)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "cp-sat"])
def test_a_cancelled_call_ends_its_search(method: str) -> None:
    with noted_processes() as started, assistant_with(time_limit=LONG) as assistant:
        call = assistant.begin("plan", source=HARD, time_limit=LONG, method=method)
        time.sleep(2)  # the search has begun; if not, the test still holds
        assert call.cancel()
        wait_until_ended(started[0].process.pid)
        assert assistant.answer("plan", source=group(6, 2))["status"] == "OPTIMAL"
        assert len(started) == 2


@pytest.mark.slow
def test_the_server_answers_while_a_search_runs() -> None:
    with assistant_with(time_limit=LONG) as assistant:
        call = assistant.begin("plan", source=HARD, time_limit=LONG)
        assert "plan" in assistant.tools()
        assert assistant.answer("plan", source=group(6, 2))["status"] == "OPTIMAL"
        assert not call.done()
        call.cancel()


@pytest.mark.slow
def test_processes_are_used_again_and_end_with_the_server() -> None:
    with noted_processes() as started:
        with assistant_with() as assistant:
            for _ in range(3):
                assistant.answer("plan", source=group(6, 2))
        (only,) = started
        wait_until_ended(only.process.pid)


@pytest.mark.slow
def test_a_process_that_dies_is_an_error_and_is_replaced() -> None:
    with noted_processes() as started, assistant_with(time_limit=LONG) as assistant:
        call = assistant.begin("plan", source=HARD, time_limit=LONG, method="cp-sat")
        worker = started[0].process.pid
        while not (solvers := children(worker)):
            time.sleep(0.05)
        os.kill(worker, signal.SIGKILL)
        for solver in solvers:
            wait_until_ended(solver)
        result = call.result(60)
        assert result.is_error
        assert "died" in result.content[0].text
        assert assistant.answer("plan", source=group(6, 2))["status"] == "OPTIMAL"


@pytest.mark.slow
def test_a_process_that_died_without_a_call_is_replaced() -> None:
    with noted_processes() as started, assistant_with() as assistant:
        assert assistant.answer("plan", source=group(6, 2))["status"] == "OPTIMAL"
        os.kill(started[0].process.pid, signal.SIGKILL)
        while started[0].process.returncode is None:
            time.sleep(0.05)
        assert assistant.answer("plan", source=group(6, 2))["status"] == "OPTIMAL"
        assert len(started) == 2


@pytest.mark.slow
@pytest.mark.parametrize("value", [10**5_000, "\ud800"], ids=["many digits", "half a character"])
def test_values_that_no_text_of_json_holds_are_answered_in_words(value: Any) -> None:
    async def answer() -> dict[str, Any]:
        async with pool.Pool(Access(), 1.0, 5).running() as running:
            return await running.answer("plan", {"source": group(6, 2), "group": value})

    try:
        found = anyio.run(answer)
    except pool.CallError as error:
        found = {"error": str(error)}
    found["error"].encode()
    assert "cannot be passed on" in found["error"] or "group" in found["error"]
