"""Stages of the first plans of many groups: count rules, fresh plans, repairs, swaps and bounds, all by columns."""
