"""Candidate laws: each has a held-out error, and can be refitted to more examples."""

from __future__ import annotations

__all__ = ["CURVE", "NETWORK", "Candidate", "Curve", "Formula", "SmoothCurve", "Trained", "below", "magnitudes"]

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from abelnet.bijections import Even
from abelnet.discovery.entry import Entry
from abelnet.discovery.intervals import Ensemble, sigma_points
from abelnet.discovery.monotone import MonotoneFit
from abelnet.discovery.spectral import Spectral, SpectralFit
from abelnet.errors import AbelnetError
from abelnet.laws import CappedSum
from abelnet.multisets import Multisets
from abelnet.operation import Operation

CURVE, NETWORK = 20, 30
"""Complexity ranks of curves and networks: after every formula, networks last."""
# Curvature penalties of smooth curves; their search ends after this many that are worse than the best.
SMOOTHING, _WORSE = tuple(10.0**k for k in range(-2, -13, -1)), 2
# Loss where a law has no result, in variances of the results.
_IMPOSSIBLE = 1e12
# Penalties of their curves, in that of the curve: a smooth one is biased, and its uncertainty includes that.
_ROUGHER = (1.0, 0.03)
# A curve whose mean squared error is this many times that of most others is a fit that failed, as one with an absorbing
# element in another place.
_FAILED = 100


class Candidate:
    """Candidate law with its squared errors on held-out examples; the base class has nothing to fit.

    Arguments:
        title: Name in tables.
        operation: The law.
        complexity: Rank for model selection, which prefers the simplest of the laws that explain the examples equally
            well. For formulas, the number of parameters, plus one unless the family is affine; for curves and networks,
            whose many parameters are tied by smoothness, a rank and not a count.
    """

    def __init__(self, title: str, operation: Operation, complexity: int = 0) -> None:
        self.title, self.operation, self.complexity = title, operation, complexity
        self.errors = torch.empty(0)

    @property
    def name(self) -> str:
        """Name that people use for the law; empty if it has none."""
        return ""

    @property
    def parameters(self) -> int:
        """Number of fitted parameters."""
        return sum(parameter.numel() for parameter in self.operation.parameters() if parameter.requires_grad)

    @property
    def is_capped(self) -> bool:
        """Whether results stop at a bound."""
        return self.operation.law.unlimited is not self.operation.law

    @property
    def is_sound(self) -> bool:
        """Whether the operation has finite results, so that it can be saved and loaded."""
        try:
            self.operation.check_state()
        except AbelnetError:
            return False
        return True

    @property
    def mse(self) -> float:
        """Mean squared error on the held-out examples."""
        return float(self.errors.mean())

    @property
    def rmse(self) -> float:
        """Root mean squared error on the held-out examples."""
        return math.sqrt(self.mse)

    def results(self, examples: Multisets) -> Tensor:
        """Returns the result of each example, differentiable in its elements."""
        return _fold(self.operation, examples)

    @torch.no_grad()
    def squared_errors(self, examples: Multisets) -> Tensor:
        """Returns the weighted squared error of each example; infinite if the law has no result."""
        errors = (self.results(examples) - examples.targets).square()
        return (errors * examples.weights).nan_to_num(math.inf)

    def judge(self, examples: Multisets) -> Candidate:
        """Stores the squared errors on held-out examples."""
        self.errors = self.squared_errors(examples)
        return self

    def fit_to_all(self, examples: Multisets, fits: Mapping[str, SpectralFit]) -> Candidate:
        """Returns the law refitted to all examples, or itself if that does not fit them better.

        Arguments:
            examples: All examples, or a random sample if there are many.
            fits: The closed form over the whole stream, by coordinate.
        """
        found = self._refit(examples, fits)
        better = float(found.squared_errors(examples).mean()) <= float(self.squared_errors(examples).mean())
        return found if better and found.is_sound else self

    def ensemble(self, examples: Multisets, seed: int) -> Ensemble:
        """Returns laws of this kind that the examples hardly tell from it, whose spread is its uncertainty.

        Arguments:
            examples: The examples it was fitted to.
            seed: Random seed of resampled examples.
        """
        return Ensemble.even([self.operation], len(examples))

    def _refit(self, examples: Multisets, fits: Mapping[str, SpectralFit]) -> Candidate:
        return self


