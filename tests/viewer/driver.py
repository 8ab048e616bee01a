"""Firefox and WebKit by the commands of WebDriver (w3.org/TR/webdriver2): no package, nothing fetched.

Firefox is spoken to through Marionette, its own socket, which takes the same commands under names; WebKit through
Debian's WebKitWebDriver, over HTTP on loopback, on a display of Xvfb.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

PATIENCE_S = 180.0
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
KEYS = {
    "Tab": "\ue004",
    "PageUp": "\ue00e",
    "PageDown": "\ue00f",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}
"""Keys that are no character, as WebDriver writes them."""
NEEDS = {
    "firefox": (("firefox-esr", "firefox"), "apt-get install firefox-esr"),
    "webkit": (("WebKitWebDriver",), "apt-get install webkit2gtk-driver xvfb"),
}


def lacks(engine: str) -> str | None:
    """What to install for an engine, if it is not there."""
    names, how = NEEDS[engine]
    there = any(map(shutil.which, names)) and (engine != "webkit" or shutil.which("Xvfb"))
    return None if there else how


def _program(name: str) -> str:
    found = shutil.which(name)
    assert found, name
    return found


def soon(what: str, found: Callable[[], Any]) -> Any:
    """Asks until there is an answer; raises `AssertionError` after `PATIENCE_S`."""
    until = time.monotonic() + PATIENCE_S
    while True:
        if answer := found():
            return answer
        assert time.monotonic() < until, f"{what}: not within {PATIENCE_S:g} s"
        time.sleep(0.02)


class Driver(Protocol):
    """A browser with one tab."""

    def ask(self, command: str, **params: Any) -> Any:
        """A command by Marionette's name for it; raises `AssertionError` if it fails."""

    def close(self) -> None:
        """Ends what was started."""


class Firefox:
    """A headless Firefox; `profile` is an empty folder."""

    def __init__(self, profile: Path) -> None:
        names, _ = NEEDS["firefox"]
        program = next(found for name in names if (found := shutil.which(name)))
        # Port 0: any free one, which Firefox then writes into its profile.
        (profile / "user.js").write_text(
            'user_pref("marionette.port", 0);\n'
            'user_pref("browser.shell.checkDefaultBrowser", false);\n'
            'user_pref("datareporting.policy.dataSubmissionEnabled", false);\n'
            'user_pref("app.update.enabled", false);\n'
        )
        self._process = subprocess.Popen(
            [program, "--headless", "--marionette", "--no-remote", "--profile", str(profile), "about:blank"],
            **QUIET,
            env={**os.environ, "HOME": str(profile)},
        )
        try:
            port = soon("Firefox's port", lambda: self._port(profile))
            self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
            self._buffer = b""
            self._number = 0
            self._next()
            self.ask("WebDriver:NewSession", capabilities={})
        except BaseException:
            self._process.kill()
            raise

    def _port(self, profile: Path) -> int:
        assert self._process.poll() is None, "Firefox has ended"
        with contextlib.suppress(OSError, ValueError):
            return int((profile / "MarionetteActivePort").read_text())
        return 0

    def _next(self) -> Any:
        """A message: its length in decimal, a colon, JSON."""
        while True:
            length, colon, rest = self._buffer.partition(b":")
            if colon and len(rest) >= int(length):
                self._buffer = rest[int(length) :]
                return json.loads(rest[: int(length)])
            piece = self._socket.recv(1 << 20)
            assert piece, "Firefox has ended"
            self._buffer += piece

    def ask(self, command: str, **params: Any) -> Any:
        """A command by Marionette's name for it; raises `AssertionError` if it fails."""
        self._number += 1
        text = json.dumps([0, self._number, command, params])
        self._socket.sendall(f"{len(text)}:{text}".encode())
        _, number, error, result = self._next()
        assert number == self._number, (command, number)
        assert error is None, (command, error)
        return result["value"] if isinstance(result, dict) and set(result) == {"value"} else result

    def close(self) -> None:
        """Ends the process."""
        self._socket.close()
        self._process.terminate()
        self._process.wait(timeout=PATIENCE_S)


PATHS = {
    "WebDriver:Navigate": "url",
    "WebDriver:ExecuteAsyncScript": "execute/async",
    "WebDriver:PerformActions": "actions",
    "WebDriver:SetTimeouts": "timeouts",
    "WebDriver:SwitchToFrame": "frame",
    "WebDriver:SetWindowRect": "window/rect",
}
"""Where WebDriver has a command of that name."""


