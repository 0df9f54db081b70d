"""Lines of progress for logs: one every few seconds, one at the end, none for quick work."""

import re
from threading import Event

from evenlag.report import progress_lines

LONG = 3600.0


class Log(list[str]):
    """Lines, and a way to wait for the next."""

    def __init__(self) -> None:
        super().__init__()
        self.came = Event()

    def add(self, line: str) -> None:
        self.append(line)
        self.came.set()

    def wait(self) -> None:
        self.came.clear()
        assert self.came.wait(60)


def test_lines_follow_the_counts_and_the_last_has_the_end() -> None:
    log = Log()
    with progress_lines("groups audited", log.add, 0.01) as show:
        log.wait()
        show(7, 0)
        log.wait()
        log.wait()
        show(1200, 5000, 3)
        log.wait()
        log.wait()
        show(5000, 5000, 4)
    texts = [re.sub(r"\d+ s$", "… s", line) for line in log]
    assert texts[0] == "no groups audited yet, … s"
    assert "7 groups audited, … s" in texts
    assert "1,200 of 5,000 groups audited, 3 failed, … s" in texts
    assert texts[-1] == "5,000 of 5,000 groups audited, 4 failed, … s"


def test_quick_work_prints_nothing() -> None:
    log = Log()
    with progress_lines("groups audited", log.add, LONG) as show:
        show(3, 3)
    assert log == []
