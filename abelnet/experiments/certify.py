r"""Error of a learned operation by multiset size: measured, certified by our bound, and by the paper's.

For groups, at each size :math:`b`:

- *measured*: the largest error over random multisets, a lower bound of the worst case;
- *ours*: the smaller of :func:`~abelnet.generator_bound` and :func:`~abelnet.merge_bound`;
- *Theorem 3*: with exact Lipschitz constants on the range that is reached, and with the error up to size 4 on all
  intermediate results of its proof, which is itself certified by a generator bound.

For semigroups, for which the paper has no bound, *ours* is the generator bound in log space, for elements bounded away
from the absorbing one and results within the stated range; multisets outside it are not measured.
"""

from __future__ import annotations

__all__ = ["TRUTHS", "Certificate", "CertificateRow", "certify", "certify_model", "train_synthetic"]

import copy
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from abelnet.bijections import Affine, Generator
from abelnet.checks import check_count
from abelnet.discovery.estimator import LawRegressor
from abelnet.discovery.vectors.report import LearnedVectorLaw
from abelnet.errors import AbelnetError
from abelnet.experiments.synthetic.comparison import MODELS, squared_error, stack_data
from abelnet.experiments.synthetic.data import OPERATIONS, make_dataset
from abelnet.laws import Polynomial, Product, Sum
from abelnet.operation import Operation
from abelnet.training.loop import Settings, train
from abelnet.verify.certificates import assumed_bound, generator_bound, merge_bound, reach, size_bound
from abelnet.verify.curves import Curve


def _line() -> Affine:
    return Affine(1, dtype=torch.float64)


# The operations of the synthetic experiment with their generators.
TRUTHS: dict[str, Operation] = {
    "sum": Operation(_line(), Sum()),
    "sum_plus_one": Operation(_line(), Polynomial(0.0, 1.0)),
    "cbrt": Operation(Generator(1, "power", [3.0], dtype=torch.float64), Sum()),
    "product": Operation(_line(), Product()),
    "shifted_product": Operation(_line(), Polynomial(0.5)),
}
SIZES = (2, 3, 4, 6, 10, 20, 50, 100, 200, 500, 1000)
_ELEMENTS = (-5.0, 5.0)  # of the synthetic experiment
_CHECKED = 4  # the largest size of the training data
_CHUNK = 1 << 19


@dataclass(frozen=True)
class CertificateRow:
    """One size: largest measured error, our bound and that of Theorem 3; None if there is none."""

    size: int
    measured: float | None
    ours: float
    paper: float | None


@dataclass(frozen=True)
class Certificate:
    """Rows by size, with notes on what is proved and what is sampled."""

    title: str
    rows: list[CertificateRow]
    notes: list[str]


def train_synthetic(
    name: str,
    *,
    seed: int = 0,
    groups: int = 16,
    units: int = 16,
    epochs: int = 1000,
    on_epoch: Callable[[], None] | None = None,
) -> Operation:
    """Trains the paper's min-max network on an operation of the synthetic experiment, as a group or a semigroup.

    Arguments:
        name: The operation, a key of :data:`~abelnet.experiments.synthetic.data.OPERATIONS`.
        seed: Random seed of data and initialization.
        groups: Number of groups of lines.
        units: Number of lines in each group.
        epochs: Number of training epochs.
        on_epoch: Called after each epoch.
    """
    data = make_dataset(name, seed, dtype=torch.float32)
    kind = MODELS["agn" if OPERATIONS[name].is_group else "asn"]
    model = kind.build({"groups": groups, "units": units, "start": "numbers"}, seed)
    stack = kind.stack([model])
    train(
        stack,
        stack_data([data.train]),
        squared_error,
        settings=Settings(epochs=epochs),
        seed=[seed],
        on_epoch=None if on_epoch is None else lambda *_: on_epoch(),
    )
    stack.unstack([model])
    assert isinstance(model, Operation)
    return model.double().requires_grad_(False)


