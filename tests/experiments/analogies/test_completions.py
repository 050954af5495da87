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
    titles = ["3cosavg wv", "3cosavg several", "lrcos"]
    runs = [(seed, shots) for seed in (0, 1) for shots in ("1", "all")]
    assert told == [
        f"{title}, {'1 pair' if shots == '1' else 'all pairs'}, seed {seed}" for seed, shots in runs for title in titles
    ]
    found = {(row["method"], row["seed"], row["shots"]): row["tables"] for row in results["rows"]}
    assert list(found) == [(title, seed, shots) for seed, shots in runs for title in titles]

    vectors = WordVectors.load(data[0])
    model = abelnet.load(tmp_path / "models" / "several-1")
    methods = {"3cosavg wv": ThreeCosAvg(), "lrcos": LRCos(), "3cosavg several": ThreeCosAvg(model)}
    queries, examples = named_pairs(vectors, data[1], seed=1)
    for row in evaluate_methods(vectors, queries, examples, methods, shots=1, seed=1).rows():
        for method in methods:
            test = found[method, 1, "1"][0]
            assert test["title"] == "BATS test"
            assert test["questions"][row.name] == row.questions
            assert {setting: counts[row.name] for setting, counts in test["correct"].items()} == {
                setting: counts[method] for setting, counts in row.correct.items()
            }

    girl, boy = (vectors.index_to_key.index(word) for word in ("girl", "boy"))
    known = [named_pairs(vectors, data[1], seed=seed)[1] for seed in (0, 1)]
    is_seen = [int(((one.words == girl) & (one.targets == boy)).any()) for one in known]
    for (_, seed, _), (_, google) in found.items():
        assert google["title"] == "Google, leave-one-out"
        assert google["questions"]["pair seen in training"] == is_seen[seed]
        assert google["questions"]["pair seen in training"] + google["questions"]["pair not seen"] == 2
        for correct in google["correct"].values():
            assert correct["pair seen in training"] + correct["pair not seen"] == correct["Overall"]


@pytest.mark.usefixtures("_units_here")
def test_it_resumes_and_more_may_be_added(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_analogies(AnalogyExperiment(*data, models=("wv",), seeds=1), tmp_path)
    asked = Completions(shots=("1",), methods=("3cosavg",))
    (first,) = run_completions(tmp_path, asked)["rows"]
    both = run_completions(tmp_path, Completions(shots=("1",), methods=("similarity", "3cosavg")))["rows"]
    assert [row["method"] for row in both] == ["similarity", "3cosavg wv"]
    assert both[1] == first
    monkeypatch.setattr("abelnet.experiments.analogies.completions.evaluate_methods", None)
    assert run_completions(tmp_path, asked)["rows"] == [first]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match="shots: expected a number of at least 1, or all, got 'few'"):
        Completions(shots=("few",))
    with pytest.raises(AbelnetError, match=r"method: expected one of .*, got 'guess'"):
        Completions(methods=("guess",))
    with pytest.raises(AbelnetError, match=r"folder: expected results.json in .*; run abelnet analogies run first"):
        run_completions(tmp_path, Completions())
