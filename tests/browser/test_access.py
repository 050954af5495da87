"""Every tab and a report, in light and dark and at the width of a phone: nothing cut off, no serious fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from abelnet.engines.columns import Columns
from abelnet.engines.learning import learn_table
from abelnet.explore.presets import PRESETS
from abelnet.reporting.laws import write_law

LOOKS = {"light": (1280, False), "dark": (1280, True), "phone": (390, False), "phone-dark": (390, True)}


def fits(page: Any) -> bool:
    return page.script("return document.documentElement.scrollWidth <= innerWidth")


def check(page: Any, name: str) -> None:
    assert page.faults() == []
    page.shoot(name)
    assert fits(page)


def test_faults_are_found(page: Any) -> None:
    page.open("laws")
    page.script("document.getElementById('law-preset').labels[0].remove()")
    page.script("document.getElementById('law-about').style.color = getComputedStyle(document.body).backgroundColor")
    found = {fault.partition(":")[0] for fault in page.faults()}
    assert {"color-contrast", "select-name"} <= found


@pytest.mark.parametrize("look", LOOKS)
def test_laws(look: str, page: Any) -> None:
    width, dark = LOOKS[look]
    page.open("laws", width=width, dark=dark)
    page.wait(lambda: page.header() == ["set", "x", "result"])
    check(page, f"laws-empty-{look}")
    page.run_law()
    page.wait(lambda: page["try-outcome"].text)
    check(page, f"laws-{look}")


@pytest.mark.parametrize("look", LOOKS)
def test_vectors_and_a_refusal(look: str, page: Any) -> None:
    width, dark = LOOKS[look]
    page.open("laws", width=width, dark=dark)
    page.wait(lambda: len(page.all("#law-preset option")) == 8)
    page.choose("law-preset", "center_of_mass")
    page.wait(lambda: len(page.header()) == 7)
    page.run_law()
    page.wait(lambda: page["try-outcome"].text)
    page.script("for (const one of document.querySelectorAll('details')) one.open = true")
    check(page, f"laws-vectors-{look}")
    numbers = [(i * 37 % 101 / 10, i * 59 % 97 / 10) for i in range(60)]
    page.learn("a,b,y\n" + "".join(f"{a},{b},{a + 3 * b}\n" for a, b in numbers))
    page.script("for (const one of document.querySelectorAll('details')) one.open = true")
    check(page, f"laws-refusal-{look}")


@pytest.mark.parametrize("look", LOOKS)
def test_analogies(look: str, page: Any) -> None:
    width, dark = LOOKS[look]
    page.open("analogies", width=width, dark=dark)
    page["word-run"].click()
    page.wait(lambda: page.all("#word-result .analogy"))
    check(page, f"analogies-{look}")


@pytest.mark.parametrize("look", LOOKS)
def test_multisets(look: str, page: Any) -> None:
    width, dark = LOOKS[look]
    page.open("multisets", width=width, dark=dark)
    page.wait(lambda: page.all("#set-result svg.chart"))
    check(page, f"multisets-{look}")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of ``abelnet learn``."""
    found = {}
    for name in ("returns", "center_of_mass"):
        folder, preset = tmp_path_factory.mktemp(name), PRESETS[name]
        (folder / "table.csv").write_text(preset.text)
        columns = Columns(preset.columns[1], preset.columns[0], preset.columns[2])
        found[name] = write_law(learn_table(folder / "table.csv", columns), folder / "law", columns, "table.csv")
    return found


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ["returns", "center_of_mass"])
def test_reports(name: str, look: str, page: Any, reports: dict[str, Path]) -> None:
    width, dark = LOOKS[look]
    page.open("laws", width=width, dark=dark)
    page.driver.get(reports[name].as_uri())
    page.script("for (const one of document.querySelectorAll('details')) one.open = true")
    check(page, f"report-{name}-{look}")