class Formula(Candidate):
    """Law with a generator of a parametric family.

    Arguments:
        entry: The law.
        even: Whether it is a law of magnitudes, which loses signs.
    """

    def __init__(self, entry: Entry, even: bool = False) -> None:
        title = f"{entry.title} of |x|" if even else entry.title
        super().__init__(title, entry.operation(even=even), entry.complexity + even)
        self.entry, self.even = entry, even
        # Before rounding.
        self._fit = entry

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def parameters(self) -> int:
        return self.entry.parameters

    def squared_errors(self, examples: Multisets) -> Tensor:
        return self.entry.squared_errors(magnitudes(examples) if self.even else examples)

    def fit_to_all(self, examples: Multisets, fits: Mapping[str, SpectralFit]) -> Candidate:
        # Not compared with the unrounded law: rounding may add an error that the examples cannot resolve.
        examples = magnitudes(examples) if self.even else examples
        fit = self.entry.polish(examples)
        found = Formula(fit.rounded(examples), self.even)
        found._fit = fit
        return found if found.is_sound else self

    def ensemble(self, examples: Multisets, seed: int) -> Ensemble:
        examples = magnitudes(examples) if self.even else examples
        found = [entry.operation(even=self.even) for entry in self._fit.neighbors(examples)]
        return Ensemble.even(found, len(examples) - self._fit.parameters)


class Curve(Candidate):
    """Law with a spline generator, found in closed form.

    Arguments:
        found: Solution of the closed form.
        penalty: Curvature penalty it was found with.
        even: Whether it is a law of magnitudes, which loses signs.
        bound: Result at which a group is capped, or None.
    """

    noun = "curve"
    resamples = 24
    """Resamples of the examples for the uncertainty of the curve."""

    def __init__(self, found: Spectral, penalty: float, even: bool = False, bound: float | None = None) -> None:
        rank = CURVE + (found.coordinate != "x") + 2 * (found.hypothesis == "semigroup") + even
        operation, coordinate, hypothesis = found.operation(), found.coordinate, found.hypothesis
        if bound is not None:
            with torch.no_grad():
                cap = operation.bijection(torch.tensor([bound], dtype=torch.float64))
            operation, hypothesis = Operation(operation.bijection, CappedSum(cap)), "capped sum"
        if even:
            operation = Operation(Even(operation.bijection), operation.law)
            coordinate = coordinate.replace("x", "|x|")
        super().__init__(f"{hypothesis} over a {self.noun} in {coordinate}", operation, rank)
        self.found, self.penalty, self.even, self.bound = found, penalty, even, bound

    def smoothed(self, examples: Multisets, held_out: Multisets) -> SmoothCurve | None:
        """Returns the smooth curve of this kind of law with the least held-out error, or None if there is none.

        Arguments:
            examples: Examples to fit.
            held_out: Examples to choose the penalty on.
        """
        try:
            fit = MonotoneFit(self._informative(examples), self.found)
        except AbelnetError:  # the curve is no start
            return None
        best, worse = None, 0
        for penalty in SMOOTHING:
            try:
                curve = SmoothCurve(fit.solve(penalty), penalty, self.even, self.bound)
            except AbelnetError:  # the curve is not strictly increasing in floating-point numbers
                continue
            curve.judge(held_out)
            worse = 0 if best is None or curve.mse < best.mse else worse + 1
            best = curve if worse == 0 and curve.mse < math.inf else best
            if worse == _WORSE:
                break
        return best

    def _informative(self, examples: Multisets) -> Multisets:
        """Returns the examples as the fit takes them: their magnitudes, and without those at the bound."""
        examples = magnitudes(examples) if self.even else examples
        return examples if self.bound is None else below(examples, self.bound)

    def _refit(self, examples: Multisets, fits: Mapping[str, SpectralFit]) -> Candidate:
        examples = self._informative(examples)
        if self.found.absorbing is not None:
            # Streamed sums only have poles on a grid; to refine a pole takes the examples themselves.
            fit = SpectralFit(coordinate=self.found.coordinate).partial_fit(examples).refine(examples)
        elif self.even or self.bound is not None:
            fit = SpectralFit(coordinate=self.found.coordinate).partial_fit(examples)
        else:
            fit = fits[self.found.coordinate]
        solve = fit.solve_sums if self.found.absorbing is None else fit.solve
        for one in solve(self.penalty):
            if (one.hypothesis, one.falling) == (self.found.hypothesis, self.found.falling):
                try:
                    return Curve(one, self.penalty, self.even, self.bound)
                except AbelnetError:  # the curve is not strictly increasing
                    break
        return self

    def ensemble(self, examples: Multisets, seed: int) -> Ensemble:
        generator = torch.Generator().manual_seed(seed)
        found = []
        for i in range(self.resamples):
            some = examples.take(torch.randint(len(examples), (len(examples),), generator=generator))
            curve = type(self)(self.found, self.penalty * _ROUGHER[i % len(_ROUGHER)], self.even, self.bound)
            # A fit of its own has other knots, so that the spread includes what a spline cannot follow.
            try:
                one = curve._refit(some, {self.found.coordinate: self._new_fit(some)})
            except AbelnetError:  # too few of the examples
                continue
            found += [one] if one is not curve else []
        if not found:
            return super().ensemble(examples, seed)
        errors = torch.stack([one.squared_errors(examples).mean() for one in found])
        usual = max(float(errors.quantile(0.25)), float(self.squared_errors(examples).mean()))
        kept = (errors <= _FAILED * usual).tolist()
        return Ensemble.even([one.operation for one, keep in zip(found, kept, strict=True) if keep], sum(kept))

    def _new_fit(self, examples: Multisets) -> SpectralFit:
        return SpectralFit(coordinate=self.found.coordinate).partial_fit(examples)


