"""Reasons for a result, as claims that can be checked: data, and sentences made of it.

`evenlag.verifier.check_claims` evaluates each claim again with code of its own.
"""
