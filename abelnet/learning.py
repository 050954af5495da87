r"""Which law made these examples: the closed form, laws of few numbers, then curves, chosen on held-out examples.

One call learns from multisets and their results, with no settings:

1. the examples are divided, three quarters to fit, one quarter to judge;
2. :mod:`~abelnet.spectral` says how far they are from any group and from any semigroup;
3. :mod:`~abelnet.dictionary` fits every generator in sum and in product form; maximum and minimum are tried too;
4. where none of these explains the held-out examples, the curve of the closed form and :class:`~abelnet.AbelianNet` are
   trained by gradient descent;
5. of all that explain the held-out examples as well as the best does, the simplest wins, and is fitted to all examples.

If what wins explains little, or if a plain regression that knows no law explains the held-out examples much better, the
examples follow no such law, and this is said instead.
"""

from __future__ import annotations

__all__ = ["LawRegressor", "LearnedLaw", "NoLawError", "train_abelian_net"]

import copy
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from abelnet.bijections import Affine, Chain, Generator, SinhArcsinh
from abelnet.bijections.spline import spline_through
from abelnet.dictionary import Entry, fit_dictionary, number
from abelnet.errors import AbelnetError
from abelnet.examples import Examples, examples_of, sets_of, targets_of
from abelnet.files import replacing, write_text
from abelnet.laws import Constant, Law, Maximum, Minimum, Polynomial, Product, Sum
from abelnet.operation import AbelianNet, Operation
from abelnet.spectral import SpectralFit
from abelnet.stacking import fold_side_by_side
from abelnet.training import Settings, train

# Of more examples than these a random sample is fitted and judged; the closed form takes in all.
_SAMPLE = 20_000
_FITTED = 4_000
_HELD_OUT = 0.25
_EXACT = 1e-9
_LEAST_EXPLAINED = 0.8
_PENALTIES = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)


class NoLawError(AbelnetError):
    """Raised where examples follow no commutative, associative law; the message has the evidence."""


@dataclass
class Candidate:
    """A law that was tried, with its error on the held-out examples."""

    title: str
    complexity: int
    operation: Operation
    entry: Entry | None = None
    errors: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def mse(self) -> float:
        """Mean squared error on the held-out examples."""
        return float(self.errors.mean())

    @property
    def rmse(self) -> float:
        """Its root."""
        return math.sqrt(self.mse)

    def judge(self, examples: Examples) -> Candidate:
        """Takes down the squared errors on these examples."""
        self.errors = (
            self.entry.squared_errors(examples) if self.entry is not None else _squared_errors(self.operation, examples)
        )
        return self


@dataclass
class LearnedLaw:
    """The law of one dimension, and why it was chosen.

    Attributes:
        operation: The law, ready to use, in float64.
        title: What kind it is.
        formula: The law of two elements, as text.
        is_group: Whether every element has an inverse.
        identity: The element that changes nothing, if there is one.
        absorbing: The element that absorbs all others, if there is one.
        rmse: Error on held-out examples, before the law was fitted to all.
        explained: Part of the variance of the held-out results that it explains.
        tried: Title, number of parameters and held-out error of every law that was tried, best first.
        eigenvalues: How far the examples are from any group and from any semigroup.
        entry: The law as an entry of the dictionary, if it is one.
    """

    operation: Operation
    title: str
    formula: str
    is_group: bool
    identity: float | None
    absorbing: float | None
    rmse: float
    explained: float
    tried: list[tuple[str, int, float]]
    eigenvalues: dict[str, float]
    entry: Entry | None = None

    def summary(self) -> str:
        """The law in a few lines."""
        lines = [self.formula, f"kind: {'group' if self.is_group else 'semigroup'} ({self.title})"]
        lines.append(f"identity: {'none' if self.identity is None else number(self.identity)}")
        lines.append(f"absorbing element: {'none' if self.absorbing is None else number(self.absorbing)}")
        inverses = "of every element" if self.is_group else "of every element but the absorbing one"
        if isinstance(self.operation.law, Maximum | Constant):
            inverses = "none"
        lines.append(f"inverses: {inverses}")
        lines.append(f"held-out error: {self.rmse:.3g} (explains {100 * self.explained:.6g} % of the variance)")
        return "\n".join(lines)


