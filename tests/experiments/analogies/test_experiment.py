"""The analogy experiment, small: killed and resumed, searched, and its tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import killed_and_resumed
from typer.testing import CliRunner

import abelnet
from abelnet import AbelnetError, cli
from abelnet.experiments.analogies.experiment import AnalogyExperiment, run_analogies
from abelnet.reporting.analogies import analogy_tables, write_analogies
from abelnet.reporting.synthetic import published
from abelnet.words import WordVectors

RELATIONS = {"1_Inflectional": "I01 [noun - plural_reg]", "3_Encyclopedic": "E01 [country - capital]"}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


@pytest.fixture
def data(tmp_path: Path) -> tuple[str, str]:
    """A folder of BATS with two relations of 20 pairs, and a file of vectors in which each is an offset, bent."""
    generator = torch.Generator().manual_seed(0)
    words, rows = ["boy", "girl", "king", "queen"], [torch.randn(4, 10, generator=generator)]
    for i, (category, name) in enumerate(RELATIONS.items()):
        (tmp_path / "bats" / category).mkdir(parents=True)
        (tmp_path / "bats" / category / f"{name}.txt").write_text("".join(f"a{i}x{j}\tb{i}x{j}\n" for j in range(20)))
        first = torch.randn(20, 10, generator=generator)
        shift = torch.randn(10, generator=generator)
        words += [f"a{i}x{j}" for j in range(20)] + [f"b{i}x{j}" for j in range(20)]
        rows += [first, first + shift + 0.3 * first.square()]
    WordVectors(words, torch.cat(rows)).save(tmp_path / "vectors.txt")
    return str(tmp_path / "vectors.txt"), str(tmp_path / "bats")


def test_killed_and_resumed_it_comes_to_the_same_results(data: tuple[str, str], tmp_path: Path) -> None:
    options = ["--vectors", data[0], "--bats", data[1], "--seeds", "1", "--epochs", "5", "--jobs", "2"]
    options += [word for model in ("wv", "wv_agn", "anchored") for word in ("--model", model)]
    whole = killed_and_resumed(["analogies", "run", *options], tmp_path, ["parts/anchored-0.checkpoint"])
    rows = {row["model"]: row for row in whole["rows"]}
    assert list(rows) == ["wv", "wv_agn", "anchored"]
    assert rows["wv_agn"]["loss"] < -0.6
    table = rows["wv"]["tables"][0]
    assert table["title"] == "BATS test"
    assert table["questions"] == {
        "Overall": 24,
        "Inflectional": 12,
        "Encyclopedic": 12,
        "I01 noun - plural_reg": 12,
        "E01 country - capital": 12,
    }
    for name in ("whole", "killed"):
        assert not list((tmp_path / name / "parts").glob("*.checkpoint"))
    model = abelnet.load(tmp_path / "whole" / "models" / "wv_agn-0")
    assert model(*torch.randn(3, 2, 10)).shape == (2, 10)


def test_search_then_seeds(data: tuple[str, str], tmp_path: Path) -> None:
    experiment = AnalogyExperiment(data[0], data[1], models=("wv_mlp",), seeds=1, epochs=2, trials=2)
    told: list[str] = []
    results = run_analogies(experiment, tmp_path / "out", on_unit=told.append)
    assert told == ["search of WV+MLP", "WV+MLP, seed 0"]
    (row,) = results["rows"]
    assert 2 <= row["parameters"]["layers"] <= 6
    assert row["settings"]["weight_decay"] == row["parameters"]["weight_decay"]
    with pytest.raises(AbelnetError, match=r"expected .* to be empty or of the same settings"):
        run_analogies(AnalogyExperiment(data[0], data[1], epochs=3), tmp_path / "out")


def fake_results() -> dict[str, Any]:
    """Right answers of three models: 5, 1 and 9 of 10 in each row, of two seeds."""
    rows = []
    for seed in (0, 1):
        for model, correct in (("wv", 5), ("wv_mlp", 1), ("wv_agn", 9 - seed), ("anchored", 9)):
            tables = []
            for title, names in (("BATS test", ["I01 noun - plural_reg"]), ("Google", ["family"])):
                categories = ["Overall", "Inflectional" if title != "Google" else "Semantic"]
                counts = dict.fromkeys([*categories, *names], correct)
                tables.append(
                    {
                        "title": title,
                        "sections": names,
                        "questions": dict.fromkeys(counts, 10),
                        "correct": {"all_candidates": counts, "excluding_abc": counts},
                    }
                )
            rows.append({"model": model, "seed": seed, "tables": tables, "seconds": 1.0})
    experiment = {"seeds": 2, "bats": "BATS", "vectors": None}
    return {"rows": rows, "experiment": experiment, "seconds": 4.0, "seconds_in_units": 8.0}


def test_tables_stand_beside_the_papers(tmp_path: Path) -> None:
    tables = analogy_tables(fake_results())
    assert len(tables) == 8  # two sets of questions, two settings, categories and sections
    main = tables[0]
    assert main.title == "BATS test, all words are candidates"
    assert main.heading[2:] == [
        "WV",
        "WV+MLP",
        "WV+AGN",
        "WV+AGN, anchored",
        "WV (paper)",
        "WV+MLP (paper)",
        "WV+AGN (paper)",
    ]
    assert [text for text, _ in main.rows[0]] == [
        "Overall",
        "10",
        "50.0 (50.0 – 50.0)",
        "10.0 (10.0 – 10.0)",
        "85.0 (80.0 – 90.0)",
        "90.0 (90.0 – 90.0)",
        "5.3",
        "17.0",
        "20.8",
    ]
    assert [best for _, best in main.rows[0]] == [False] * 5 + [True, False, False, True]
    assert tables[1].rows[0][0][0] == "I01 noun - plural_reg"
    assert tables[1].rows[0][-1] == ("7.8", True)  # 7 of 90, found by the code of the relation
    assert tables[6].rows[0][6] == ("73.6", True)  # on Google without a, b, c the paper's WV stays ahead
    (tmp_path / "results.json").write_text(json.dumps(fake_results()))
    printed = CliRunner().invoke(cli.app, ["analogies", "table", "--out", str(tmp_path)]).output
    assert "anchored" in printed
    assert "…" not in printed  # nothing is cut where there is no terminal
    paths = write_analogies(fake_results(), tmp_path)
    assert "Google News" in paths[0].read_text()
    assert "class=best" in paths[1].read_text()


def test_published_figures_add_up() -> None:
    for setting in ("all_candidates", "excluding_abc"):
        for title in ("BATS test", "Google"):
            table = published()["analogies"][title][setting]
            groups = [name for name in table if name[0].isupper() and name != "Overall" and not name[1:].isdigit()]
            for key in ("questions", "wv", "wv_mlp", "wv_agn"):
                assert table["Overall"][key] == sum(table[name][key] for name in groups)


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(AbelnetError, match=r"model: expected one of wv, .* got 'gpt'"):
        AnalogyExperiment(models=("gpt",))
    for name, least in (("seeds", 1), ("epochs", 1), ("limit", 1), ("trials", 0)):
        with pytest.raises(AbelnetError, match=f"^{name}: expected at least {least}, got {least - 1}$"):
            AnalogyExperiment(**{name: least - 1})  # type: ignore[arg-type]
    (tmp_path / "v.txt").write_text("up 0 1\ndown 0 -1\n")
    with pytest.raises(AbelnetError, match="vectors: expected words of Google pairs train among them, got none"):
        run_analogies(AnalogyExperiment(str(tmp_path / "v.txt"), models=("wv",), seeds=1), tmp_path / "out")
    result = CliRunner().invoke(cli.app, ["analogies", "table", "--out", str(tmp_path)])
    assert isinstance(result.exception, AbelnetError)
    assert "--trials" in CliRunner().invoke(cli.app, ["analogies", "run", "--help"]).output
