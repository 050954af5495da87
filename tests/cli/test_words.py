"""The commands ``abelnet words ...``."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from abelnet import cli
from abelnet.words import WordVectors, evaluate, google_questions
from abelnet.words.methods import LRCos, ThreeCosAvg
from abelnet.words.shots import evaluate_methods, named_pairs

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


def test_evaluate(tmp_path: Path) -> None:
    text = (resources.files("abelnet.words") / "data" / "questions-words.txt").read_text()
    (tmp_path / "family.txt").write_text(": family" + text.split(": family")[1].split("\n:")[0] + "\n")
    vectors = WordVectors.default(8000)
    expected = evaluate(vectors, google_questions(vectors, tmp_path / "family.txt"))
    vectors.save(tmp_path / "v.bin")
    options = ["--vectors", str(tmp_path / "v.bin"), "--questions", str(tmp_path / "family.txt")]
    outputs = ["--json", str(tmp_path / "out.json"), "--csv", str(tmp_path / "out.csv")]
    for _ in range(2):  # the second time from the cache
        done = RUNNER.invoke(cli.app, ["words", "evaluate", *options, *outputs])
        assert done.exit_code == 0, done.output
        assert "8,000 words of 100 dimensions" in done.output
        assert "Overall" in done.output
        assert str(expected.rows()[0].correct["excluding_abc"]["wv"]) in done.output
        assert json.loads((tmp_path / "out.json").read_text()) == expected.to_dict()
    assert len(list((tmp_path / "xdg" / "abelnet").iterdir())) == 1


def test_ask() -> None:
    done = RUNNER.invoke(cli.app, ["words", "ask", "King", "man", "woman", "--topn", "2"])
    assert done.exit_code == 0, done.output
    assert "queen" in done.output
    assert "monarch" in done.output
    done = RUNNER.invoke(cli.app, ["words", "ask", "frog", "--topn", "1"])
    assert done.exit_code == 0, done.output
    assert "frog" in done.output.splitlines()[0]


def test_complete(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("france:paris\nitaly rome\nfrance:paris\nxyzzy:paris\n")
    options = ["--pair", "Japan:Tokyo", "--pairs", str(tmp_path / "pairs.txt"), "--topn", "2"]
    outputs = ["--json", str(tmp_path / "out.json")]
    done = RUNNER.invoke(cli.app, ["words", "complete", "germany", "spain", *options, *outputs])
    assert done.exit_code == 0, done.output
    said = "3 example pairs, such as japan:tokyo", "1 repeated pair is used once", "1 pair has an unknown word"
    assert done.output.startswith("; ".join(said))
    assert "is an answer here" not in done.output
    assert "spelled wv" in done.output
    assert "spelled agn" in done.output
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["germany"]["spelled agn"][0][0] == "berlin"
    assert content["spain"]["spelled wv"][0][0] == "madrid"
    assert len(content["spain"]["spelled wv"]) == 2
    relation = ["--relation", "capital-world", "--method", "3cosavg", "--method", "similarity", "--model", "wv"]
    done = RUNNER.invoke(cli.app, ["words", "complete", "germany", *relation, "--topn", "1"])
    assert done.exit_code == 0, done.output
    assert "116 example pairs, such as london:england" in done.output
    assert "germany is an answer here, as in berlin:germany" in done.output
    assert "3cosavg wv" in done.output
    assert "similarity wv" not in done.output  # it depends on no model


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["germany"], "pairs: expected at least one example pair, got none; give some, such as france:paris"),
        (["germany", "--pair", "france:xyzzy"], "word: expected a vocabulary word, got 'xyzzy'"),
        (["xyzzy", "--pair", "france:paris"], "word: expected a vocabulary word, got 'xyzzy'"),
        (["germany", "--pair", "paris:paris"], "pair: expected two different words, got paris:paris"),
        (["germany", "--pair", "paris"], "pair: expected two words with a colon between them"),
        (["germany", "--pairs", "none.txt"], "none.txt: expected a question file, got: No such file"),
        (["germany", "--relation", "magic"], "relation: expected one of capital-common-countries"),
        (["germany", "--pair", "france:paris", "--method", "magic"], "method: expected one of similarity"),
    ],
)
def test_hostile_input_is_one_line(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["abelnet", "words", "complete", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_judge(tmp_path: Path) -> None:
    (tmp_path / "sat.txt").write_text("KS\nfrance paris n:n\nbread butter n:n\nitaly rome n:n\nb\n")
    arguments = ["words", "judge", str(tmp_path / "sat.txt"), "--model", "wv", "--model", "agn"]
    done = RUNNER.invoke(cli.app, [*arguments, "--json", str(tmp_path / "out.json")])
    assert done.exit_code == 0, done.output
    assert "SAT: accuracy (%)" in done.output
    (row,) = json.loads((tmp_path / "out.json").read_text())
    assert row == {"name": "SAT", "total": 1, "used": 1, "scores": {"wv": 100.0, "agn": 100.0}}


def test_evaluate_from_several_pairs(tmp_path: Path) -> None:
    vectors = WordVectors.default(8000)
    queries, examples = named_pairs(vectors, "google")
    methods = {"3cosavg wv": ThreeCosAvg(), "lrcos": LRCos()}
    expected = evaluate_methods(vectors, queries, examples, methods, shots=5)
    options = ["--limit", "8000", "--method", "3cosavg", "--method", "lrcos", "--shots", "5"]
    outputs = ["--json", str(tmp_path / "out.json"), "--csv", str(tmp_path / "out.csv")]
    done = RUNNER.invoke(cli.app, ["words", "evaluate", *options, *outputs])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "out.json").read_text()) == expected.to_dict()
    assert "excluding_query,lrcos" in (tmp_path / "out.csv").read_text()
    assert "all but the query" in done.output


def test_convert(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("Up 0 2\nup 1 1\n")
    done = RUNNER.invoke(
        cli.app, ["words", "convert", str(tmp_path / "v.txt"), str(tmp_path / "v.bin.gz"), "--lower", "--normalise"]
    )
    assert done.exit_code == 0, done.output
    assert "1 words dropped that differ from others only by case" in done.output
    again = WordVectors.load(tmp_path / "v.bin.gz")
    assert again.index_to_key == ["up"]
    assert again["up"].tolist() == [0, 1]


def test_an_error_of_the_caller_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["abelnet", "words", "ask", "xyzzy", "man", "woman"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert "expected a vocabulary word, got 'xyzzy'" in capsys.readouterr().err
