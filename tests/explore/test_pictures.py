"""Pictures of words: labels inside, apart from each other, and escaped."""

from __future__ import annotations

import random
from xml.etree.ElementTree import fromstring

from abelnet.explore.pictures import Arrow, Point, draw_words

SVG = "{http://www.w3.org/2000/svg}"


def test_words_are_escaped_and_named() -> None:
    svg = draw_words("a < b", "two", [Point("<b>", 0, 0, "example"), Point("&", 1, 1, "example")], [Arrow(0, 1, True)])
    root = fromstring(svg)
    assert root.find(f"{SVG}title").text == "a < b"
    assert {one.text for one in root.findall(f"{SVG}text")} == {"<b>", "&"}
    assert len(root.findall(f"{SVG}line")) == 1


def test_labels_of_others_have_room() -> None:
    generator = random.Random(0)
    points = [Point("query", 0, 0, "query")]
    points += [Point(f"word{i}", generator.random(), generator.random(), "other") for i in range(100)]
    root = fromstring(draw_words("many", "", points, []))
    places = [(float(one.get("y")), one.get("text-anchor"), float(one.get("x"))) for one in root.findall(f"{SVG}text")]
    assert 10 < len(places) < 100  # some have none
    assert len(set(places)) == len(places)


def test_places_that_coincide() -> None:
    root = fromstring(
        draw_words("one", "", [Point("a", 1, 1, "query"), Point("b", 1, 1, "answer")], [Arrow(0, 1, False)])
    )
    assert len(root.findall(f"{SVG}text")) == 2
    assert root.find(f"{SVG}line") is None
