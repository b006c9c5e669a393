"""Minima of functions without derivatives: one variable, and sums of squares.

``least_squares`` is the method of Levenberg and Marquardt with Marquardt's scaling (Marquardt,
"An Algorithm for Least-Squares Estimation of Nonlinear Parameters", SIAM J. 1963), and central
differences for the Jacobian. ``minimum_between`` is a golden-section search. Limits: both find a
local minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

_GOLDEN = (math.sqrt(5) - 1) / 2
#: Width of the bracket at the end, relative to its first width.
_BRACKET = 1e-10
_MAX_STEPS = 200
#: Relative changes of the sum of squares, and of the step, below which a minimum is reached.
_NO_GAIN, _NO_STEP = 1e-14, 1e-11
_MAX_DAMPING = 1e12

Residuals = Callable[[np.ndarray], np.ndarray]


def minimum_between(function: Callable[[float], float], low: float, high: float) -> float:
    """The argument at which a function with one minimum between two bounds is smallest."""
    end = (high - low) * _BRACKET
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > end:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2


def least_squares(residuals: Residuals, start: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the least sum of squared residuals, and the Jacobian there."""
    at = np.array(start, dtype=float)
    off = residuals(at)
    cost = float(off @ off)
    damping = 1e-3
    slopes = jacobian(residuals, at)
    for _ in range(_MAX_STEPS):
        normal, gradient = slopes.T @ slopes, slopes.T @ off
        scale = np.maximum(np.diag(normal), np.finfo(float).tiny)
        step = -np.linalg.lstsq(normal + damping * np.diag(scale), gradient, rcond=None)[0]
        tried = residuals(at + step)
        cost_tried = float(tried @ tried)
        if not cost_tried < cost:
            damping *= 4
            if damping > _MAX_DAMPING:
                break
            continue
        gain = cost - cost_tried
        short = np.linalg.norm(step) <= _NO_STEP * np.linalg.norm(at)
        at, off, cost = at + step, tried, cost_tried
        slopes = jacobian(residuals, at)
        damping = max(damping / 8, 1e-15)
        if gain <= _NO_GAIN * cost or short:
            break
    return at, slopes


def jacobian(residuals: Residuals, at: np.ndarray) -> np.ndarray:
    """Derivatives of the residuals by each coefficient, by central differences."""
    columns = []
    for index, value in enumerate(at):
        width = np.cbrt(np.finfo(float).eps) * max(abs(value), 1e-8)
        shifted = np.zeros_like(at)
        shifted[index] = width
        columns.append((residuals(at + shifted) - residuals(at - shifted)) / (2 * width))
    return np.column_stack(columns)
