"""The progress bar: its text in a terminal, and silence elsewhere."""

import io

import pytest
from rich.console import Console

from evenlag.pipeline import progress_bar


def printed_progress(**console: bool) -> str:
    text = io.StringIO()
    with progress_bar("groups", Console(file=text, width=120, **console)) as show:
        show(0, 40)
        show(10, 40, 2)
    return text.getvalue()


def test_a_terminal_sees_groups_rate_time_left_and_failures() -> None:
    output = printed_progress(force_terminal=True)
    for part in ("groups", "10/40", "/s", "left", "2 failed"):
        assert part in output


def test_no_progress_is_printed_outside_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    assert printed_progress() == ""


def test_a_notebook_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    began = []
    monkeypatch.setattr("rich.progress.Progress.start", lambda self: began.append(self.disable))
    printed_progress(force_jupyter=True)
    assert began == [False]
