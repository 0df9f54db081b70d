"""Compare our assignors with Kafka's on groups of a seed of your choice, or record the golden files."""

import argparse

from tests.oracle import golden, kafka
from tests.oracle.compare import MEASURES, Comparison
from tests.oracle.sequences import ASSIGNORS, BROKER, RACKED, broker_steps, play, racked_steps, steps


def main() -> None:
    """Print a row for each assignor."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--seed", type=int, default=2, help="default 2; the golden files have 1")
    parser.add_argument("--sequences", type=int, default=300, help="groups of five steps each; default 300")
    parser.add_argument("--racks", action="store_true", help="members and replicas have racks")
    parser.add_argument("--broker", action="store_true", help="the broker's assignors, in the order of a broker")
    parser.add_argument("--version", choices=list(kafka.POMS), default=kafka.VERSION, help="Kafka's version")
    parser.add_argument("--record", action="store_true", help="write the golden files anew, from their own seed")
    options = parser.parse_args()
    with kafka.running_oracle(version=options.version) as oracle:
        if options.record:
            golden.ASSIGNMENTS.write_text(golden.assignments(oracle))
            golden.RACKS.write_text(golden.racks(oracle))
            golden.BROKERS.write_text(golden.broker(oracle))
            golden.USER_DATA.write_text(golden.user_data(oracle))
            return
        made = broker_steps if options.broker else racked_steps if options.racks else steps
        assignors = BROKER if options.broker else RACKED if options.racks else ASSIGNORS
        sequences = [made(options.seed, number) for number in range(options.sequences)]
        print(f"Kafka {options.version}, seed {options.seed}, {options.sequences} sequences; equal to Kafka's:\n")
        print("| assignor | steps | " + " | ".join(MEASURES) + " | invalid | Kafka failed |")
        print("|---" * (len(MEASURES) + 4) + "|")
        for assignor in assignors:
            comparison = Comparison()
            for sequence in sequences:
                for request, answer in play(sequence, assignor, oracle.assign):
                    comparison.add(request, answer)
            shares = [f"{comparison.counts[measure] / max(comparison.steps, 1):.2%}" for measure in MEASURES]
            cells = [assignor, comparison.steps, *shares, comparison.counts["invalid"], comparison.kafka_failed]
            print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


main()