class LawRegressor:
    r"""Learns the commutative, associative law behind a table of examples, in the manner of scikit-learn.

    Vectors are taken to be combined element by element: each dimension has a law of its own.

    Arguments:
        seed: Fixes which examples are held out.
        refuse: Whether to raise :class:`NoLawError` where the examples follow no law; otherwise the best is kept.
        polish: Whether to train curves by gradient descent where no law of few numbers fits.

    Attributes:
        laws_: A :class:`LearnedLaw` for each dimension, once fitted.

    Example:
        >>> X = [[0.1, 0.2], [0.05, -0.1, 0.3], [0.2, 0.2], [-0.1, 0.4], [0.3, 0.1]] * 4
        >>> y = [np.prod(1 + np.array(returns)) - 1 for returns in X]
        >>> model = LawRegressor().fit(X, y)
        >>> print(model.laws_[0].formula)
        x∘y = x + y + x·y
        >>> model.predict([[0.1] * 10]).round(4)
        array([1.5937])
    """

    def __init__(self, seed: int = 0, refuse: bool = True, polish: bool = True) -> None:
        self.seed, self.refuse, self.polish = seed, refuse, polish
        self._streams: list[_Stream] = []
        self._laws: list[LearnedLaw] | None = None
        self._flat = True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments, by name."""
        return {"seed": self.seed, "refuse": self.refuse, "polish": self.polish}

    def set_params(self, **parameters: Any) -> LawRegressor:
        """Sets arguments by name."""
        for name, value in parameters.items():
            if name not in self.get_params():
                raise AbelnetError(f"{name}: expected one of {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any, *, on_step: Callable[[str], None] | None = None) -> LawRegressor:
        """Learns from multisets and their results.

        Arguments:
            X: A list of arrays :math:`(n_i)` or :math:`(n_i, d)`, or a table :math:`(R, n)` or :math:`(R, n, d)` with
                NaN where there is no element.
            y: Results, :math:`(R)` or :math:`(R, d)`.
            on_step: Called with a word about each step.
        """
        self._streams, self._laws = [], None
        self.partial_fit(X, y)
        self._solve(on_step)
        return self

    def partial_fit(self, X: Any, y: Any) -> LawRegressor:
        """Takes in more examples; the law is worked out when it is next asked for."""
        sets = sets_of(X)
        if not sets:
            raise AbelnetError("X: expected at least one set, got none")
        dims = {one.shape[1] for one in sets}
        if len(dims) != 1:
            raise AbelnetError(f"X: expected elements of one number of dimensions, got {sorted(dims)}")
        (dim,) = dims
        target = targets_of(y, len(sets), dim)
        if not self._streams:
            self._streams = [_Stream(self.seed) for _ in range(dim)]
            self._flat = not isinstance(y, np.ndarray | Tensor) or y.ndim == 1
        if len(self._streams) != dim:
            raise AbelnetError(f"X: expected elements of {len(self._streams)} dimensions as before, got {dim}")
        for i, stream in enumerate(self._streams):
            stream.take(examples_of(sets, target, i))
        self._laws = None
        return self

    @property
    def sample_(self) -> list[Examples]:
        """The examples of each dimension that were taken in; of very many, a random sample."""
        return [stream.sample for stream in self._streams if stream.sample is not None]

    @property
    def laws_(self) -> list[LearnedLaw]:
        if self._laws is None:
            self._solve(None)
        assert self._laws is not None
        return self._laws

    def predict(self, X: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The result of each multiset, of any size: :math:`(R)` where results were numbers, else :math:`(R, d)`."""
        operations = [law.operation for law in self.laws_]
        sets = sets_of(X)
        if {one.shape[1] for one in sets} - {len(operations)}:
            raise AbelnetError(f"X: expected elements of {len(operations)} dimensions")
        rows = torch.from_numpy(np.concatenate([np.empty((0, len(operations))), *sets]))
        ends = torch.from_numpy(np.cumsum([0, *(len(one) for one in sets)]))
        with torch.no_grad():
            results = [operation.reduce(rows[:, i : i + 1], ptr=ends)[:, 0] for i, operation in enumerate(operations)]
        table: np.ndarray[Any, Any] = torch.stack(results, 1).numpy()
        return table[:, 0] if self._flat and len(operations) == 1 else table

    def score(self, X: Any, y: Any) -> float:
        """The part of the variance of the results that the law explains, at most 1."""
        found = self.predict(X)
        target = np.asarray(y, dtype=np.float64).reshape(found.shape)
        spread = float(((target - target.mean(0)) ** 2).sum())
        return 1 - float(((target - found) ** 2).sum()) / spread if spread > 0 else math.nan

    def save(self, folder: str | Path) -> None:
        """Writes the laws to a folder: ``model.json`` and ``model.safetensors``."""
        folder = Path(folder)
        content = [_describe(law) for law in self.laws_]
        tensors = {
            f"{i}.{name}": value.contiguous()
            for i, law in enumerate(self.laws_)
            for name, value in law.operation.state_dict().items()
        }
        with replacing(folder / "model.safetensors") as temporary:
            save_file(tensors or {"none": torch.zeros(1)}, temporary)
        write_text(folder / "model.json", json.dumps({"flat": self._flat, "laws": content}, indent=1) + "\n")

    @staticmethod
    def load(folder: str | Path) -> LawRegressor:
        """Reads what :meth:`save` wrote."""
        folder = Path(folder)
        if not (folder / "model.json").exists():
            raise AbelnetError(f"folder: expected model.json in {folder}, as abelnet learn writes it")
        content = json.loads((folder / "model.json").read_text())
        tensors = load_file(folder / "model.safetensors")
        model = LawRegressor()
        model._streams, model._flat = [], content["flat"]
        model._laws = [
            _restore(
                one, {name.partition(".")[2]: x for name, x in tensors.items() if name.partition(".")[0] == str(i)}
            )
            for i, one in enumerate(content["laws"])
        ]
        return model

    def _solve(self, on_step: Callable[[str], None] | None) -> None:
        if not self._streams:
            raise AbelnetError("predict: expected a fit before it")
        say = on_step or (lambda _: None)
        self._laws = [_learn(stream, self, say) for stream in self._streams]


