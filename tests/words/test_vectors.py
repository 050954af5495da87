"""Word vectors: every format read and written, lookups beside gensim's, and files that are damaged in every way."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch
from gensim.models import KeyedVectors
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from abelnet import AbelnetError
from abelnet.words import UnknownWordError, WordVectors, formats
from abelnet.words.cleaning import Report

WORDS = ["the", "King", "queen", "naïve", "日本", "a-b_c", "50/50_burger", "x"]
FORMATS = ["v.bin", "v.txt", "v.vec", "v.bin.gz", "v.txt.gz", "v.safetensors"]


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, torch.randn(len(WORDS), 5) * torch.logspace(-20, 20, len(WORDS))[:, None])


@pytest.mark.parametrize("name", FORMATS)
def test_round_trip_keeps_every_bit(name: str, vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / name)
    again = WordVectors.load(tmp_path / name)
    assert again.index_to_key == WORDS
    assert torch.equal(again.vectors, vectors.vectors)
    assert again.key_to_index == vectors.key_to_index
    torch.testing.assert_close(again.norms, vectors.norms)
    assert list(tmp_path.iterdir()) == [tmp_path / name]


@pytest.mark.parametrize("name", ["v.bin", "v.txt"])
def test_gensim_reads_what_we_write_and_we_what_it_writes(name: str, vectors: WordVectors, tmp_path: Path) -> None:
    binary = name.endswith(".bin")
    vectors.save(tmp_path / name)
    theirs = KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=binary)
    assert theirs.index_to_key == WORDS
    np.testing.assert_array_equal(theirs.vectors, vectors.vectors.numpy())
    theirs.save_word2vec_format(str(tmp_path / f"their_{name}"), binary=binary)
    ours = WordVectors.load(tmp_path / f"their_{name}", limit=5)
    assert ours.index_to_key == WORDS[:5]
    np.testing.assert_array_equal(ours.vectors.numpy(), theirs.vectors[:5])
    taken = WordVectors.from_gensim(theirs)
    assert taken.index_to_key == WORDS
    assert torch.equal(taken.vectors, vectors.vectors)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_words_and_numbers_survive(data: st.DataObject) -> None:
    letters = st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"])
    words = data.draw(st.lists(st.text(letters, min_size=1), min_size=1, max_size=20, unique=True))
    dim = data.draw(st.integers(1, 4))
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
    table = data.draw(st.lists(st.lists(numbers, min_size=dim, max_size=dim), min_size=len(words), max_size=len(words)))
    vectors = WordVectors(words, torch.tensor(table))
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:
            vectors.save(Path(folder, name))
            again = WordVectors.load(Path(folder, name))
            assert again.index_to_key == words
            assert torch.equal(again.vectors, vectors.vectors)


def test_glove_text_with_spaces_in_words_and_odd_line_ends(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"the 1 2 3\r\n. . . 4 5 6\nend 7 8 9 \n\n")
    vectors = WordVectors.load(tmp_path / "v.txt")
    assert vectors.index_to_key == ["the", ". . .", "end"]
    assert vectors.vectors.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_text_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = WordVectors([f"w{i}" for i in range(500)], torch.randn(500, 7))
    vectors.save(tmp_path / "v.txt")
    monkeypatch.setattr(formats, "_TEXT_PART", 100)
    again = WordVectors.load(tmp_path / "v.txt")
    assert again.index_to_key == vectors.index_to_key
    assert torch.equal(again.vectors, vectors.vectors)
    assert len(WordVectors.load(tmp_path / "v.txt", limit=123)) == 123
    text = (tmp_path / "v.txt").read_bytes().splitlines(keepends=True)
    text[300] = b"w299 1 2 three 4 5 6 7\n"
    (tmp_path / "v.txt").write_bytes(b"".join(text))
    with pytest.raises(AbelnetError, match=r"v.txt, line 301: expected a word and 7 numbers, got b'w299 1 2 three"):
        WordVectors.load(tmp_path / "v.txt")


def test_names_without_a_known_ending_are_told_by_content(vectors: WordVectors, tmp_path: Path) -> None:
    for kind in ("binary", "text"):
        vectors.save(tmp_path / kind, kind=kind)
        assert WordVectors.load(tmp_path / kind).report == Report(str(tmp_path / kind), kind, len(WORDS), 5)


def test_duplicates_case_and_odd_bytes_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(b"The 1 1\nthe 2 2\nThe 3 3\ncaf\xe9 4 4\nTHE 5 5\n")
    vectors = WordVectors.load(path)
    assert vectors.index_to_key == ["The", "the", "caf\ufffd", "THE"]
    assert vectors.report == Report(str(path), "text", 4, 2, duplicates=1, undecodable=1)
    lower = WordVectors.load(path, lower=True)
    assert lower.index_to_key == ["the", "caf\ufffd"]
    assert lower["the"].tolist() == [1, 1]
    assert lower.report == Report(str(path), "text", 2, 2, duplicates=1, undecodable=1, lowered=2)
    assert "2 words dropped that differ from others only by case" in str(lower.report)
    with pytest.raises(AbelnetError, match=r"v.txt, word 4: expected UTF-8, got b'caf\\xe9'"):
        WordVectors.load(path, strict=True)
    path.write_text("The 1 1\nthe 2 2\nThe 3 3\n")
    with pytest.raises(AbelnetError, match=r"v.txt, word 3: expected a new word, got 'The', which is word 1"):
        WordVectors.load(path, strict=True)
    assert not vectors.is_lower_case
    assert lower.is_lower_case


def test_cache_is_used_renewed_and_repaired(
    vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = tmp_path / "v.bin", tmp_path / "cache"
    vectors.save(path)
    first = WordVectors.load(path, cache=cache)
    (copy,) = cache.iterdir()
    assert torch.equal(first.vectors, vectors.vectors)
    with monkeypatch.context() as patch:
        patch.setattr("abelnet.words.vectors.read_entries", lambda *_, **__: pytest.fail("it was read again"))
        second = WordVectors.load(path, cache=cache)
        assert second.index_to_key == WORDS
        assert torch.equal(second.vectors, vectors.vectors)
        # What is mapped may be changed in memory; the file stays as it is.
        second.vectors.zero_()
        assert torch.equal(WordVectors.load(path, cache=cache).vectors, vectors.vectors)
        assert second.report == first.report
    assert len(WordVectors.load(path, cache=cache, limit=3)) == 3
    copy.write_bytes(copy.read_bytes()[:-3])
    assert torch.equal(WordVectors.load(path, cache=cache).vectors, vectors.vectors)
    WordVectors(["other"], torch.ones(1, 2)).save(path)
    assert WordVectors.load(path, cache=cache).index_to_key == ["other"]
    (tmp_path / "file").touch()  # where no folder can be made the vectors are read all the same
    assert WordVectors.load(path, cache=tmp_path / "file" / "cache").index_to_key == ["other"]
    with pytest.raises(AbelnetError, match=r"nothing.bin: expected a word vector file"):
        WordVectors.load(tmp_path / "nothing.bin", cache=cache)


def test_safetensors_limit_lower_half_precision_and_quantised(vectors: WordVectors, tmp_path: Path) -> None:
    vectors.save(tmp_path / "v.safetensors")
    part = WordVectors.load(tmp_path / "v.safetensors", limit=2, lower=True)
    assert part.index_to_key == ["the", "king"]
    assert torch.equal(part["king"], vectors["King"])
    vectors.save(tmp_path / "q.safetensors", quantise=True)
    quantised = WordVectors.load(tmp_path / "q.safetensors")
    scale = vectors.vectors.abs().amax(1, keepdim=True)
    assert ((quantised.vectors - vectors.vectors).abs() <= 0.51 / 127 * scale).all()


@pytest.mark.parametrize("quantise", [False, True])
def test_a_changed_copy_is_refused(quantise: bool, vectors: WordVectors, tmp_path: Path) -> None:
    path = tmp_path / "v.safetensors"
    vectors.save(path, quantise=quantise)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(AbelnetError, match=r"v\.safetensors: expected tensors with the checksum of the file"):
        WordVectors.load(path)


@pytest.mark.parametrize("name", ["vectors", "norms"])
def test_numbers_of_safetensors_are_finite(name: str, tmp_path: Path) -> None:
    tensors = {"vectors": torch.ones(1, 2), "norms": torch.ones(1), "words": torch.tensor([65], dtype=torch.uint8)}
    tensors[name].view(-1)[0] = torch.nan
    save_file(tensors, tmp_path / "v.safetensors")
    with pytest.raises(AbelnetError, match=f"expected finite {name}, got NaN or infinity"):
        WordVectors.load(tmp_path / "v.safetensors")


@pytest.mark.parametrize("name", ["v.bin", "v.txt", "v.safetensors", "v"])
def test_only_regular_files_are_read(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(AbelnetError, match="expected a regular file, got a folder or a device"):
        WordVectors.load(tmp_path / name)


def test_a_line_without_end_is_refused_at_once(tmp_path: Path) -> None:
    with (tmp_path / "v.txt").open("wb") as file:
        file.write(b"up 0 1\n")
        file.truncate(1 << 30)
    with pytest.raises(AbelnetError, match=r"v\.txt, line 2: expected at most 4,194,304 bytes, got"):
        WordVectors.load(tmp_path / "v.txt")


def test_a_small_file_does_not_fill_the_disk(tmp_path: Path) -> None:
    (tmp_path / "v.txt.gz").write_bytes(gzip.compress(b"a 0\n" * 2_000_000))
    with pytest.raises(AbelnetError, match=r"expected at most .* bytes, 50 times its size, got more"):
        WordVectors.load(tmp_path / "v.txt.gz")


def test_zero_vectors_quantise_and_compare(tmp_path: Path) -> None:
    vectors = WordVectors(["zero", "one"], torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
    vectors.save(tmp_path / "q.safetensors", quantise=True)
    assert torch.equal(WordVectors.load(tmp_path / "q.safetensors").vectors, vectors.vectors)
    assert vectors.most_similar("one") == [("zero", 0.0)]
    assert vectors.normalised()["zero"].tolist() == [0, 0]


def test_most_similar_is_gensims() -> None:
    words = [f"w{i}" for i in range(300)]
    table = torch.randn(300, 20) * torch.rand(300, 1)
    ours = WordVectors(words, table)
    theirs = KeyedVectors(20)
    theirs.add_vectors(words, table.numpy())
    calls = [
        (("w1",), {}),
        ((["w1", "w2"], ["w3"]), {"topn": 5}),
        (([("w1", 0.5), "w2"], [("w3", -2.0)]), {"topn": 3}),
        ((["w200", "w250"],), {"restrict_vocab": 50}),
        (([table[7].numpy(), "w9"],), {"topn": 4}),
    ]
    for positional, named in calls:
        expected = theirs.most_similar(*positional, **named)
        got = ours.most_similar(*positional, **named)
        assert [word for word, _ in got] == [word for word, _ in expected]
        assert [score for _, score in got] == pytest.approx([score for _, score in expected], abs=1e-5)
    assert "w5" in ours
    assert "W5" not in ours
    assert torch.equal(ours["w5", "w7"], table[[5, 7]])


def test_bad_calls(vectors: WordVectors, tmp_path: Path) -> None:
    message = r"^word: expected a vocabulary word, got 'king'; did you mean 'King'\?$"
    with pytest.raises(UnknownWordError, match=message):
        vectors["king"]
    with pytest.raises(KeyError):
        vectors["nothing"]
    with pytest.raises(AbelnetError, match="at least one word"):
        vectors.most_similar()
    with pytest.raises(AbelnetError, match=r"expected vectors of shape \(5,\), got \(3,\)"):
        vectors.most_similar([torch.ones(3)])
    with pytest.raises(AbelnetError, match=r"topn: expected at least 1, got 0"):
        vectors.most_similar("x", topn=0)
    with pytest.raises(AbelnetError, match=r"expected shape \(1, d\), one row per word, got \(2, 2\)"):
        WordVectors(["a"], torch.eye(2))
    with pytest.raises(AbelnetError, match=r"word 1: expected distinct words, got 'a', which is also word 2"):
        WordVectors(["a", "a"], torch.eye(2))
    with pytest.raises(AbelnetError, match=r"expected .bin, .txt, .vec or .safetensors, got v.doc"):
        vectors.save(tmp_path / "v.doc")
    with pytest.raises(AbelnetError, match="without whitespace"):
        WordVectors(["a b"], torch.ones(1, 2)).save(tmp_path / "v.bin")
    with pytest.raises(AbelnetError, match="without line breaks"):
        WordVectors(["a\nb"], torch.ones(1, 2)).save(tmp_path / "v.safetensors")
    with pytest.raises(AbelnetError, match="expected a gensim KeyedVectors, got dict"):
        WordVectors.from_gensim({})
    with pytest.raises(AbelnetError, match="kind: expected binary, text, safetensors or None, got 'csv'"):
        WordVectors.load(tmp_path / "v.bin", kind="csv")
    assert list(tmp_path.iterdir()) == []


NUMBERS = np.arange(3, dtype=np.float32).tobytes()
BAD_FILES = {
    "empty": ("v.bin", b"", "expected word vectors, got an empty file"),
    "empty text": ("v.txt", b"\n\n", "expected at least one word, got none"),
    "no header": ("v.bin", b"king " + NUMBERS, "byte 0: expected a header with the number of words"),
    "negative": ("v.bin", b"-1 3\nking " + NUMBERS, "byte 0: expected a header with the number of words"),
    "no dimensions": ("v.bin", b"1 0\nking ", "expected at least one word and one dimension, got 1 and 0"),
    "huge count": ("v.bin", b"1000000000000 3\nking " + NUMBERS, "expected 1,000,000,000,000 words of 3 dimensions"),
    "huge dim": ("v.bin", b"1 1000000000000\nking " + NUMBERS, "1,000,000,000,000 dimensions"),
    "huge both": ("v.bin", b"9" * 18 + b" " + b"9" * 18 + b"\n", "as in the header, got only"),
    "truncated": (
        "v.bin",
        b"2 3\nking " + NUMBERS + b"quite_long_word " + NUMBERS[:5],
        "byte 21: expected word 2 of 2",
    ),
    "too much": ("v.bin", b"1 3\nking " + NUMBERS + b"queen " + NUMBERS, "expected the end of the file after 1 words"),
    "no word": ("v.bin", b"2 3\nking " + NUMBERS + b"\n " + NUMBERS, r"byte 21: expected word 2, got b'\\n'"),
    "not finite": ("v.bin", b"1 1\nking " + np.float32(np.nan).tobytes(), r"word 1 \(b'king'\): expected finite"),
    "huge text count": ("v.txt", b"1000000000000 2\nking 1 2\n", "line 1: expected 1,000,000,000,000 words"),
    "huge text dim": ("v.txt", b"1 1000000000000\nking 1 2\n", "line 2: expected a word and 1000000000000 numbers"),
    "too few": ("v.txt", b"king 1 2\nqueen 1\n", "line 2: expected a word and 2 numbers, got b'queen 1'"),
    "one more and one less": (
        "v.txt",
        b"king 1 2 3\nqueen 1 2 3 4\nman 1 2\n",
        "line 2: expected a word and 3 numbers",
    ),
    "negative count": ("v.txt", b"-1 3\nking 1 2 3\n", "line 2: expected a word and 1 numbers"),
    "word alone": ("v.txt", b"king\n", "line 1: expected a word and its numbers"),
    "infinite": ("v.txt", b"king 1 2\nqueen 1 1e99\n", r"word 2 \(b'queen'\): expected finite"),
    "not gzip": ("v.txt.gz", b"\x1f\x8bnothing of the kind", "expected a complete gzip file"),
    "short gzip": ("v.txt.gz", gzip.compress(b"king 1 2\n" * 999)[:-9], "expected a complete gzip file"),
    "not safetensors": ("v.safetensors", b"king 1 2\n", "expected a valid safetensors file"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_damaged_files(case: str, tmp_path: Path) -> None:
    name, content, message = BAD_FILES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AbelnetError, match=message) as caught:
        WordVectors.load(tmp_path / name)
    assert name in str(caught.value)


def test_other_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "v.safetensors"
    words = torch.tensor(list(b"a\nb"), dtype=torch.uint8)
    bad = [
        ({"weight": torch.ones(2)}, "expected tensors vectors"),
        ({"vectors": torch.ones(3, 2), "words": words}, "expected a word for each of 3 vectors, got 2 words"),
        ({"vectors": torch.ones(2, 2), "words": words, "norms": torch.ones(3)}, "expected 2 norms in float32"),
        ({"vectors": torch.ones(2, 2, dtype=torch.int8), "words": words}, "or int8 ones with scales"),
        ({"vectors": torch.ones(2, 2, dtype=torch.long), "words": words}, "expected floating-point vectors"),
    ]
    for tensors, message in bad:
        save_file(tensors, path)
        with pytest.raises(AbelnetError, match=message):
            WordVectors.load(path)
    save_file({"vectors": torch.ones(2, 2).half(), "words": words}, path)
    assert WordVectors.load(path).vectors.dtype == torch.float32
    save_file({"vectors": torch.ones(1, 2), "words": words[:1] + 158}, path)
    with pytest.raises(AbelnetError, match=r"v.safetensors, byte 0 of the words: expected UTF-8"):
        WordVectors.load(path)["a"]


MUTATIONS = ["truncated", "flipped", "inserted", "removed", "header", "duplicated", "not UTF-8"]
EACH = 150
HEADERS = [b"1000000000000 5\n", b"40 999999999999\n", b"40 4\n", b"41 5\n", b"0 5\n", b"40\n", b"-3 5\n", b""]


def _mutated(content: bytes, kind: str, generator: np.random.Generator) -> bytes:
    place, size = int(generator.integers(len(content))), int(generator.integers(1, 50))
    if kind == "truncated":
        return content[:place]
    if kind == "inserted":
        return content[:place] + generator.bytes(size) + content[place:]
    if kind == "removed":
        return content[:place] + content[place + size :]
    if kind == "header":
        return HEADERS[generator.integers(len(HEADERS))] + content.partition(b"\n")[2]
    changed = bytearray(content)
    if kind == "flipped":
        for spot in generator.integers(len(content), size=generator.integers(1, 9)):
            changed[spot] ^= 1 << generator.integers(8)
    else:
        one, other = (f"w\u00f6rd{generator.integers(10, 40)}".encode() for _ in range(2))
        spot = max(content.find(one), 0)
        changed[spot : spot + len(one)] = other if kind == "duplicated" else b"\xff\xfe" + one[2:]
    return bytes(changed)


@pytest.mark.parametrize("name", FORMATS)
def test_a_thousand_mutations_never_crash(name: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    words = [f"wörd{i}" for i in range(40)]
    WordVectors(words, torch.randn(40, 5)).save(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    path = tmp_path / f"m_{name}"
    messages = []
    for kind in MUTATIONS * EACH:
        path.write_bytes(_mutated(content, kind, generator))
        try:
            vectors = WordVectors.load(path)
            assert len(vectors.index_to_key) == len(vectors.key_to_index) == len(vectors)
            assert vectors.vectors.numel() <= 4 * len(content)
        except AbelnetError as error:
            messages.append(str(error))
    assert len(messages) > 2 * EACH
    assert all(path.name in message for message in messages)


def test_embedded_vectors_are_those_of_the_checksums() -> None:
    folder = resources.files("abelnet.words") / "data"
    provenance = (folder / "PROVENANCE.txt").read_text()
    for name in ("glove.6B.100d.30k.safetensors", "questions-words.txt"):
        checksum = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert f"sha256:    {checksum}" in provenance
    vectors = WordVectors.default()
    assert (len(vectors), vectors.dim) == (30078, 100)
    assert vectors.is_lower_case
