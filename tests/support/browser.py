"""A headless Chromium that opens pages from files, and tells what they asked for and what went wrong."""

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

    def open(
        self, path: Path, *, width: int = 1280, height: int = 900, scripts: bool = True, dark: bool = False
    ) -> None:
        """Loads a file in a window of this size. What earlier pages logged is forgotten."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
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
        """One command of Chromium's protocol for its tools."""
        return self.driver.execute_cdp_cmd(name, values)

    def run(self, script: str, *values: Any) -> Any:
        """What a script says, in the page."""
        return self.driver.execute_script(script, *values)

    def requests(self) -> list[str]:
        """The addresses that were asked for since they were last asked about."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def complaints(self) -> list[str]:
        """What the console says, refusals by the page's policy among it."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def picture(self, left: float, top: float, width: float, height: float, scale: float = 1) -> bytes:
        """A part of the page as PNG."""
        clip = {"x": left, "y": top, "width": width, "height": height, "scale": scale}
        shot = self.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """A browser for as long as the block runs; the test is skipped where there is none."""
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
