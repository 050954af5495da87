"""Tab *Multisets*: models of one operation, learned from sets of 2 to 4 numbers, on sets of up to 1000.

Networks ship with the package; ``tools/train_rivals.py`` has trained them. The law is learned on first use.
"""

from __future__ import annotations

__all__ = ["MODELS", "Model", "build", "compare", "network", "results"]

import math
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import torch
from safetensors.torch import load
from torch import Tensor, nn

from abelnet.bijections import Monotonic
from abelnet.discovery.formula import number
from abelnet.errors import AbelnetError
from abelnet.experiments.synthetic.data import OPERATIONS, draw, learn
from abelnet.explore.tasks import Arguments
from abelnet.explore.views import chart_view, table_view
from abelnet.multisets import Multisets
from abelnet.nn.baselines import DeepSets
from abelnet.nn.sets import SetModel
from abelnet.operation import AbelianGroup, AbelianSemigroup, Operation
from abelnet.reporting.charts import Chart, Series
from abelnet.reporting.table import Cell, Column, Table

FILE = "rivals.safetensors"
_SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 50, 75, 100, 150, 250, 400, 650, 1000)
_LEAST, _MOST = _SIZES[0], _SIZES[-1]
_TRAINED_ON = (2, 4)
_SETS = 100  # of each size
_SHOWN = 8  # elements of a multiset
_FLOOR = 1e-17  # below rounding: a logarithmic axis has no 0
_WIDTH, _LINES = 16, 16


class Model(NamedTuple):
    """A model of the comparison: its title, what it is in a sentence, and how it is built."""

    title: str
    about: str
    build: Callable[[bool, int], nn.Module]


def _network(is_group: bool, seed: int) -> nn.Module:
    kind = AbelianGroup if is_group else AbelianSemigroup
    return kind(Monotonic(1, _LINES, _LINES, near=(1.0, 0.0), seed=seed))


def _pooling(name: str) -> Callable[[bool, int], nn.Module]:
    hidden = (_WIDTH, _WIDTH)
    return lambda is_group, seed: SetModel.build(
        1, 1, aggregation=name, channels=_WIDTH, encoder_hidden=hidden, decoder_hidden=hidden, seed=seed
    )


MODELS = {
    "network": Model("AGN or ASN", "the paper's network: a group or semigroup over a learned curve", _network),
    "deepsets": Model(
        "DeepSets", "sums features of the elements", lambda is_group, seed: DeepSets(1, 3, _WIDTH, _WIDTH, seed=seed)
    ),
    "mean": Model("Mean pooling", "averages features of the elements", _pooling("mean")),
    "max": Model("Max pooling", "takes the largest of each feature", _pooling("max")),
}
"""Networks of the comparison, by name."""


def build(name: str, operation: str, seed: int = 0) -> nn.Module:
    """Returns a network before training.

    Arguments:
        name: Key of :data:`MODELS`.
        operation: Key of :data:`~abelnet.experiments.synthetic.data.OPERATIONS`.
        seed: Random seed.
    """
    return MODELS[name].build(OPERATIONS[operation].is_group, seed)


@torch.no_grad()
def results(model: nn.Module, sets: Multisets) -> Tensor:
    """Returns the results of a model on multisets, :math:`(B)`."""
    if isinstance(model, Operation):
        return model.reduce(sets)[:, 0]
    if isinstance(model, DeepSets):
        return model(*sets.padded(int(sets.sizes.amax())))[:, 0]  # type: ignore[no-any-return]
    return model(sets)[:, 0]  # type: ignore[no-any-return]


def network(name: str, operation: str) -> nn.Module:
    """Returns a trained network in double precision.

    Arguments:
        name: Key of :data:`MODELS`.
        operation: Key of :data:`~abelnet.experiments.synthetic.data.OPERATIONS`.
    """
    start, built = f"{operation}.{name}.", build(name, operation)
    tensors = load((resources.files("abelnet.explore") / FILE).read_bytes())
    built.load_state_dict({key.removeprefix(start): one for key, one in tensors.items() if key.startswith(start)})
    return built.double().eval()


