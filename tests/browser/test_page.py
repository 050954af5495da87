"""The page as a person uses it: laws from tables, their SQL in DuckDB, analogies, and the slider."""

from __future__ import annotations

import csv
import io
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

SIZES = (2, 4)


def table(header: str, draw: Any, result: Any, seed: int = 3) -> str:
    """Returns a table in long form, of sets that no preset has."""
    generator = random.Random(seed)
    lines = [header]
    for i in range(50):
        elements = [draw(generator) for _ in range(generator.randint(*SIZES))]
        ends = ",".join(repr(x) for x in result(elements))
        lines += [f"s{i},{','.join(map(repr, element))},{ends}" for element in elements]
    return "\n".join(lines) + "\n"


def shifted(elements: Sequence[Any]) -> tuple[float, ...]:
    return (2 * (math.prod(1 + x / 2 for (x,) in elements) - 1),)


def geometric(elements: Sequence[Any]) -> tuple[float, ...]:
    return (math.exp(sum(math.log(x) for (x,) in elements) / len(elements)),)


def center(elements: Sequence[Any]) -> tuple[float, ...]:
    mass = sum(m for m, _ in elements)
    return mass, sum(m * x for m, x in elements) / mass


TABLES = {
    "shifted": (
        table("set,x,result", lambda g: (round(g.uniform(-1, 4), 2),), shifted),
        "x∘y = x + y + 0.5·x·y",
        "x∘y=x+y+xy2",
    ),
    "geometric": (
        table("set,factor,average", lambda g: (round(g.uniform(0.5, 4), 2),), geometric),
        "M(x₁, …, xₙ) = exp(Σ log(x) / n)",
        "M(x₁,…,xₙ)=exp(∑log(xi)n)",
    ),
    "center": (
        table("body,m,x,mass,place", lambda g: (round(g.uniform(1, 9), 2), round(g.uniform(-5, 5), 2)), center),
        "m = Σ m, x = Σ(m·x) / m",
        "m=∑m,x=∑mxm",
    ),
}


_generator = random.Random(0)
_PAIRS = [(_generator.random(), _generator.random()) for _ in range(60)]
WITHOUT_LAW = "a,b,y\n" + "".join(f"{a},{b},{a + 3 * b}\n" for a, b in _PAIRS)


@pytest.mark.parametrize("name", TABLES)
def test_a_pasted_table_becomes_a_law_and_its_sql_runs(name: str, page: Any, tmp_path: Path) -> None:
    text, formula, typeset = TABLES[name]
    page.open("laws")
    page.learn(text)
    assert page.formulas == [formula]
    math_element = page.all("#law-result math")[0]
    shown = "".join(math_element.get_attribute("textContent").split()).replace("\u2062", "")
    assert shown == typeset
    assert math_element.size["height"] > 15
    assert formula in page["law-status"].text
    charts = page.all("#law-result svg.chart")
    assert charts
    assert all(one.size["width"] > 200 for one in charts)

    page["code-copy"].click()
    page.wait(lambda: page["code-said"].text == "Copied.")
    query = page.clipboard
    assert query == page["code-text"].get_attribute("textContent")
    path = tmp_path / "examples.csv"
    path.write_text(text)
    rows = list(csv.reader(io.StringIO(text)))[1:]
    count = 2 if name == "center" else 1
    truth = {row[0]: [float(cell) for cell in row[-count:]] for row in rows}
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE examples AS FROM read_csv('{path}')")
        found = {row[0]: row[1:] for row in connection.execute(query).fetchall()}
    assert found.keys() == truth.keys()
    np.testing.assert_allclose([found[key] for key in truth], list(truth.values()), rtol=1e-9)

    page.choose("code-language", "python")
    scope: dict[str, Any] = {}
    exec(page["code-text"].get_attribute("textContent"), scope)
    first = [tuple(map(float, row[1 : 1 + count])) for row in rows if row[0] == "s0"]
    result = scope["aggregate"](first if count > 1 else [x for (x,) in first])
    np.testing.assert_allclose(result, truth["s0"] if count > 1 else truth["s0"][0], rtol=1e-9)
    page.choose("code-language", "latex")
    assert "\\" in page["code-text"].text


def test_numbers_are_combined_and_extrapolation_is_marked(page: Any) -> None:
    page.open("laws")
    page.learn(TABLES["shifted"][0])
    page.wait(lambda: "95 % interval" in page["try-outcome"].text)
    page.write("try-elements", "1, 2")
    page["try-elements"].send_keys(Keys.ENTER)
    page.wait(lambda: page["try-outcome"].text.startswith("4 ±"))
    assert "extrapolated" not in page["try-outcome"].text
    page.write("try-elements", "1000 2000")
    page["try-run"].click()
    page.wait(lambda: "extrapolated" in page["try-outcome"].text)
    page.write("try-elements", "one")
    page["try-run"].click()
    page.wait(lambda: page["try-outcome"].text == "elements: expected numbers, got 'one'")


def test_presets_and_dialects(page: Any) -> None:
    page.open("laws")
    page.wait(lambda: len(page.all("#law-preset option")) == 8)
    page.choose("law-preset", "resistors")
    page.wait(lambda: page.header() == ["circuit", "ohms", "parallel"])
    page.run_law()
    assert page.formulas == ["x∘y = (x^(−1) + y^(−1))^(−1)"]
    assert "parallel resistance" in page["law-result"].text
    duck = page["code-text"].text
    page.choose("code-dialect", "clickhouse")
    assert page["code-text"].text not in ("", duck)


