"""Splines beside zuko's."""

from __future__ import annotations

import warnings

import torch

from abelnet import RationalQuadraticSpline

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import zuko


def test_spline_equals_zuko_inside_its_interval() -> None:
    ours = RationalQuadraticSpline(3, bins=7, bound=4.0, dtype=torch.float64)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(torch.randn_like(parameter))
        ours.raw_slopes[:, [0, -1]] = 0  # zuko's curve leaves its interval with slope 1
    theirs = zuko.transforms.MonotonicRQSTransform(
        ours.raw_widths, ours.raw_heights, ours.raw_slopes[:, 1:-1], bound=4.0, slope=1e-3
    )
    x = torch.linspace(-3.999, 3.999, 1000, dtype=torch.float64)[:, None].expand(-1, 3)
    y, log_det = theirs.call_and_ladj(x)
    torch.testing.assert_close(ours(x), y, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(ours.log_slope(x), log_det, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(ours.inverse(y), theirs.inv(y), rtol=1e-6, atol=1e-6)
    far = torch.tensor([[-1e3, 5.0, 1e6]], dtype=torch.float64)
    torch.testing.assert_close(ours(far), theirs(far))  # slopes of 1 outside: the tails meet too