class _Stream:
    """Examples of one dimension that come in parts: sums for the closed form, and a sample of all."""

    def __init__(self, seed: int) -> None:
        self.fits: list[SpectralFit] = []
        self.sample: Examples | None = None
        self.keys = torch.empty(0, dtype=torch.float64)
        self.generator = torch.Generator().manual_seed(seed)
        self.seen = 0

    def take(self, examples: Examples) -> None:
        if self.seen == 0:
            self.fits = [SpectralFit(logarithmic=logarithmic) for logarithmic in (False, True)]
        for fit in list(self.fits):
            # A part with a number that is not positive ends the logarithmic coordinates.
            if fit.logarithmic and min(examples.values.min(), examples.target.min()) <= 0:
                self.fits.remove(fit)
            elif len(torch.unique(torch.cat((examples.values[examples.mask], examples.target)))) > 1 or fit.count > 0:
                fit.partial_fit(examples)
        # Every example gets a random key, and those with the smallest are the sample: each has the same chance.
        keys = torch.rand(len(examples.target), generator=self.generator, dtype=torch.float64)
        joined = examples if self.sample is None else Examples.join([self.sample, examples])
        keys = torch.cat((self.keys, keys))
        kept = keys.argsort(stable=True)[:_SAMPLE].sort().values
        self.sample, self.keys = joined.take(kept), keys[kept]
        self.seen += len(examples.target)


