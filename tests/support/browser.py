"""A headless Chromium, driven over its DevTools pipe with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium to open pages in; on Debian: apt-get install -y chromium"
_PATIENCE = 60
_FLAGS = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # which root, as in containers, must do without
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
]
_KEYS = {
    "Backspace": (8, ""), "Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), "Space": (32, " "),
    "PageUp": (33, ""), "PageDown": (34, ""), "End": (35, ""), "Home": (36, ""), "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, ""),
}  # fmt: skip
"""The number and the text of a key."""
# The browser reads its commands from descriptor 3 and answers on 4; the two are first put out of the way.
_START = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(given), fcntl.F_DUPFD, 10) for given in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def program():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page; remembers what the page said, asked for and did."""

    def __init__(self):
        self._profile = tempfile.mkdtemp(prefix="karat-browser-")
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        start = [sys.executable, "-I", "-c", _START, str(to_read), str(to_write), program()]
        self._process = subprocess.Popen(
            [*start, *_FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._read, self._number, self._session = b"", 0, None
        self.events = []
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self):
        page = next(t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.send(f"{domain}.enable")

    def close(self):
        self._session = None
        try:
            self.send("Browser.close")
            self._process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._profile, ignore_errors=True)

    def send(self, method, **params):
        """Ask for something and wait for the answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            got = self._next()
            if got.get("id") == self._number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']['message']}")
                return got["result"]
            self.events.append(got)

    def _next(self):
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._read:
            if not select.select([self._in], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self._in, 1 << 20)
            if not got:
                raise TimeoutError("the browser has ended")
            self._read += got
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)

    def open(self, path, *, script=True, dark=False, width=1200, height=900):
        """Open a file or an address as a reader would, and wait until it has loaded."""
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.scheme(dark=dark)
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        self.send("Page.navigate", url=path if str(path).startswith("http://") else Path(path).absolute().as_uri())
        self.wait_for("Page.loadEventFired")

    def settle(self):
        """Wait until everything that this page has asked for is there and drawn; the list of runs never stops asking.

        Requests of the page before do not count: the browser may not tell how they ended.
        """
        end = time.monotonic() + _PATIENCE
        while True:
            self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
            waiting = self._under_way()
            if not waiting:
                return
            if time.monotonic() > end:
                raise TimeoutError(f"the page still waits for {sorted(waiting.values())}")
            self._look(0.5)

    def _under_way(self):
        """The addresses that the page has asked for and that have not been answered, by their request."""
        page = self.send("Page.getFrameTree")["frameTree"]["frame"]["loaderId"]
        waiting = {}
        for event in self.events:
            kind, about = event.get("method"), event.get("params", {})
            if kind == "Network.requestWillBeSent":
                if about["loaderId"] == page and not about["request"]["url"].endswith("/state"):
                    waiting[about["requestId"]] = about["request"]["url"]
            elif kind in ("Network.loadingFinished", "Network.loadingFailed"):
                waiting.pop(about["requestId"], None)
        return waiting

    def _look(self, seconds):
        """Wait for the next event, but only for so long."""
        if b"\0" in self._read or select.select([self._in], [], [], seconds)[0]:
            self.events.append(self._next())

    def scheme(self, *, dark):
        """Let the page be dark or light, as the system of its reader is."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)

    def wait_for(self, event):
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self._next())

    def run(self, code):
        """The value of an expression in the page."""
        done = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"]["exception"].get("description", code))
        return done["result"].get("value")

    def node(self, selector):
        """The number of an element, which works where scripts are off, too."""
        document = self.send("DOM.getDocument", depth=0)["root"]["nodeId"]
        return self.send("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]

    def html(self, selector):
        return self.send("DOM.getOuterHTML", nodeId=self.node(selector))["outerHTML"]

    def click(self, selector):
        """Press the mouse where the element begins, as a reader would: when it does not move any more."""
        before, (left, top) = None, self._place(selector)
        while before != (left, top):
            time.sleep(0.02)
            before, (left, top) = (left, top), self._place(selector)
        x, y = left + 5, top + 5
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def _place(self, selector):
        """Where an element begins, scrolled into view."""
        node = self.node(selector)
        self.send("DOM.scrollIntoViewIfNeeded", nodeId=node)
        left, top, *_ = self.send("DOM.getBoxModel", nodeId=node)["model"]["content"]
        return left, top

    def type(self, text):
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def press(self, *keys):
        """Press keys one after another: Tab, Shift+Tab, Enter, Space, Escape, arrows, letters."""
        for name in keys:
            held, _, key = name.rpartition("+") if len(name) > 1 else ("", "", name)
            code, text = _KEYS.get(key, (ord(key.upper()[0]), key))
            about = {
                "key": {"Space": " "}.get(key, key), "code": key if len(key) > 1 else f"Key{key.upper()}",
                "windowsVirtualKeyCode": code, "modifiers": 8 if held == "Shift" else 0,
            }  # fmt: skip
            self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
            self.send("Input.dispatchKeyEvent", type="keyUp", **about)

    def follow(self, act):
        """Do something that leads to another page, and wait until that has loaded."""
        self.events.clear()
        act()
        self.wait_for("Page.loadEventFired")

    def cookies(self, *addresses):
        """The cookies of these addresses, or of the page."""
        return self.send("Network.getCookies", **({"urls": addresses} if addresses else {}))["cookies"]

    def picture(self, *, whole=False):
        """What the reader sees, as PNG."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, optimizeForSpeed=False)
        return base64.b64decode(shot["data"])

    def screenshot(self, path, *, whole=False):
        Path(path).write_bytes(self.picture(whole=whole))

    def pdf(self):
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def complaints(self):
        """What went wrong in the page: errors, refusals of its policy, dialogs."""
        self.send("Runtime.evaluate", expression="1")  # what was said before is here now
        kinds = (
            "Runtime.exceptionThrown",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
            "Runtime.consoleAPICalled",
        )
        return [e for e in self.events if e.get("method") in kinds]

    def hosts(self):
        """The hosts that the page asked for anything, its own included."""
        return {urlsplit(url).netloc for url in self.requests(own=True)}

    def requests(self, *, own=False):
        """Every address that the page asked for, except data; its own only if wanted."""
        self.send("Runtime.evaluate", expression="1")
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in asked[0 if own else 1 :] if not url.startswith("data:")]