def certify(
    operation: Operation,
    truth: Operation | None = None,
    *,
    size: int = 1000,
    elements: tuple[float, float] = _ELEMENTS,
    epsilon: float | None = None,
    sets: int = 10_000,
    seed: int = 0,
    title: str = "Certificate",
    on_size: Callable[[int], None] | None = None,
) -> Certificate:
    """Measures and bounds the error of a one-dimensional operation by multiset size.

    Arguments:
        operation: The learned operation.
        truth: The true operation. If None, nothing is measured and the bounds depend on ``epsilon``.
        size: Largest size.
        elements: Range of the elements.
        epsilon: Error up to size 4; not used if the truth is given.
        sets: Number of multisets measured at each size.
        seed: Random seed of the multisets.
        title: Title of the table.
        on_size: Called with each completed size.

    Example:
        >>> table = certify(TRUTHS["cbrt"], TRUTHS["cbrt"], size=4, sets=100)
        >>> max(row.measured for row in table.rows) < 1e-5
        True
    """
    size = check_count("size", size, 2)
    sizes = sorted({n for n in SIZES if n < size} | {size})
    operation = copy.deepcopy(operation).double()
    if truth is None:
        if epsilon is None:
            raise AbelnetError("epsilon: expected the error up to size 4, or the true operation, got neither")
        rows = [_assumed_row(operation, epsilon, n, elements) for n in sizes]
        notes = [
            f"proved if the error up to size {_CHECKED} is at most {epsilon:.3g}, which is assumed, and if all "
            "results stay in the range that the learned operation reaches",
            f"elements in [{elements[0]:g}, {elements[1]:g}]",
            "measured: nothing, since the true operation is unknown",
        ]
        if not operation.is_group:
            notes.append("Theorem 3: for groups only")
        if any(not math.isfinite(row.ours) for row in rows):
            reason = "" if operation.law.is_associative else ", or a mean of this size has no equal parts"
            notes.append(f"inf: results of this size have no finite range, a slope has no finite bound on it{reason}")
        return Certificate(title, rows, notes)
    kind = _Groups if operation.is_group else _Semigroups
    case = kind(operation, truth, elements, sets, seed)
    rows = []
    for n in sizes:
        rows.append(case.row(n))
        if on_size is not None:
            on_size(n)
    return Certificate(title, rows, case.notes)


def certify_model(
    model: str | Path,
    truth: str | None = None,
    *,
    size: int = 1000,
    epsilon: float | None = None,
    elements: tuple[float | None, float | None] = (None, None),
    sets: int = 10_000,
    seed: int = 0,
    epochs: int = 1000,
    on_step: Callable[[str], None] | None = None,
) -> list[Certificate]:
    """Certifies a law learned from a table, or an operation of the synthetic experiment, which is learned first.

    Arguments:
        model: Folder written by ``abelnet learn``, or a key of :data:`TRUTHS`.
        truth: The true operation, a key of :data:`TRUTHS`; known for a synthetic model. If unknown, the bounds
            depend on ``epsilon``, or else on the held-out error stored in the folder.
        size: Largest size.
        epsilon: Error up to size 4.
        elements: Range of the elements; where None, that of the examples of a learned law, or else −5 and 5.
        sets: Number of multisets measured at each size.
        seed: Random seed of data, training and multisets.
        epochs: Number of training epochs.
        on_step: Called with a description of each step.

    Returns:
        One certificate per dimension.
    """
    say = on_step or (lambda _: None)
    known = str(model) in TRUTHS and not Path(model).exists()
    name = str(model) if known and truth is None else truth
    if name is not None and name not in TRUTHS:
        raise AbelnetError(f"truth: expected one of {', '.join(TRUTHS)}, got {name!r}")
    true = None if name is None else TRUTHS[name]
    options: dict[str, Any] = {"size": size, "sets": sets, "seed": seed}
    options["on_size"] = lambda n: say(f"bounding: sizes up to {n:,} of {size:,}")
    if known:
        options["elements"] = _range(elements, _ELEMENTS)
        done = itertools.count(1)
        operation = train_synthetic(
            str(model), seed=seed, epochs=epochs, on_epoch=lambda: say(f"training: epoch {next(done):,} of {epochs:,}")
        )
        return [certify(operation, true, title=f"{OPERATIONS[str(model)].formula}, min-max network", **options)]
    if not Path(model).exists():
        raise AbelnetError(f"model: expected a folder, or one of {', '.join(TRUTHS)}, got {str(model)!r}")
    certificates = []
    for law in LawRegressor.load(model).laws_:
        if isinstance(law, LearnedVectorLaw):
            certificates.append(certify_vectors(law, size=size, epsilon=epsilon))
            continue
        assumed = law.rmse if epsilon is None else epsilon
        options["elements"] = _range(elements, _ELEMENTS if law.seen is None else law.seen.elements)
        certificate = certify(law.operation, true, epsilon=assumed, title=law.formula, **options)
        if true is None and epsilon is None:
            certificate.notes.append("ε is the RMSE on held-out examples, an estimate, not a worst case")
        certificates.append(certificate)
    return certificates