def _learn(stream: _Stream, settings: LawRegressor, say: Callable[[str], None]) -> LearnedLaw:
    assert stream.sample is not None
    examples = _distinct(stream.sample)
    _check_enough(examples)
    if float(examples.target.max()) == float(examples.target.min()) and bool((examples.sizes > 1).all()):
        return _constant(float(examples.target[0]))
    fitted, held_out = examples.split(_HELD_OUT, settings.seed)
    fitted = fitted.take(torch.arange(min(len(fitted.target), _FITTED)))
    spread = float(held_out.target.var(unbiased=False)) or float(examples.target.var()) or 1.0
    exact = _EXACT**2 * spread

    say("closed form")
    curves, eigenvalues = _curves(stream, fitted, held_out)
    say("dictionary")
    plain = [_fixed(law).judge(held_out) for law in (Maximum(), Minimum())]
    if min(one.mse for one in plain) > exact:
        for one in fit_dictionary(fitted):
            plain.append(Candidate(one.title, one.complexity, one.operation(), one).judge(held_out))
            if plain[-1].mse <= exact:
                break
    tried = plain + curves
    best = min(tried, key=lambda one: one.mse)
    # A regression that knows no law and is exact where laws are not: training would not find one either.
    hopeless = best.mse > 0.01 * spread and _plain_regression(fitted, held_out, best.errors)[0] < 1e-6 * spread
    if settings.polish and not hopeless and (_simplest(tried) in curves or best.mse > 0.05 * spread):
        say("training")
        tried += [_polish(one, fitted).judge(held_out) for one in curves[:1]]
        net = train_abelian_net(fitted, held_out, seed=settings.seed).judge(held_out)
        straight = Candidate("group over a bent line", net.complexity - 1, Operation(net.operation.bijection, Sum()))
        tried += [net, _polish(straight, fitted).judge(held_out)]
    winner = _simplest(tried)
    explained = 1 - winner.mse / spread
    _check_law(winner, explained, fitted, held_out, eigenvalues, refuse=settings.refuse)
    entry = winner.entry
    if entry is not None:
        entry = entry.polish(examples.take(torch.arange(min(len(examples.target), 2 * _FITTED)))).rounded(examples)
        winner = Candidate(entry.title, entry.complexity, entry.operation(), entry, winner.errors)
    ranking = sorted(tried, key=lambda one: one.mse)
    identity, absorbing = _landmarks(winner.operation)
    return LearnedLaw(
        winner.operation,
        winner.title,
        _formula(winner),
        winner.operation.is_group,
        identity,
        absorbing,
        winner.rmse,
        explained,
        [(one.title, one.complexity, one.rmse) for one in ranking],
        eigenvalues,
        entry,
    )


def _distinct(examples: Examples) -> Examples:
    """Each example once: a copy on both sides of the division would judge a law by what it was fitted to."""
    rows = torch.cat((examples.values, examples.mask.double(), examples.target[:, None]), 1)
    _, where = np.unique(rows.numpy(), axis=0, return_index=True)
    return examples.take(torch.from_numpy(np.sort(where)))


def _check_enough(examples: Examples) -> None:
    several = int((examples.sizes > 1).sum())
    if several < 4:
        raise AbelnetError(
            f"X: expected at least 4 different sets of two or more elements, got {several}; a set of one element "
            "says nothing about how elements combine"
        )


def _simplest(tried: Sequence[Candidate]) -> Candidate:
    """The simplest whose squared errors do not exceed those of the best by more than their chance difference."""
    best = min(tried, key=lambda one: one.mse)
    floor = 1e-24 + best.mse * 1e-3

    def as_good(one: Candidate) -> bool:
        difference = one.errors - best.errors
        if not bool(difference.isfinite().all()):
            return False
        chance = 2 * float(difference.std()) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
        # A law that misses where the best is exact is not saved by chance.
        worse = one.mse > 4 * best.mse + 1e-18 * float(best.errors.max() + 1)
        return float(difference.mean()) <= (floor if worse else chance + floor)

    return min((one for one in tried if one is best or as_good(one)), key=lambda one: (one.complexity, one.rmse))


