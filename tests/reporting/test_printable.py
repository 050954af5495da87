"""Text of users on a terminal."""

from __future__ import annotations

import unicodedata

import pytest

from abelnet.reporting.printable import printable


@pytest.mark.parametrize(
    "text", ["x [mm]", "v [/s]", "größe", "温度 :smile:", "C:\\new\\table", "می\u200cخواهم", "👩\u200d🔬"]
)
def test_plain_text_stays(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b]0;title\x07", r"a\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("a\nb\tc\rd\x7f", r"a\nb\tc\rd\x7f"),
        ("abc\u202ecba\u2066x\u200f", r"abc\u202ecba\u2066x\u200f"),
        ("line\u2028line", r"line\u2028line"),
        ("caf\udce9", r"caf\udce9"),
    ],
)
def test_control_characters_are_shown(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_nothing_unsafe_is_left() -> None:
    every = "".join(map(chr, range(0x11_0000)))
    left = {unicodedata.category(c) for c in printable(every)} & {"Cc", "Cs", "Zl", "Zp"}
    assert not left
    assert {c for c in printable(every) if unicodedata.category(c) == "Cf"} == {"\u200c", "\u200d"}
