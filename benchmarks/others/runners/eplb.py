"""Pack experts with `balanced_packing` of DeepSeek's EPLB: `layers` of loads, `packs`, and the `folder` of eplb.py."""

import sys
from typing import Any

import torch

from benchmarks.others.wire import Document, processor_seconds, serve


def answer(question: Document) -> Document:
    """Return the pack of each expert and the processor time, layer by layer."""
    sys.path.insert(0, question["folder"])
    import eplb

    torch.set_num_threads(1)
    packed(eplb, question["layers"][0], question["packs"])  # the first call is slower
    return {"answers": [packed(eplb, layer, question["packs"]) for layer in question["layers"]],
            "version": torch.__version__}  # fmt: skip


def packed(eplb: Any, loads: list[int], packs: int) -> Document:
    """Return the pack of each expert of a layer."""
    weight = torch.tensor([loads])
    started = processor_seconds()
    pack_of, _ = eplb.balanced_packing(weight, packs)
    return {"member_of": pack_of[0].tolist(), "seconds": processor_seconds() - started}


if __name__ == "__main__":
    serve(answer)
