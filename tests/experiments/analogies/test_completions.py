"""Models of an experiment with several example pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

import abelnet
from abelnet import AbelnetError
from abelnet.experiments.analogies.completions import Completions, run_completions
from abelnet.experiments.analogies.experiment import AnalogyExperiment, run_analogies
from abelnet.words import WordVectors
from abelnet.words.methods import LRCos, ThreeCosAvg
from abelnet.words.shots import evaluate_methods, named_pairs


@pytest.mark.usefixtures("_units_here")
def test_methods_of_plain_vectors_and_of_each_model(data: tuple[str, str], tmp_path: Path) -> None:
    # One of the two pairs of Google is among the examples, the other way round.
    relation = next(Path(data[1]).glob("3_*/*.txt"))
    relation.write_text("girl\tboy/lad\n" + relation.read_text())
    run_analogies(AnalogyExperiment(*data, models=("wv", "several"), seeds=2, epochs=1), tmp_path)
    asked = Completions(shots=("1", "all"), methods=("3cosavg", "lrcos"))
    told: list[str] = []
    results = run_completions(tmp_path, asked, on_unit=told.append)
    assert told == [f"{pairs}, seed {seed}" for seed in (0, 1) for pairs in ("1 pair", "all pairs")]
    assert [(row["seed"], row["shots"]) for row in results["rows"]] == [(0, "1"), (0, "all"), (1, "1"), (1, "all")]

    vectors = WordVectors.load(data[0])
    model = abelnet.load(tmp_path / "models" / "several-1")
    methods = {"3cosavg wv": ThreeCosAvg(), "lrcos": LRCos(), "3cosavg several": ThreeCosAvg(model)}
    queries, examples = named_pairs(vectors, data[1], seed=1)
    expected = evaluate_methods(vectors, queries, examples, methods, shots=1, seed=1).rows()
    test, google = results["rows"][2]["tables"]
    assert test["title"] == "BATS test"
    assert test["questions"] == {row.name: row.questions for row in expected}
    assert list(test["correct"]) == list(methods)
    for row in expected:
        for setting, counts in row.correct.items():
            for method, count in counts.items():
                assert test["correct"][method][setting][row.name] == count

    assert google["title"] == "Google, leave-one-out"
    seen = [table["questions"]["pair seen in training"] for row in results["rows"] for table in row["tables"][1:]]
    pairs = named_pairs(vectors, data[1], seed=0)[1], examples
    girl, boy = (vectors.index_to_key.index(word) for word in ("girl", "boy"))
    known = [int(((one.words == girl) & (one.targets == boy)).any()) for one in pairs]
    assert seen == [known[0], known[0], known[1], known[1]]
    assert google["questions"]["pair seen in training"] + google["questions"]["pair not seen"] == 2
    for counts in google["correct"].values():
        for correct in counts.values():
            assert correct["pair seen in training"] + correct["pair not seen"] == correct["Overall"]


@pytest.mark.usefixtures("_units_here")
def test_it_resumes(data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_analogies(AnalogyExperiment(*data, models=("wv",), seeds=1), tmp_path)
    asked = Completions(shots=("1",), methods=("3cosavg",))
    first = run_completions(tmp_path, asked)["rows"]
    monkeypatch.setattr("abelnet.experiments.analogies.completions.evaluate_methods", None)
    assert run_completions(tmp_path, asked)["rows"] == first
    with pytest.raises(AbelnetError, match="or have the same settings"):
        run_completions(tmp_path, Completions(shots=("2",), methods=("3cosavg",)))


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match="shots: expected a number of at least 1, or all, got 'few'"):
        Completions(shots=("few",))
    with pytest.raises(AbelnetError, match=r"method: expected one of .*, got 'guess'"):
        Completions(methods=("guess",))
    with pytest.raises(AbelnetError, match=r"folder: expected results.json in .*; run abelnet analogies run first"):
        run_completions(tmp_path, Completions())
