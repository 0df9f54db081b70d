"""Cost of a start: processor time of whole processes, in turn with the bare interpreter and with NumPy."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
RUNS = 11
GROUP = str(ROOT / "examples" / "kip-169.json")
COMPLETION = {"_EVENLAG_COMPLETE": "bash_complete", "COMP_WORDS": "evenlag plan --bal", "COMP_CWORD": "2"}
CALLS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "the bare interpreter": (("-c", "pass"), {}),
    "`import numpy`": (("-c", "import numpy"), {}),
    "`import evenlag`": (("-c", "import evenlag"), {}),
    "`evenlag.solve`, imported": (("-c", "import evenlag; evenlag.solve"), {}),
    "`evenlag --version`": (("-m", "evenlag", "--version"), {}),
    "`evenlag --help`": (("-m", "evenlag", "--help"), {}),
    "`evenlag plan --help`": (("-m", "evenlag", "plan", "--help"), {}),
    "a completion of `evenlag plan --bal`": (("-m", "evenlag"), COMPLETION),
    "`evenlag plan examples/kip-169.json`": (("-m", "evenlag", "plan", GROUP), {}),
    "the same with `--json`": (("-m", "evenlag", "plan", GROUP, "--json"), {}),
    "`import ortools.sat.python.cp_model`": (("-c", "import ortools.sat.python.cp_model"), {}),
}


def startup(seed: int) -> Iterator[str]:
    """Each call in turn, so that all meet the same machine."""
    yield "# Start: processor time of a process\n"
    yield (
        f"User and system time of whole processes, medians of {RUNS} runs, all calls in turn in every run; files are "
        "in the cache. Ratios are to the bare interpreter and to `import numpy` of the same run. The last row is what "
        "evenlag does without: OR-Tools' own module for CP-SAT, which imports pandas.\n"
    )
    yield "| call | seconds | × the interpreter | × `import numpy` |"
    yield "|---" * 4 + "|"
    runs: dict[str, list[float]] = {name: [] for name in CALLS}
    for number in range(RUNS + 1):
        for name, (words, env) in CALLS.items():
            took = processor_seconds(words, env | {"PYTHONHASHSEED": str(seed)})
            if number:  # the first run fills the cache
                runs[name].append(took)
    bare, numpy = runs["the bare interpreter"], runs["`import numpy`"]
    for name, seconds in runs.items():
        ratios = [median(a / b for a, b in zip(seconds, beside, strict=True)) for beside in (bare, numpy)]
        yield f"| {name} | {median(seconds):.3f} | {ratios[0]:.1f} | {ratios[1]:.2f} |"


def processor_seconds(words: tuple[str, ...], env: dict[str, str]) -> float:
    """User and system time of a Python process and of those that it has started and waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], env=os.environ | env, cwd=ROOT, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
