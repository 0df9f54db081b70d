"""Kafka's own assignors as an oracle: `python -m tests.oracle --help` compares ours with them on unseen groups.

Oracle.java runs them. A request is a line of JSON:

- an assignment: `{"assignor": "sticky", "topics": {"t0": 3}, "members": {"c0": {"topics": ["t0"], "owned": {"t0": [0]},
  "generation": 4}}}` (no topics: all of them); the answer is `{"member_of": [0, 0, 0]}`, the number of each partition's
  member, members by id and partitions by topic and number, -1 for none. Racks, where some are known: `"rack": "a"` of a
  member, and `"racks": {"t0": "ab - b"}` of the request: for each partition a letter for the rack of each replica, "-"
  for a replica whose rack is not known;
- a benchmark: the same with `"warm": 3, "runs": 5` and, for a group with owners, `"before"`: the members of the group
  whose assignment they own; the answer is `{"milliseconds": [0.21, …]}` of the assignor's call alone;
- user data: `{"schema": 1, "owned": [["t0", 0]], "generation": 4}`; the answer is `{"hex": "0000…"}`.

Assignors: `range`, `roundrobin`, `sticky`, `cooperative-sticky` (what it is heading for), `cooperative-sticky-first`
(its first answer, which withholds what others must revoke), `range-server` (the broker's `range`, of KIP-848 groups),
`uniform`; and `range-broker` and `uniform-broker`, which take members, topics and partitions in the order of the
collections that a broker keeps them in. For these, `"instance": "host-1"` of a static member, and `"ids": {"t0": …}` of
the request.
"""