class WebKit:
    """WebKitGTK's small browser on a display of its own; `folder` is an empty one, its home."""

    def __init__(self, folder: Path) -> None:
        shown, number = os.pipe()
        # Xvfb takes the first free display and writes its number.
        self._running = [
            subprocess.Popen(
                [
                    _program("Xvfb"),
                    "-displayfd",
                    str(number),
                    "-screen",
                    "0",
                    "1400x1000x24",
                    "-nolisten",
                    "tcp",
                ],
                pass_fds=[number],
                **QUIET,
            )
        ]
        os.close(number)
        try:
            with os.fdopen(shown) as told:
                display = told.readline().strip()
            assert display, "Xvfb has ended"
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self._port = free.getsockname()[1]
            # Its sandbox needs user namespaces, which containers may lack; the pages are ours.
            settings = {
                "DISPLAY": f":{display}",
                "HOME": str(folder),
                "XDG_RUNTIME_DIR": str(folder),
                "GDK_BACKEND": "x11",
                "LIBGL_ALWAYS_SOFTWARE": "1",
                "NO_AT_BRIDGE": "1",
                "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1",
            }
            driver = subprocess.Popen(
                [_program("WebKitWebDriver"), "--host=127.0.0.1", f"--port={self._port}"],
                **QUIET,
                env={**os.environ, **settings},
            )
            self._running.append(driver)
            soon("WebKitWebDriver", self._ready)
            session = self._call("POST", "/session", {"capabilities": {}})["sessionId"]
            self._session = f"/session/{session}"
        except BaseException:
            self._end()
            raise

    def _ready(self) -> bool:
        assert all(it.poll() is None for it in self._running), "Xvfb or WebKitWebDriver has ended"
        with contextlib.suppress(OSError):
            return bool(self._call("GET", "/status")["ready"])
        return False

    def _call(self, method: str, path: str, params: dict[str, Any] | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(params or {}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        assert answer.status == http.client.OK, (path, content.decode(errors="replace"))
        return json.loads(content)["value"]

    def ask(self, command: str, **params: Any) -> Any:
        """A command by Marionette's name for it; raises `AssertionError` if it fails."""
        return self._call("POST", f"{self._session}/{PATHS[command]}", params)

    def _end(self) -> None:
        for it in reversed(self._running):
            it.terminate()
            it.wait(timeout=PATIENCE_S)

    def close(self) -> None:
        """Ends the session and the processes."""
        with contextlib.suppress(OSError, AssertionError):
            self._call("DELETE", self._session)
        self._end()


def started(engine: str, folder: Path) -> Driver:
    """`firefox` or `webkit`; `folder` is an empty one."""
    driver: Driver = Firefox(folder) if engine == "firefox" else WebKit(folder)
    driver.ask("WebDriver:SetTimeouts", script=int(PATIENCE_S * 1000), pageLoad=int(PATIENCE_S * 1000))
    driver.ask("WebDriver:SetWindowRect", width=1300, height=900)
    return driver


class Tab:
    """What tests say to a page, in whichever browser."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def open(self, file: Path, fragment: str = "") -> None:
        """Opens a file anew and waits until it is loaded."""
        self._driver.ask("WebDriver:Navigate", url="about:blank")
        self._driver.ask("WebDriver:Navigate", url=file.resolve().as_uri() + fragment)

    def value(self, expression: str) -> Any:
        """What an expression gives in the page, promises awaited; the page's policy does not bind it."""
        script = f"""const done = arguments[arguments.length - 1];
            (async () => ({expression}))().then((it) => done([it]), (error) => done(String(error)));"""
        told = self._driver.ask("WebDriver:ExecuteAsyncScript", script=script, args=[])
        assert isinstance(told, list), told
        return told[0]

    def wait_for(self, done: Callable[[], Any]) -> None:
        """Asks until it is so."""
        soon("the page", done)

    def keys(self, names: Iterable[str]) -> None:
        """Presses keys, one after the other."""
        pressed = [
            {"type": kind, "value": KEYS.get(name, name)} for name in names for kind in ("keyDown", "keyUp")
        ]
        keyboard = {"type": "key", "id": "keyboard", "actions": pressed}
        self._driver.ask("WebDriver:PerformActions", actions=[keyboard])

    def into_frame(self) -> None:
        """Speaks to the page's first frame from now on, until another page is opened."""
        self._driver.ask("WebDriver:SwitchToFrame", id=0)
