"""Run simulated groups for some hours, seed after seed."""

import argparse
import logging
import sys
import time

from evenlag.simulation import KINDS, BrokenPromiseError, simulate
from evenlag.simulation.faults import FAULTS


def find_faults(kind: str, hours: float) -> int:
    """Put in one fault after the other and print what finds it; return 1 if one is not found."""
    missed = 0
    for fault in FAULTS[kind]:
        started = time.process_time()
        found = fault.found(kind, hours)
        missed += found is None
        told = "not found" if found is None else "found by seed {}: {}".format(*found)
        print(f"{fault.name}: {told} ({time.process_time() - started:.1f} s of processor time)", flush=True)
    return int(missed > 0)


def main() -> int:
    """Run the seeds asked for; return 1 and print the story if a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m evenlag.simulation", description=__doc__)
    parser.add_argument("--hours", type=float, default=10.0, help="hours of virtual time for each seed (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds (default: 1)")
    parser.add_argument("--kind", choices=KINDS, default="followers", help="the group (default: followers)")
    parser.add_argument("--faults", action="store_true", help="put faults into the code instead, and find them")
    asked = parser.parse_args()
    logging.getLogger("evenlag").setLevel(logging.CRITICAL)  # the story of a failure has what matters
    if asked.faults:
        return find_faults(asked.kind, asked.hours)
    for seed in range(asked.seed, asked.seed + asked.seeds):
        started = time.monotonic()
        try:
            report = simulate(seed, asked.hours, asked.kind)
        except BrokenPromiseError as error:
            print(error)
            return 1
        print(
            f"seed {seed}: {report.hours:g} h in {time.monotonic() - started:.1f} s; {report.processed} messages, "
            f"{report.repeated} of them again; {report.faults.total()} faults and repairs, "
            f"{report.settled} looks at a settled group"
            + "".join(f"; {count} {name}" for name, count in sorted(report.done.items()))
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