@cache
def _trained(operation: str) -> dict[str, nn.Module]:
    """Returns the law and the networks of an operation, by title."""
    law = learn(operation).law
    found: dict[str, nn.Module] = {f"Law: {law.formula.partition('= ')[2]}": law.operation}
    for name, model in MODELS.items():
        title = ("AGN" if OPERATIONS[operation].is_group else "ASN") if name == "network" else model.title
        found[title] = network(name, operation)
    return found


@cache
def _errors(operation: str) -> dict[str, list[float]]:
    """Returns the error of each model at each size: the median error over the median size of results."""
    models = _trained(operation)
    errors: dict[str, list[float]] = {title: [] for title in models}
    for size in _SIZES:
        generator = torch.Generator().manual_seed(size)
        sets = draw(OPERATIONS[operation], _SETS, (size,), generator, torch.float64)
        for title, model in models.items():
            off = (results(model, sets) - sets.targets).abs().nan_to_num(math.inf)
            errors[title].append(max(_FLOOR, float(off.median() / sets.targets.abs().median())))
    return errors


def compare(arguments: Arguments, say: Callable[[str], None]) -> dict[str, Any]:
    """Returns the errors of all models by size, and their results on one random multiset of the chosen size."""
    operation = arguments.text("operation")
    if operation not in OPERATIONS:
        raise AbelnetError(f"operation: expected one of {', '.join(OPERATIONS)}, got {operation!r:.80}")
    size, seed = arguments.number("size", _LEAST, _MOST), arguments.number("seed", 0, 2**31)
    say("learning the law from 500 small sets")
    models = _trained(operation)
    say("measuring errors on sets of up to 1000 numbers")
    errors = _errors(operation)
    generator = torch.Generator().manual_seed(seed * (_MOST + 1) + size)
    drawn = draw(OPERATIONS[operation], 1, (size,), generator, torch.float64)
    return {
        "formula": OPERATIONS[operation].formula,
        "chart": chart_view(_chart(operation, errors, size)),
        "table": table_view(_table(models, drawn, size)),
        "elements": _elements(drawn.values[:, 0].tolist()),
        "truth": number(float(drawn.targets[0]), 8),
    }


def _chart(operation: str, errors: dict[str, list[float]], size: int) -> Chart:
    finite = [error for own in errors.values() for error in own if math.isfinite(error)]
    series = [Series(title, _SIZES, own) for title, own in errors.items()]
    series.append(Series(f"size {size}", [size, size], [min(finite), max(finite)], "dashed"))
    return Chart(
        f"Error on x∘y = {OPERATIONS[operation].formula} by size of the multiset",
        "size of the multiset (number of elements)",
        "relative error (1 is 100 %)",
        series,
        x_log=True,
        y_log=True,
        shaded=_TRAINED_ON,
        shaded_label="trained on these sizes",
    )


def _table(models: dict[str, nn.Module], drawn: Multisets, size: int) -> Table:
    truth = float(drawn.targets[0])
    found = {title: float(results(model, drawn)[0]) for title, model in models.items()}
    off = {title: abs(value - truth) / abs(truth) if truth else math.nan for title, value in found.items()}
    best = min((error for error in off.values() if not math.isnan(error)), default=math.nan)
    rows = [
        [Cell(title, off[title] == best), Cell(number(value)), Cell(_percent(off[title]), off[title] == best)]
        for title, value in found.items()
    ]
    rows.append([Cell("Truth"), Cell(number(truth)), Cell("")])
    columns = [Column("model"), Column("result", "right"), Column("relative error", "right")]
    return Table(f"Results on one random multiset of {size} numbers", columns, rows)


def _percent(error: float) -> str:
    if not math.isfinite(error):
        return "–"
    rounded = float(f"{100 * error:.2g}")  # 100 %, not 1e2 %
    return f"{number(rounded)} %"


def _elements(values: Sequence[float]) -> str:
    more = f", … ({len(values) - _SHOWN} more)" if len(values) > _SHOWN else ""
    return ", ".join(number(x, 3) for x in values[:_SHOWN]) + more
