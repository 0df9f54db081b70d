"""Phrases that slow a reader down, in code and on pages."""

import re

COMPARATIVES = "better|earlier|fewer|greater|higher|larger|later|less|longer|lower|more|smaller|worse"
PHRASES = re.compile(
    rf"(?<![Tt]here )\b(is|are) no (?!({COMPARATIVES})\b)[a-z]|\bas (it is|they are)$|\bas they are\b|\bso many\b"
    r"|\bso much\b(?! as)|\blets expect\b|\bbeside\b|\b(is|are|was|were) (said|told)\b|\ba person likes\b"
)
