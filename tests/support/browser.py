"""A headless Chromium that opens pages from files and reports their requests and errors."""

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from needs import needs_package, needs_tool

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # as root, which CI is
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)


class Browser:
    """One session: a page at a time."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, *, width: int = 1280, scripts: bool = True, dark: bool = False) -> None:
        """Loads a file in a window of this width, in pixels. Clears the logs of earlier pages."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # nothing moves while it is clicked
        self.command("Emulation.setEmulatedMedia", media="", features=[scheme, still])
        self.requests()
        self.complaints()
        self.driver.get(path.as_uri())

    def command(self, name: str, **values: Any) -> Any:
        """Sends one command of the Chrome DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, values)

    def run(self, script: str, *values: Any) -> Any:
        """Runs a script in the page. Returns its result."""
        return self.driver.execute_script(script, *values)

    def requests(self) -> list[str]:
        """Returns the addresses that were requested since the last call."""
        addresses = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                addresses.append(message["params"]["request"]["url"])
        return addresses

    def complaints(self) -> list[str]:
        """Returns the console's messages, with those of the page's content policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def picture(self, left: float, top: float, width: float, height: float, scale: float = 1) -> bytes:
        """Returns a part of the page as PNG."""
        clip = {"x": left, "y": top, "width": width, "height": height, "scale": scale}
        shot = self.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """Runs a browser during the block. Skips the test where no browser is installed."""
    webdriver = needs_package("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = needs_tool("chromium")
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(needs_tool("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