def _curves(stream: _Stream, fitted: Examples, held_out: Examples) -> tuple[list[Candidate], dict[str, float]]:
    """The curves of the closed form, best first, smoothed as the held-out examples like it; and the eigenvalues."""
    eigenvalues: dict[str, float] = {}
    found: dict[tuple[str, bool], Candidate] = {}
    for fit in stream.fits:
        if fit.count == 0:
            continue
        sample = SpectralFit(logarithmic=fit.logarithmic).partial_fit(fitted)
        refined = sample.refine(fitted)
        coordinate = "log x" if fit.logarithmic else "x"
        for one in (fit.solve()[0], refined.solve()[1]):
            key = f"{one.hypothesis}, {coordinate}"
            eigenvalues[key] = float(one.eigenvalue)
        for penalty in _PENALTIES:
            for one in refined.solve(penalty):
                try:
                    operation = one.operation()
                except AbelnetError:  # a curve with no rise left
                    continue
                complexity = 20 + fit.logarithmic + 2 * (one.hypothesis == "semigroup")
                kind = Candidate(f"{one.hypothesis} over a curve in {coordinate}", complexity, operation)
                kind.judge(held_out)
                if not kind.errors.isfinite().all():
                    continue
                old = found.get((one.hypothesis, fit.logarithmic))
                if old is None or kind.rmse < old.rmse:
                    found[one.hypothesis, fit.logarithmic] = kind
    return sorted(found.values(), key=lambda one: one.rmse), eigenvalues


def _polish(candidate: Candidate, examples: Examples) -> Candidate:
    """The same trained further on the results themselves, by L-BFGS."""
    operation = copy.deepcopy(candidate.operation)
    parameters = [p for p in operation.parameters() if p.requires_grad]
    optimiser = torch.optim.LBFGS(
        parameters,
        max_iter=100,
        tolerance_grad=1e-16,
        tolerance_change=1e-18,
        history_size=20,
        line_search_fn="strong_wolfe",
    )
    scale = float(examples.target.var())

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = (_fold(operation, examples) - examples.target).square().mean() / scale
        if loss.requires_grad and bool(loss.isfinite()):
            loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return Candidate(f"{candidate.title}, trained", candidate.complexity + 1, operation)


