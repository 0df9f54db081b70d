"""Signals while a table is read."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evenlag.tables.loading import read_table

SIGNALS = 200
SENDER = f"""
import os, random, select, signal, sys, time
for number in range({SIGNALS}):
    time.sleep(random.random() / 300)
    os.kill(os.getppid(), signal.SIGTERM)
    assert select.select([sys.stdin], [], [], 10)[0], f"signal {{number}} was lost"
    os.read(0, 1)
"""


@pytest.mark.slow
def test_no_signal_is_lost_while_csv_is_read(tmp_path: Path) -> None:
    """Arrow replaces handlers while its reader runs in the main thread, and loses a signal that comes at its end."""
    path = tmp_path / "offsets.csv"
    path.write_text("group,topic,partition,lag\n" + "".join(f"g,t,{number},7\n" for number in range(20)))
    handled = 0

    def note(*_: object) -> None:
        nonlocal handled
        handled += 1
        assert sender.stdin is not None
        sender.stdin.write(b".")

    before = signal.signal(signal.SIGTERM, note)
    try:
        with subprocess.Popen([sys.executable, "-c", SENDER], stdin=subprocess.PIPE, bufsize=0) as sender:
            while sender.poll() is None:
                assert list(read_table(path, "offsets"))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (sender.returncode, handled) == (0, SIGNALS)