class SmoothCurve(Curve):
    """Law with a spline generator of many knots, fitted by monotone smoothing."""

    noun = "smooth curve"
    resamples = 12  # each takes a quarter of a second

    def _refit(self, examples: Multisets, fits: Mapping[str, SpectralFit]) -> Candidate:
        found = MonotoneFit(self._informative(examples), self.found).solve(self.penalty)
        try:
            return SmoothCurve(found, self.penalty, self.even, self.bound)
        except AbelnetError:  # the curve is not strictly increasing in floating-point numbers
            return self


class Trained(Candidate):
    """Curve or network trained by gradient descent on the error of the results."""

    _start: Curve | None = None

    @staticmethod
    def of(candidate: Candidate, examples: Multisets) -> Trained:
        """Trains the operation of a candidate further by L-BFGS on the squared errors of the results."""
        operation = _polished(candidate.operation, examples)
        found = Trained(f"{candidate.title}, trained", operation, candidate.complexity + 1)
        found._start = candidate if isinstance(candidate, Curve) else None
        return found

    def _refit(self, examples: Multisets, fits: Mapping[str, SpectralFit]) -> Candidate:
        found = Trained(self.title, _polished(self.operation, examples), self.complexity)
        found._start = self._start
        return found

    def ensemble(self, examples: Multisets, seed: int) -> Ensemble:
        # Many parameters of a curve are hardly determined by the examples; those of a network are few.
        if self._start is not None:
            return self._start.ensemble(examples, seed)

        @torch.no_grad()
        def predict(point: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            result: np.ndarray[Any, Any] = _fold(_moved(self.operation, point), examples).numpy()
            return result

        free = [parameter.detach().reshape(-1) for parameter in self.operation.parameters() if parameter.requires_grad]
        points = sigma_points(predict, torch.cat(free).numpy(), examples.targets.numpy())
        return Ensemble.even([_moved(self.operation, point) for point in points], len(examples) - self.parameters)


def below(examples: Multisets, bound: float) -> Multisets:
    """Returns the examples whose results are not at the bound: those at it are censored, and equal to nothing."""
    return examples.take(examples.targets != bound)


def magnitudes(examples: Multisets) -> Multisets:
    """Returns the examples with the magnitudes of their elements."""
    return Multisets(
        examples.values.abs(), examples.dim, ptr=examples.ptr, targets=examples.targets, weights=examples.weights
    )


@torch.no_grad()
def _moved(operation: Operation, point: np.ndarray[Any, Any]) -> Operation:
    """Returns the operation with these free parameters, in one row."""
    operation, start = copy.deepcopy(operation), 0
    for parameter in operation.parameters():
        if parameter.requires_grad:
            parameter.copy_(torch.from_numpy(point[start : start + parameter.numel()]).reshape(parameter.shape))
            start += parameter.numel()
    return operation


def _polished(operation: Operation, examples: Multisets) -> Operation:
    operation = copy.deepcopy(operation)
    start = copy.deepcopy(operation.state_dict())
    optimizer = torch.optim.LBFGS(
        [parameter for parameter in operation.parameters() if parameter.requires_grad],
        max_iter=60,
        tolerance_grad=1e-16,
        tolerance_change=1e-18,
        history_size=20,
        line_search_fn="strong_wolfe",
    )
    scale = float(examples.targets.var()) or 1.0

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = ((_fold(operation, examples) - examples.targets).square() * examples.weights).mean() / scale
        if not bool(loss.isfinite()):
            # The line search retreats from a large number, but not from NaN.
            return torch.full_like(loss, _IMPOSSIBLE)
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    if not all(bool(parameter.isfinite().all()) for parameter in operation.parameters()):
        operation.load_state_dict(start)
    return operation


def _fold(operation: Operation, examples: Multisets) -> Tensor:
    return operation.reduce(examples)[:, 0]
