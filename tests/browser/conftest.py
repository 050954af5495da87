"""Chromium on the page, without a network: run by ``make test-browser``, and skipped otherwise."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from abelnet.explore.server import Explorer

AXE = os.environ.get("ABELNET_BROWSER", "")
if AXE:
    from selenium import webdriver
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.remote.webelement import WebElement
    from selenium.webdriver.support.ui import Select, WebDriverWait
else:
    collect_ignore_glob = ["test_*.py"]

# No name but that of this machine is resolved, and Chromium does nothing of its own accord.
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_PATIENCE = 120.0  # seconds; other programs may be at work


class Page:
    """The page in a browser: its elements by id, waits, and what it has requested."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver, self.address = driver, address
        self.requests: list[str] = []

    def open(self, tab: str, *, width: int = 1280, dark: bool = False) -> None:
        """Opens a tab in a window of a width."""
        self.resize(width, 900)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}#{tab}")
        self.wait(lambda: self[f"panel-{tab}"].is_displayed())

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def __getitem__(self, name: str) -> WebElement:
        return self.driver.find_element(By.ID, name)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def wait(self, condition: Callable[[], Any]) -> Any:
        # What was found may be replaced before it is read.
        patience = WebDriverWait(self.driver, _PATIENCE, 0.05, ignored_exceptions=[StaleElementReferenceException])
        return patience.until(lambda _: condition())

    def choose(self, name: str, value: str) -> None:
        Select(self[name]).select_by_value(value)

    def write(self, name: str, text: str) -> None:
        """Replaces the text of a field, as a keyboard does."""
        self[name].click()
        self[name].send_keys(Keys.CONTROL, "a")
        self.driver.execute_cdp_cmd("Input.insertText", {"text": text})

    def paste(self, name: str, text: str) -> None:
        """Replaces the text of a field by way of the clipboard."""
        done = "const [text, done] = arguments; navigator.clipboard.writeText(text).then(() => done(true), done)"
        assert self.driver.execute_async_script(done, text) is True
        self[name].click()
        self[name].send_keys(Keys.CONTROL, "a")
        self[name].send_keys(Keys.CONTROL, "v")

    @property
    def clipboard(self) -> str:
        return self.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")

    def learn(self, text: str) -> None:
        """Writes a table and learns its law, with the columns as they are guessed."""
        self.choose("law-preset", "")
        self.write("law-text", text)
        self.wait(lambda: self.header() == text.splitlines()[0].split(","))
        self.run_law()

    def header(self) -> list[str]:
        return self.script("return [...document.querySelectorAll('#law-columns th')].map((one) => one.title)")

    def run_law(self) -> None:
        self.script("document.getElementById('law-result').replaceChildren()")
        self["law-run"].click()
        self.wait(lambda: self.all("#law-result > *"))

    @property
    def formulas(self) -> list[str]:
        """Formulas as they are typeset, left to right, and as they are read aloud."""
        return [one.get_attribute("aria-label") for one in self.all("#law-result math")]

    def shoot(self, name: str) -> None:
        """Saves a picture of the whole page, in build/screenshots."""
        width = self.script("return innerWidth")
        self.resize(width, 400)  # so that the height is that of the content
        self.resize(width, int(self.script("return document.documentElement.scrollHeight")))
        time.sleep(0.2)
        folder = Path(AXE).parent / "screenshots"
        folder.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(folder / f"{name}.png"))

    def faults(self) -> list[str]:
        """Returns the serious and critical faults that axe-core finds on the page as it is."""
        self.script(Path(AXE).read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "axe.run(document, {resultTypes: ['violations']}).then((found) => arguments[0](found.violations))"
        )
        return [
            f"{one['id']}: {one['help']}: {node['html']:.200} {node['failureSummary']}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    def note_requests(self) -> None:
        """Adds the addresses that were requested since the last time."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])

    def complaints(self) -> list[str]:
        """Returns errors of the console, as those of the content security policy are, since the last time."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture(scope="session")
def explorer() -> Iterator[Explorer]:
    with Explorer() as started:
        started.start()
        yield started


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    made.set_script_timeout(60)
    made.get("about:blank")
    made.get_log("performance")  # of the browser's own first page
    yield made
    made.quit()


@pytest.fixture
def page(driver: Any, explorer: Explorer) -> Iterator[Page]:
    """The page; afterwards, nothing was requested from elsewhere, and the console has no errors."""
    permissions = {"origin": explorer.address, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    driver.execute_cdp_cmd("Browser.grantPermissions", permissions)
    made = Page(driver, explorer.address)
    made.complaints()
    yield made
    made.note_requests()
    strangers = [url for url in made.requests if not url.startswith((explorer.address, "about:", "data:", "file:"))]
    assert made.requests
    assert strangers == []
    assert made.complaints() == []
