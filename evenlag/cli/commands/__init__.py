"""The commands, one file each. To add one, write its file and add a line here, below its heading."""

COMMANDS = {
    "One group": {
        "diagnose": "Find what is wrong with a group, and what to change.",
        "plan": "Find the best assignment of one group.",
        "explain": "Explain the best plan of one group, or one partition or member.",
        "audit": "Compare every strategy with the optimum.",
        "frontier": "Show the best spread for each budget of moves.",
        "whatif": "Compare the best plans of one group before and after a change.",
        "size": "Find the fewest members that can read all lag within a time.",
        "check": "Report groups that need action, for cron and CI.",
        "verify": "Check a result independently of the search.",
        "report": "Write an HTML page about a group or a fleet.",
        "export": "Write the MIP of one group as LP or MPS, for any solver.",
        "migrate": "Forecast what groups get under KIP-848, and what breaks.",
    },
    "A cluster": {
        "snapshot": "Record the consumer groups of a running cluster.",
        "watch": "Serve metrics on the gain of a rebalance for each group.",
        "mcp": "Serve read-only tools to assistants (Model Context Protocol).",
        "publish": "Publish a plan for consumers that follow it.",
        "history": "Read the past of all groups from what Kafka has kept.",
        "replay": "Run every strategy over the recorded history of a group.",
    },
    "Fleets on Spark": {
        "fleet": "Audit, size or replay all groups of a fleet, on Spark.",
        "stream": "Plan and audit snapshots as they arrive in a topic.",
    },
    "Others": {
        "demo": "Diagnose the groups of a recorded cluster.",
        "completion": "Print a script that completes evenlag in a shell.",
    },
}

FLEET = {
    "Commands": {
        "audit": "Plan and audit every group of a fleet, and write the tables.",
        "replay": "Replay the recorded history of every group of a fleet.",
        "size": "Find how many members each group of a fleet needs.",
    }
}
"""The commands of `evenlag fleet`, in files that begin with `fleet_`."""
