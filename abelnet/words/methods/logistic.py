r"""Logistic regressions of one set of vectors with several sets of weights, fitted together by Newton's method."""

from __future__ import annotations

__all__ = ["Classes", "fit_logistic"]

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

_STEPS = 100
_TOLERANCE = 1e-6


class Classes(NamedTuple):
    r"""Linear classifiers :math:`p_i(x) = \sigma(w_i \cdot x + \beta_i)`.

    Attributes:
        weight: The :math:`w_i`, with shape :math:`(n, d)`.
        bias: The :math:`\beta_i`, with shape :math:`(n)`.
    """

    weight: Tensor
    bias: Tensor


def fit_logistic(x: Tensor, labels: Tensor, weights: Tensor, strength: float = 1.0) -> Classes:
    r"""Fits :math:`n` logistic regressions with an L2 penalty, as scikit-learn's ``LogisticRegression`` does.

    .. math:: \min_{w, \beta} \frac{1}{2} \|w\|^2 + C \sum_j s_j \log(1 + e^{-y_j (w \cdot x_j + \beta)})

    Arguments:
        x: Vectors, with shape :math:`(m, d)`.
        labels: Whether each is in the class, with shape :math:`(m)`.
        weights: Weights :math:`s_j` of the vectors in each regression, with shape :math:`(n, m)`, some in each class.
        strength: The inverse of the penalty, :math:`C`.

    Example:
        >>> x = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]])
        >>> weight, bias = fit_logistic(x, x[:, 0] > 0, torch.ones(1, 4))
        >>> round(weight.item(), 4), abs(round(bias.item(), 4))
        (1.0066, 0.0)
    """
    features = torch.cat((x, x.new_ones(len(x), 1)), 1).double()
    signs = torch.where(labels, 1.0, -1.0).double()
    # Regressions with the same weights, such as those of queries that share all examples, are fitted once.
    distinct, index = torch.unique(strength * weights.double(), dim=0, return_inverse=True)
    penalty = features.new_ones(features.shape[1])
    penalty[-1] = 0
    fit = features.new_zeros(len(distinct), features.shape[1])
    if len(distinct) > 1:
        # Those that differ by a few vectors, as when one is left out, are close to the one of their mean weights.
        together = fit_logistic(x, labels, distinct.mean(0, keepdim=True))
        fit += torch.cat((together.weight, together.bias[:, None]), 1)

    def objective(fit: Tensor) -> Tensor:
        losses = distinct * F.softplus(-signs * (fit @ features.t()))
        value: Tensor = losses.sum(1) + (penalty * fit.square()).sum(1) / 2
        return value

    value = objective(fit)
    for _ in range(_STEPS):
        share = torch.sigmoid(-signs * (fit @ features.t()))
        gradient = -(distinct * signs * share) @ features + penalty * fit
        if bool((gradient.abs().amax(1) <= _TOLERANCE * (1 + value)).all()):
            break
        curvature = distinct * share * (1 - share)
        hessian = torch.einsum("nm,mi,mj->nij", curvature, features, features) + torch.diag(penalty)
        # Where all probabilities are 0 or 1 the bias has no curvature left.
        hessian[:, -1, -1] += 1e-9
        step = torch.linalg.solve(hessian, gradient)
        length = value.new_ones(len(fit), 1)
        for _ in range(30):
            trial = objective(fit - length * step)
            worse = trial > value
            if not bool(worse.any()):
                break
            length = torch.where(worse[:, None], length / 2, length)
        better = trial < value
        if not bool(better.any()):
            break  # as far as rounding allows
        fit = torch.where(better[:, None], fit - length * step, fit)
        value = torch.where(better, trial, value)
    fit = fit[index].to(x.dtype)
    return Classes(fit[:, :-1], fit[:, -1])
