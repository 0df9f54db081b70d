"""The commands, one file each. To add one, write its file and add a line here."""

COMMANDS = {
    "audit": "Compare every strategy with the optimum.",
    "check": "Report groups that need action, for cron and CI.",
    "completion": "Print a script that completes evenlag in a shell.",
    "demo": "Plan and audit a recorded cluster on local Spark.",
    "diagnose": "Find what is wrong with a group, and what to change.",
    "explain": "Explain the best plan of one group, or one partition or member.",
    "export": "Write the MIP of one group as LP or MPS, for any solver.",
    "fleet": "Audit, size or replay all groups of a fleet, on Spark.",
    "frontier": "Show the best spread for each budget of moves.",
    "history": "Read the past of all groups from what Kafka has kept.",
    "mcp": "Serve read-only tools to assistants (Model Context Protocol).",
    "migrate": "Forecast what groups get under KIP-848, and what breaks.",
    "plan": "Find the best assignment of one group.",
    "publish": "Publish a plan for consumers that follow it.",
    "replay": "Run every strategy over the recorded history of a group.",
    "report": "Write an HTML page about a group or a fleet.",
    "size": "Find the fewest members that can read all lag within a time.",
    "snapshot": "Record the consumer groups of a running cluster.",
    "stream": "Plan and audit snapshots as they arrive in a topic.",
    "verify": "Check a result independently of the search.",
    "watch": "Serve metrics on the gain of a rebalance for each group.",
    "whatif": "Compare the best plans of one group before and after a change.",
}

FLEET = {
    "audit": "Plan and audit every group of a fleet, and write the tables.",
    "replay": "Replay the recorded history of every group of a fleet.",
    "report": "Write an HTML page about the groups of a fleet audit.",
    "size": "Find how many members each group of a fleet needs.",
}
"""The commands of `evenlag fleet`, in files that begin with `fleet_`."""