def certify_vectors(law: LearnedVectorLaw, *, size: int = 1000, epsilon: float | None = None) -> Certificate:
    """Bounds the error of a law on vectors by multiset size, for elements in the ranges of its examples.

    Arguments:
        law: The law.
        size: Largest size.
        epsilon: Error up to size 4, as the norm of a vector; that on held-out examples if None.
    """
    assumed = math.hypot(*law.rmse) if epsilon is None else epsilon
    if not law.ranges:
        raise AbelnetError("law: expected one with the ranges of its examples, got one without; learn it again")
    low, high = (torch.tensor([seen.elements[end] for seen in law.ranges], dtype=torch.float64) for end in (0, 1))
    sizes = sorted({n for n in SIZES if n < check_count("size", size, 2)} | {size})
    rows = []
    for n in sizes:
        region = _reached(law.operation, n, low, high)
        ours = paper = math.inf
        if region is not None:
            ours = merge_bound(law.operation, assumed, _CHECKED, n, region, samples=1).value
            paper = size_bound(law.operation, assumed, _CHECKED, n, region, samples=1).value
        rows.append(CertificateRow(n, None, ours, paper))
    notes = [
        f"proved if the error up to size {_CHECKED} is at most {assumed:.3g}, which is assumed, as the norm of a "
        "vector, and if all results stay in the box that the learned operation reaches",
        f"elements: {', '.join(f'{a:g} ≤ {name} ≤ {b:g}' for name, a, b in zip(law.names, low, high, strict=True))}",
        "measured: nothing, since the true operation is unknown",
    ]
    if any(not math.isfinite(row.ours) for row in rows):
        notes.append("inf: results of this size have no finite box, or a slope has no finite bound on it")
    if epsilon is None:
        notes.append("ε is the RMSE on held-out examples, an estimate, not a worst case")
    return Certificate(law.formula, rows, notes)


def _reached(operation: Operation, size: int, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor] | None:
    """Returns a box that contains elements and results of up to ``size`` elements; None if no finite one is known."""
    try:
        sums = operation.bijection.slope_bounds((low, high))
        ends = torch.minimum(sums.low, size * sums.low), torch.maximum(sums.high, size * sums.high)
        found = operation.bijection.inverse_slope_bounds(ends)
    except AbelnetError:  # no bounds are known
        return None
    region = torch.minimum(found.low, low), torch.maximum(found.high, high)
    return region if all(bool(end.isfinite().all()) for end in region) else None


def _range(wanted: tuple[float | None, float | None], default: tuple[float, float]) -> tuple[float, float]:
    low, high = (other if end is None else end for end, other in zip(wanted, default, strict=True))
    if not low < high:
        raise AbelnetError(f"elements: expected a range, got {low:g} to {high:g}")
    return low, high


class _Case:
    """An operation, the true one, and the multisets on which they are compared."""

    def __init__(
        self, operation: Operation, truth: Operation, elements: tuple[float, float], sets: int, seed: int
    ) -> None:
        self.operation, self.truth, self.elements, self.sets = operation, truth, elements, sets
        self.generator = torch.Generator().manual_seed(seed)


