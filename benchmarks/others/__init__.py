"""evenlag next to other people's tools: their code as it is installed, the same data, limits and processor."""
