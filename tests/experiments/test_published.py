"""The figures of the paper."""

from __future__ import annotations

from abelnet.experiments.published import best_published, published
from abelnet.experiments.synthetic.data import OPERATIONS


def test_published_figures_add_up() -> None:
    for setting in ("all_candidates", "excluding_abc"):
        for title in ("BATS test", "Google"):
            table = published()["analogies"][title][setting]
            groups = [name for name in table if name[0].isupper() and name != "Overall" and not name[1:].isdigit()]
            for key in ("questions", "wv", "wv_mlp", "wv_agn"):
                assert table["Overall"][key] == sum(table[name][key] for name in groups)


def test_every_operation_has_figures() -> None:
    for name in OPERATIONS:
        best = best_published(name)
        for model in ("deepsets", "agn", "asn"):
            for part in ("small", "large"):
                assert 0 < best[part] <= published()["synthetic_rmse"][name][model][part]
