"""Analogies on the page: both models, both sets of candidates, and pictures."""

from __future__ import annotations

import json
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from abelnet.errors import AbelnetError
from abelnet.explore.tasks import run_task


def asked(pairs: list[str], words: list[str], **more: Any) -> dict[str, Any]:
    return run_task("analogies", json.dumps({"pairs": pairs, "words": words, **more}).encode(), lambda step: None)


def rows(table: dict[str, Any]) -> list[list[str]]:
    return [[cell["text"] for cell in row] for row in table["rows"]]


def test_three_pairs() -> None:
    found = asked(["France:Paris", "italy rome", "japan, tokyo"], ["Germany", "spain"])
    assert [one["word"] for one in found["words"]] == ["germany", "spain"]
    for one, answer in zip(found["words"], ("berlin", "madrid"), strict=True):
        everything, excluding = one["tables"]
        assert [column["heading"] for column in everything["columns"]] == ["WV", "score", "AGN", "score"]
        assert rows(excluding)[0][0] == rows(excluding)[0][2] == answer
        given = {"france", "paris", "italy", "rome", "japan", "tokyo", "germany", "spain"}
        assert not given & {cell for row in rows(excluding) for cell in row}
        assert one["word"] in {cell for row in rows(everything) for cell in row}
        assert len(rows(excluding)) == len(rows(everything)) == 5
        assert [picture["title"] for picture in one["pictures"]] == ["WV", "AGN"]
        for picture in one["pictures"]:
            labels = {element.text for element in fromstring(picture["svg"]).iter() if element.tag.endswith("}text")}
            assert {"france", "paris", one["word"], answer} <= labels


def test_one_pair_and_the_other_method() -> None:
    for method in ("3cosavg", "joined", "spelled"):
        found = asked(["man:woman"], ["king"], method=method)
        assert rows(found["words"][0]["tables"][1])[0][2] == "queen"


def test_notes() -> None:
    assert asked(["man:woman", "Man:Woman"], ["king"])["notes"] == ["1 repeated pair is used once"]


@pytest.mark.parametrize(
    ("pairs", "words", "message"),
    [
        ([], ["king"], "pairs: expected 1 to 50, got 0"),
        (["man:woman"], [], "words: expected 1 to 4, got 0"),
        (["man:woman"], ["king"] * 5, "words: expected 1 to 4, got 5"),
        (["man:woman"] * 51, ["king"], "pairs: expected 1 to 50, got 51"),
        (["man"], ["king"], "expected two words"),
        (["a b c"], ["king"], "expected two words"),
        (["<b>:paris"], ["king"], "expected a vocabulary word, got '<b>'"),
        (["man:woman"], ["<img src=x>"], "expected a vocabulary word"),
        (["man:woman"], ["man"], "expected an example other than man"),
    ],
)
def test_what_cannot_be_asked(pairs: list[str], words: list[str], message: str) -> None:
    with pytest.raises(AbelnetError, match=message):
        asked(pairs, words)
    with pytest.raises(AbelnetError, match="method: expected one of"):
        asked(["man:woman"], ["king"], method="magic")
