"""A headless Chromium driven through its debugging pipe: pages as people meet them, with keys that are really sent."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

PATH = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe")
KEYS = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, " ": 32}  # Windows key codes
TEXTS = {"Enter": "\r", " ": " "}
SHIFT = 8


class Page:
    """The one page of a browser; everything that it prints to its console is in `messages`."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._write, self._read = to_browser, from_browser
        self._rest = b""
        self._asked = 0
        self._session: str | None = None
        self._loaded: set[str] = set()
        self.messages: list[str] = []

    def attach(self) -> Self:
        targets = self.ask("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.ask("Page.setLifecycleEventsEnabled", enabled=True)
        return self

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._asked += 1
        words = {"id": self._asked, "method": method, "params": parameters}
        if self._session is not None:
            words["sessionId"] = self._session
        os.write(self._write, json.dumps(words).encode() + b"\0")
        while (answer := self._next()).get("id") != self._asked:
            self._hear(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self._rest += more
        words, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(words))

    def _hear(self, event: dict[str, Any]) -> None:
        if event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(json.dumps(event["params"]))
        if event.get("method") == "Page.lifecycleEvent" and event["params"]["name"] == "load":
            self._loaded.add(event["params"]["loaderId"])

    def open(self, path: Path, anchor: str = "") -> Self:
        self.ask("Page.navigate", url="about:blank")  # a new anchor alone would not load the page again
        begun = self.ask("Page.navigate", url=path.as_uri() + anchor)["loaderId"]
        while begun not in self._loaded:
            self._hear(self._next())
        return self

    def look(self, width: int, *, dark: bool = False, height: int = 800) -> Self:
        """Set the width of the window in pixels, and light or dark."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        return self

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page; a promise is awaited."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    def press(self, key: str, times: int = 1, *, shift: bool = False) -> Self:
        """Send a key as the keyboard does: down, its text, up."""
        what = {"key": key, "code": "Space" if key == " " else key, "modifiers": SHIFT * shift,
                "windowsVirtualKeyCode": KEYS[key]}  # fmt: skip
        text = {"text": TEXTS[key]} if key in TEXTS else {}
        for _ in range(times):
            self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **what, **text)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **what)
        return self

    def write(self, text: str) -> Self:
        self.ask("Input.insertText", text=text)
        return self

    def picture(self, path: Path) -> None:
        """Write a PNG of the whole page, also of what lies below the window."""
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def print(self, path: Path) -> None:
        """Write the page as a PDF on A4."""
        found = self.ask("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser() -> Iterator[Page]:
    """A browser with one empty page; it takes descriptors 3 and 4 for its pipe, and a profile that it forgets."""
    assert PATH is not None
    (take, to_browser), (from_browser, give) = os.pipe(), os.pipe()
    words = ["bash", "-c", f'exec "$@" 3<&{take} 4>&{give}', "bash", PATH, *FLAGS, "about:blank"]
    process = subprocess.Popen(words, pass_fds=(take, give), stderr=subprocess.DEVNULL)
    os.close(take)
    os.close(give)
    try:
        yield Page(to_browser, from_browser).attach()
    finally:
        os.close(to_browser)
        os.close(from_browser)
        process.terminate()
        process.wait(30)
