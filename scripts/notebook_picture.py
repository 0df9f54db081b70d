"""Draw docs/notebook.png: what a notebook shows of the example on that page, light and dark. Needs Chromium.

`python scripts/notebook_picture.py` from the root of a clone.
"""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
THEMES = {"light": ("#ffffff", "#1f2328"), "dark": ("#111827", "#e5e7eb")}
SIZE = "1240,665"


def main() -> None:
    """Run the example, and have Chromium draw its pages."""
    example = (DOCS / "notebook.md").read_text().split("```python\n")[1].split("```")[0]
    lines = re.findall(r"^(?:>>>|\.\.\.) ?(.*)$", example, re.MULTILINE)
    names: dict[str, Any] = {}
    exec("\n".join(lines[: lines.index("result")]), names)
    shown = "".join(names[name]._repr_html_() for name in ("problem", "result"))
    halves = "".join(
        f'<div style="background:{ground};color:{text};padding:16px 24px;width:572px">{shown}</div>'
        for ground, text in THEMES.values()
    )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(f'<!doctype html><meta charset="utf-8"><body style="display:flex;margin:0">{halves}')
        picture = f"--screenshot={DOCS / 'notebook.png'}"
        command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={SIZE}", picture]
        subprocess.run([*command, page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    main()
