"""First plans: published heuristics, fresh plans and the plan with the fewest moves."""