class _Groups(_Case):
    @property
    def notes(self) -> list[str]:
        low, high = self.elements
        return [
            f"elements in [{low:g}, {high:g}]",
            f"measured: the worst of {self.sets:,} random multisets; a sample, so the true worst case may be larger",
            "ours: proved from the two generators, in exact arithmetic; nothing is sampled",
            f"Theorem 3: proved, with ε up to size {_CHECKED} on all intermediate results (certified by our bound) and "
            "Lipschitz constants on the range that is reached (exact for a single curve)",
        ]

    def row(self, size: int) -> CertificateRow:
        own = generator_bound(self.operation, self.truth, size, self.elements)
        # The last merge of a balanced fold is of up to 4 results of this many elements.
        part = -(-size // _CHECKED)
        between = reach(self.truth, part, self.elements)
        epsilon = max(
            generator_bound(self.operation, self.truth, n, between).value for n in range(2, min(size, _CHECKED) + 1)
        )
        low, high = reach(self.truth, size, self.elements)
        region = (min(low - epsilon, own.learned[0]), max(high + epsilon, own.learned[1]))
        merged = merge_bound(self.operation, epsilon, _CHECKED, size, region).value
        paper = size_bound(self.operation, epsilon, _CHECKED, size, region).value
        return CertificateRow(size, self._measure(size), min(own.value, merged), paper)

    def _measure(self, size: int) -> float:
        low, high = self.elements

        def draw(count: int) -> Tensor:
            return low + (high - low) * torch.rand(count, size, generator=self.generator, dtype=torch.float64)

        return _worst(self.operation, self.truth, draw, size, self.sets)


class _Semigroups(_Case):
    def __init__(
        self, operation: Operation, truth: Operation, elements: tuple[float, float], sets: int, seed: int
    ) -> None:
        super().__init__(operation, truth, elements, sets, seed)
        self.curve = Curve.of(truth)
        if self.curve.form != "product":
            raise AbelnetError(f"truth: expected a semigroup like the operation, got {truth.law.name}")
        latent = self.curve.forward(torch.tensor(elements, dtype=torch.float64))
        most = float(latent.abs().max())
        if most <= 1:
            raise AbelnetError(f"elements: expected some with |ψ| above 1, got at most {most:g}")
        # The range of training multisets; and elements as far below the identity as others are above it.
        self.least, self.largest = 1 / most, most**_CHECKED
        self.sides = [max(float((sign * latent).max()), 0.0) for sign in (-1.0, 1.0)]

    @property
    def notes(self) -> list[str]:
        low, high = self.elements
        return [
            f"range: elements in [{low:g}, {high:g}] with |ψ| ≥ {self.least:.3g}, true results with |ψ| ≤ "
            f"{self.largest:.4g}, which is as far as multisets of {_CHECKED} reach",
            f"measured: the worst of {self.sets:,} random multisets in that range; a sample, so the true worst case "
            "may be larger",
            "ours: proved from the two generators in log space, in exact arithmetic; nothing is sampled",
            "Theorem 3: none for semigroups",
        ]

    def row(self, size: int) -> CertificateRow:
        bound = generator_bound(self.operation, self.truth, size, self.elements, least=self.least, largest=self.largest)
        return CertificateRow(
            size, _worst(self.operation, self.truth, self._drawer(size), size, self.sets), bound.value, None
        )

    def _drawer(self, size: int) -> Callable[[int], Tensor]:
        """Draws elements with log-magnitudes uniform around 0, and keeps multisets whose result is in range."""
        below, above = (
            torch.tensor(min(abs(math.log(max(side, self.least))), -math.log(self.least)), dtype=torch.float64)
            for side in self.sides
        )
        has_negative = torch.tensor(self.sides[0] > self.least)

        def draw(count: int) -> Tensor:
            found: list[Tensor] = []
            while sum(map(len, found)) < count:
                signs = torch.rand(count, size, generator=self.generator, dtype=torch.float64) < 0.5
                signs &= has_negative
                limit = torch.where(signs, below, above)
                logs = limit * (2 * torch.rand(count, size, generator=self.generator, dtype=torch.float64) - 1)
                inside = logs.sum(1).abs() <= math.log(self.largest)
                found.append((torch.where(signs, -1.0, 1.0) * logs.exp())[inside])
            latent = torch.cat(found)[:count]
            return self.curve.inverse(latent.reshape(-1)).reshape(count, size)

        return draw


@torch.no_grad()
def _worst(operation: Operation, truth: Operation, draw: Callable[[int], Tensor], size: int, sets: int) -> float:
    worst, left = 0.0, sets
    while left > 0:
        count = min(left, max(1, _CHUNK // size))
        values = draw(count)[..., None]
        worst = max(worst, float((operation.reduce(values) - truth.reduce(values)).abs().max()))
        left -= count
    return worst


def _assumed_row(operation: Operation, epsilon: float, size: int, elements: tuple[float, float]) -> CertificateRow:
    ours = assumed_bound(operation, epsilon, _CHECKED, size, elements)
    if not operation.is_group or not math.isfinite(ours):
        return CertificateRow(size, None, ours, None)
    return CertificateRow(
        size, None, ours, size_bound(operation, epsilon, _CHECKED, size, reach(operation, size, elements)).value
    )
