"""Strongly connected components of a directed graph (Tarjan 1972), without recursion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.int64]


def strong_components(nodes: int, tail: Nodes, head: Nodes) -> Nodes:
    """Return a component number for every node; nodes with equal numbers can reach each other.

    Parameters
    ----------
    nodes : int
        Nodes are 0 … nodes − 1.
    tail, head : int64 arrays (E,)
        The arcs.
    """
    order = np.argsort(tail, kind="stable")
    successors = head[order].tolist()
    starts = np.searchsorted(tail[order], np.arange(nodes + 1)).tolist()
    component = [-1] * nodes
    index, low = [-1] * nodes, [0] * nodes
    path: list[int] = []  # nodes whose component is not yet complete
    seen = found = 0
    for root in range(nodes):
        if index[root] >= 0:
            continue
        work = [(root, starts[root])]
        index[root] = low[root] = seen
        seen += 1
        path.append(root)
        while work:
            node, at = work.pop()
            if at < starts[node + 1]:
                work.append((node, at + 1))
                after = successors[at]
                if index[after] < 0:
                    index[after] = low[after] = seen
                    seen += 1
                    path.append(after)
                    work.append((after, starts[after]))
                elif component[after] < 0:
                    low[node] = min(low[node], index[after])
                continue
            if low[node] == index[node]:
                while True:
                    member = path.pop()
                    component[member] = found
                    if member == node:
                        break
                found += 1
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
    return np.array(component, dtype=np.int64)