class _NetStack(nn.Module):
    """Networks of one dimension side by side."""

    def __init__(self, net: AbelianNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        return fold_side_by_side(self.net.bijection, self.net.law, values, mask)


def train_abelian_net(fitted: Examples, held_out: Examples, *, seed: int = 0, epochs: int = 600) -> Candidate:
    """Trains :class:`~abelnet.AbelianNet` from several starts at once, with either sign of γ, and keeps the best.

    Values and results are divided by their size; the loss grows as a logarithm far out, so that heavy tails do not
    drown the rest; the best is chosen on the held-out examples.

    Arguments:
        fitted: Examples to train on.
        held_out: Examples to choose by.
        seed: Fixes the starts.
        epochs: Number of steps, each on all examples.
    """
    size = float(fitted.values.abs().median()) or 1.0
    gammas = torch.tensor([0.0, 0.3, -0.3, 1.0, -1.0, 0.05, -0.05, 0.0], dtype=torch.float64)
    count = len(gammas)
    bent = SinhArcsinh(count, dtype=torch.float64)
    net = AbelianNet(Chain(Affine(count, dtype=torch.float64), bent, Affine(count, dtype=torch.float64)), gammas)
    with torch.no_grad():
        generator = torch.Generator().manual_seed(seed)
        bent.log_tail.uniform_(-0.7, 0.7, generator=generator)
    spread = float((fitted.target / size).std()) or 1.0

    def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        residual = (model(batch[0], batch[1]) - batch[2]) / (0.1 * spread)
        return torch.log1p(residual.square()).mean(-1)

    def side_by_side(examples: Examples) -> tuple[Tensor, ...]:
        parts = (examples.values / size, examples.mask, examples.target / size)
        return tuple(part.expand(count, *part.shape).contiguous() for part in parts)

    settings = Settings(epochs=epochs, batch_size=None, lr=0.03, schedule="cosine", validate_every=epochs)
    result = train(
        _NetStack(net),
        side_by_side(fitted),
        loss,
        settings=settings,
        seed=[seed] * count,
        validation=side_by_side(held_out),
    )
    assert result.validation is not None
    best = int(result.validation.nan_to_num(math.inf).argmin())
    return Candidate("trained AbelianNet", 30, _one_of(net, best, size))


@torch.no_grad()
def _one_of(net: AbelianNet, i: int, size: float) -> Operation:
    """The network of one dimension, on numbers as they come."""
    scale, one = Affine(1, dtype=torch.float64), _net_chain()
    scale.log_scale.fill_(-math.log(size))
    for target, source in zip(one.parameters(), net.bijection.parameters(), strict=True):
        target.copy_(source[i : i + 1])
    assert isinstance(net.law, Polynomial)
    return AbelianNet(Chain(scale, *one), float(net.law.gamma[i]))


def _net_chain() -> Chain:
    return Chain(Affine(1, dtype=torch.float64), SinhArcsinh(1, dtype=torch.float64), Affine(1, dtype=torch.float64))


def _fold(operation: Operation, examples: Examples) -> Tensor:
    return operation.reduce(examples.values[..., None], mask=examples.mask)[:, 0]


@torch.no_grad()
def _squared_errors(operation: Operation, examples: Examples) -> Tensor:
    return (_fold(operation, examples) - examples.target).square().nan_to_num(math.inf)


def _fixed(law: Law) -> Candidate:
    return Candidate(law.name.lower(), 0, Operation(Generator(1, "affine", dtype=torch.float64), law))


def _constant(value: float) -> LearnedLaw:
    operation = Operation(Generator(1, "affine", dtype=torch.float64), Constant(value))
    formula = f"x∘y = {number(value)}"
    return LearnedLaw(operation, "constant", formula, False, None, value, 0.0, 1.0, [("constant", 1, 0.0)], {})


def _check_law(
    winner: Candidate,
    explained: float,
    fitted: Examples,
    held_out: Examples,
    eigenvalues: dict[str, float],
    *,
    refuse: bool,
) -> None:
    """Raises where the winner explains little, or much less than a regression that knows no law."""
    if not refuse:
        return
    evidence = f"the best law, {winner.title}, explains {100 * explained:.3g} % of the variance of held-out results"
    values = ", ".join(f"{name}: {value:.2g}" for name, value in eigenvalues.items())
    plain, ours = _plain_regression(fitted, held_out, winner.errors)
    # Better by more than a chance difference, and by enough to matter.
    much_better = plain < 0.25 * ours and ours > 1e-6 * float(held_out.target.var())
    if much_better:
        evidence += f"; where a plain regression that knows no law errs by {plain**0.5:.3g}, it errs by {ours**0.5:.3g}"
    if much_better or not explained >= _LEAST_EXPLAINED:
        raise NoLawError(
            f"y: expected the results of a commutative, associative law; {evidence}; eigenvalues (0 for a law, about 1 "
            f"for none): {values}"
        )


def _plain_regression(fitted: Examples, held_out: Examples, errors: Tensor) -> tuple[float, float]:
    """Mean squared errors, on sizes with enough examples, of a regression for each size, and of the law."""
    plain, ours = [], []
    for size in sorted(set(fitted.sizes.tolist())):
        train_rows, test_rows = fitted.sizes == size, held_out.sizes == size
        if size < 2 or not test_rows.any():
            continue
        inputs, outputs = _features(fitted.take(train_rows), size), _features(held_out.take(test_rows), size)
        if len(inputs) < 3 * inputs.shape[1]:
            continue
        target = fitted.target[train_rows].numpy()
        weights = np.linalg.lstsq(inputs, target, rcond=1e-10)[0]
        plain.append((outputs @ weights - held_out.target[test_rows].numpy()) ** 2)
        ours.append(errors[test_rows].numpy())
    if not plain:
        return math.inf, 0.0
    return float(np.concatenate(plain).mean()), float(np.concatenate(ours).mean())


def _features(examples: Examples, size: int) -> np.ndarray[Any, Any]:
    """One, the elements in order, and the elements sorted."""
    values = examples.values[:, :size].numpy()
    return np.concatenate((np.ones((len(values), 1)), values, np.sort(values, 1)), 1)


@torch.no_grad()
def _landmarks(operation: Operation) -> tuple[float | None, float | None]:
    """The identity and the absorbing element, where the law has them among real numbers."""
    identity = absorbing = None
    if operation.law.identity(1) is not None:
        identity = _real(operation.identity())
    law = operation.law
    zero = None
    if isinstance(law, Polynomial) and not law.is_group:
        zero = -1 / law.gamma - law.shift
    elif isinstance(law, Product):
        zero = torch.zeros(1, dtype=torch.float64)
    if zero is not None:
        absorbing = _real(operation.bijection.inverse(zero.double()))
    return identity, absorbing


def _real(value: Tensor) -> float | None:
    result = float(value)
    return (0.0 if abs(result) < 1e-12 else result) if math.isfinite(result) else None


def _formula(candidate: Candidate) -> str:
    if candidate.entry is not None:
        return candidate.entry.formula()
    if isinstance(candidate.operation.law, Minimum):
        return "x∘y = min(x, y)"
    if isinstance(candidate.operation.law, Maximum):
        return "x∘y = max(x, y)"
    sign = "+" if candidate.operation.is_group else "·"
    if isinstance(candidate.operation.law, Polynomial) and not candidate.operation.is_group:
        return "x∘y = φ⁻¹(φ(x) + φ(y) + γ·φ(x)·φ(y)), φ a curve"
    return f"x∘y = φ⁻¹(φ(x) {sign} φ(y)), φ a curve"


def _describe(law: LearnedLaw) -> dict[str, Any]:
    """What is needed to build the law again, beside its tensors."""
    content = {key: value for key, value in asdict_shallow(law).items() if key not in ("operation", "entry")}
    content["entry"] = None if law.entry is None else asdict(law.entry)
    content["law"] = law.operation.law.name
    content["bijection"] = _describe_bijection(law.operation.bijection)
    return content


def asdict_shallow(law: LearnedLaw) -> dict[str, Any]:
    """The fields by name, as they are."""
    return {name: getattr(law, name) for name in law.__dataclass_fields__}


def _describe_bijection(bijection: nn.Module) -> list[Any]:
    if isinstance(bijection, Chain):
        return ["chain", [_describe_bijection(part) for part in bijection]]
    if isinstance(bijection, Generator):
        return ["generator", bijection.kind, [value.tolist() for value in bijection.values]]
    if isinstance(bijection, Affine | SinhArcsinh):
        return [type(bijection).__name__]
    return ["spline", bijection.raw_widths.shape[1]]  # type: ignore[index]


def _build_bijection(content: list[Any]) -> Any:
    match content:
        case ["chain", parts]:
            return Chain(*(_build_bijection(part) for part in parts))
        case ["generator", kind, values]:
            return Generator(1, kind, [value[0] for value in values], dtype=torch.float64)
        case ["Affine"]:
            return Affine(1, dtype=torch.float64)
        case ["SinhArcsinh"]:
            return SinhArcsinh(1, dtype=torch.float64)
        case ["spline", int(bins)]:
            points = np.arange(bins + 1.0)
            return list(spline_through(points, points))[1]
    raise AbelnetError(f"model.json: expected a known bijection, got {content!r}")


def _restore(content: dict[str, Any], tensors: dict[str, Tensor]) -> LearnedLaw:
    laws: dict[str, Callable[[], Law]] = {
        "Sum": Sum,
        "Product": Product,
        "Maximum": Maximum,
        "Minimum": Minimum,
        "Constant": lambda: Constant(0.0),
        "Polynomial": lambda: Polynomial(trainable="gamma"),
    }
    operation = Operation(_build_bijection(content.pop("bijection")), laws[content.pop("law")]())
    operation.load_state_dict(tensors)
    entry = content.pop("entry")
    if entry is not None:
        entry = Entry(entry["kind"], entry["form"], tuple(entry["theta"]), tuple(entry["coefficients"]))
    content["tried"] = [tuple(row) for row in content["tried"]]
    return LearnedLaw(operation=operation, entry=entry, **content)
