"""A headless Chromium, spoken to through its debugging pipe: no driver, no package, no port."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_S = 60.0


def program() -> str | None:
    """Where Chromium is, if it is there."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One process; each `page` is a fresh tab."""

    def __init__(self, chromium: str, profile: Path) -> None:
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()

        def as_three_and_four() -> None:
            # In two steps: either may be 3 or 4 already.
            os.dup2(to_browser, 10)
            os.dup2(from_browser, 11)
            os.dup2(10, 3)
            os.dup2(11, 4)
            os.close(10)
            os.close(11)

        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [chromium, "--headless", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--disable-gpu",
             "--no-first-run", "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars", *root],
            preexec_fn=as_three_and_four, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.wait(timeout=PATIENCE_S)
        os.close(self._to)
        os.close(self._from)

    def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Calls a method of the DevTools protocol; raises `AssertionError` if it fails."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._from, 1 << 20)
            assert piece, "the browser has ended"
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def page(
        self, file: Path | str, width: int = 1300, height: int = 900, *, script: bool = True, **media: str
    ) -> Page:
        """Opens a file, or an address; `media` are features such as `prefers_color_scheme="dark"`."""
        self.events.clear()
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network", "Performance"):
            page.ask(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        page.ask("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        page.ask("Emulation.setEmulatedMedia", features=features)
        page.ask("Emulation.setScriptExecutionDisabled", value=not script)
        page.ask("Page.setLifecycleEventsEnabled", enabled=True)
        url = file if isinstance(file, str) else file.resolve().as_uri()
        loader = page.ask("Page.navigate", url=url)["loaderId"]

        def loaded(event: dict[str, Any]) -> bool:
            params = event.get("params", {})
            return params.get("loaderId") == loader and params.get("name") == "load"

        page.wait_for(lambda: any(map(loaded, self.events)))
        return page


class Page:
    """A tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls a method of the DevTools protocol for this tab."""
        return self._browser.ask(method, self._session, **params)

    def wait_for(self, done: Callable[[], Any]) -> None:
        """Asks until it is so."""
        until = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < until
            self.ask("Runtime.getHeapUsage")
            time.sleep(0.01)

    def value(self, expression: str) -> Any:
        """What an expression gives in the page; the page's policy does not bind it."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def key(self, name: str, **more: Any) -> None:
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name, **more)

    def mouse(self, x: float, y: float) -> None:
        """Moves the mouse there."""
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def complaints(self) -> list[str]:
        """What the console would show: errors, exceptions, violations of the policy."""
        found = []
        for event in self._browser.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif event.get("method") == "Log.entryAdded":
                found.append(f"{params['entry']['text']} ({params['entry'].get('url', '')})")
            elif event.get("method") == "Runtime.consoleAPICalled":
                found.append(str(params["args"]))
        return found

    def requests(self) -> list[str]:
        """Every address that was asked for."""
        sent = [e for e in self._browser.events if e.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def picture(self, width: int, height: int | None = None) -> bytes:
        """A PNG of the page from its top, to its end unless told."""
        high = height or self.value("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": high, "scale": 1}
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])

    def close(self) -> None:
        """Closes the tab."""
        self._browser.ask("Target.closeTarget", targetId=self._target)
