"""A server of read-only tools for assistants, by the Model Context Protocol (needs the extra `mcp`).

Its process speaks the protocol (`endpoint`), and hands each call to a process of its own kind (`pool`, `worker`), which
reads the source within limits (`access`), makes the Python call (`tools`) and answers within limits (`cutting`).
"""