def test_a_row_per_set_and_columns_that_are_chosen(page: Any) -> None:
    page.open("laws")
    lines = [f"{a},{b},{a * b},{a + b}" for a in range(1, 6) for b in range(1, 6)]
    page.choose("law-preset", "")
    page.write("law-text", "a,b,product,total\n" + "\n".join(lines))
    page.wait(lambda: len(page.header()) == 4)
    for column, role in {"product": "target", "total": "none"}.items():
        select = page.driver.find_element(By.CSS_SELECTOR, f'#law-columns select[data-column="{column}"]')
        select.find_element(By.CSS_SELECTOR, f'option[value="{role}"]').click()
    page.run_law()
    assert page.formulas == ["x∘y = x·y"]


def test_a_table_that_cannot_be_read_is_not_learned_with_the_columns_of_another(page: Any) -> None:
    page.open("laws")
    page.wait(lambda: page.header() == ["set", "x", "result"])
    page.write("law-text", "a,b,c\n1,2\n")
    page.run_law()  # at once, before the table is inspected
    assert "table, line 2: expected 3 cells, got 2" in page["law-result"].text
    page.write("law-text", "a,b,c\n" + "".join(f"{i},{i * i},{i + i * i}\n" for i in range(20)))
    page.run_law()
    assert page.formulas == ["x∘y = x + y"]


def test_a_refusal_is_a_sentence_with_what_to_try(page: Any) -> None:
    page.open("laws")
    page.learn(WITHOUT_LAW)
    message = page.all("#law-result .refusal")[0].text
    assert message.startswith("No law found\nThe results depend on the order of the elements")
    assert "; give elements signs or weights first" in message


def test_learning_can_be_canceled(page: Any) -> None:
    page.open("laws")
    page.wait(lambda: len(page.all("#law-preset option")) == 8)
    page.choose("law-preset", "no_law")
    page.wait(lambda: page.header() == ["set", "x", "median"])
    page["law-run"].click()
    page.wait(lambda: page["law-cancel"].is_displayed())
    assert "learning, " in page["law-status"].text
    page["law-cancel"].click()
    page.wait(lambda: page["law-status"].text == "Canceled.")
    page.learn(TABLES["shifted"][0])
    assert page.formulas == [TABLES["shifted"][1]]


def test_an_analogy_with_three_pairs(page: Any) -> None:
    page.open("analogies")
    page.write("word-pairs", "greece:athens\nspain:madrid\negypt:cairo")
    page.write("word-words", "france")
    page["word-run"].click()
    page.wait(lambda: page.all("#word-result .analogy"))
    for title in ("All words are candidates", "Given words excluded"):
        (shown,) = page.all(f'#word-result table[aria-label="{title}"]')
        rows = [row.text.split() for row in shown.find_elements(By.CSS_SELECTOR, "tbody tr")]
        assert rows[0][0] == rows[0][2] == "paris"
    assert "france: paris" in page["word-status"].text
    for picture in page.all("#word-result svg.words"):
        words = {one.get_attribute("textContent") for one in picture.find_elements(By.CSS_SELECTOR, "text")}
        assert {"greece", "athens", "france", "paris"} <= words
    assert len(page.all("#word-result svg.words")) == 2


def test_an_unknown_word_is_named(page: Any) -> None:
    page.open("analogies")
    page.write("word-words", "xyzzyx")
    page["word-run"].click()
    page.wait(lambda: "got 'xyzzyx'" in page["word-result"].text)


def test_the_slider_moves_the_marker_and_the_multiset(page: Any) -> None:
    page.open("multisets")
    page.wait(lambda: page.all("#set-result svg.chart"))
    first = page["set-shown"].text
    assert f"of {first} numbers" in page["set-result"].text
    page["set-size"].send_keys(Keys.END)
    assert page["set-shown"].text == "1000"
    page.wait(lambda: "of 1000 numbers" in page["set-result"].text)
    labels = [one.get_attribute("textContent") for one in page.all("#set-result svg.chart text")]
    assert "size 1000" in labels
    rows = {row.text.rsplit(" ", 3)[0]: row.text for row in page.all("#set-result tbody tr")}
    assert any(text.startswith("Law: x + y + 0.5·x·y") for text in rows.values())
    page["set-size"].send_keys(Keys.HOME)
    page.wait(lambda: "of 2 numbers" in page["set-result"].text)
    before = page.all("#set-result .plain-formula")[0].text
    page["set-draw"].click()
    page.wait(lambda: page.all("#set-result .plain-formula")[0].text != before)
    page.choose("set-operation", "sum")
    page.wait(lambda: "Error on x∘y = x + y by size" in page["set-result"].text)


def test_tabs_by_keyboard(page: Any) -> None:
    page.open("laws")
    page["tab-laws"].send_keys(Keys.ARROW_RIGHT)
    assert page["panel-analogies"].is_displayed()
    assert page.driver.switch_to.active_element.get_attribute("id") == "tab-analogies"
    page["tab-analogies"].send_keys(Keys.END)
    assert page["panel-multisets"].is_displayed()
    page["tab-multisets"].send_keys(Keys.ARROW_RIGHT)
    assert page["panel-laws"].is_displayed()
    assert not page["panel-multisets"].is_displayed()
    page["tab-laws"].send_keys(Keys.ARROW_LEFT)
    assert page["tab-multisets"].get_attribute("aria-selected") == "true"
    page["tab-multisets"].send_keys(Keys.TAB)
    assert page.driver.switch_to.active_element.get_attribute("id") == "panel-multisets"
