"""LPPool1d/2d/3d: every kind of power, windows of zeros, negative sums, infinities and NaN."""

import itertools

import torch

from .case import describe, generator
from .module_case import build, layer, run

SHAPES = {1: [2, 3, 7], 2: [1, 2, 3, 5], 3: [1, 2, 2, 3, 5]}
KERNELS = {1: [(2, None), (3, 2), (4, 1), (5, 3)], 2: [([2, 3], None), ([3, 2], [1, 2])],
           3: [([1, 2, 3], None), ([2, 1, 2], [1, 2, 3])]}


def case(dims, shape, **options):
    return layer({"type": f"LPPool{dims}d", **options}, shape)


def grid():
    for dims, norm in itertools.product((1, 2, 3), (1, 2, 3, 4, 1.5, -2, 0.5)):
        for (kernel, stride), ceil in itertools.product(KERNELS[dims], (False, True)):
            if dims > 1 and norm == 4:
                continue
            options = {} if stride is None else {"stride": stride}
            yield case(dims, SHAPES[dims], norm_type=norm, kernel_size=kernel, ceil_mode=ceil, **options)
    for dims in (1, 2, 3):
        yield case(dims, SHAPES[dims][-dims - 1 :], norm_type=2, kernel_size=2)
        yield case(dims, [0, *SHAPES[dims][1:]], norm_type=2, kernel_size=2)
        yield case(dims, SHAPES[dims], norm_type=3, kernel_size=2, stride=1, ceil_mode=True)


def at(config, rows):
    """Chosen values instead of drawn ones."""
    x = torch.tensor([rows], dtype=torch.float64)
    name = f"{describe(config)} on {rows}"
    return run({"name": name, "layer": config}, build(config), x, generator(name), "train")


def kinks():
    nan, inf = float("nan"), float("inf")
    for norm, row in itertools.product(
        (1, 2, 3, 0.5, 1.5, -1, -2),
        ([0.0, 0.0, 1.0, 2.0], [-1.0, 1.0, -3.0, 2.0], [-1.0, -3.0, nan, 2.0], [inf, 2.0, -inf, 3.0], [0.0, 2.0, 0.0, -2.0]),
    ):
        yield at({"type": "LPPool1d", "norm_type": norm, "kernel_size": 2}, row)
    for norm in (1, 2, 3):
        yield at({"type": "LPPool2d", "norm_type": norm, "kernel_size": [1, 2]}, [[0.0, 0.0, 5.0], [1.0, -1.0, 2.0]])
        yield at({"type": "LPPool3d", "norm_type": norm, "kernel_size": [1, 1, 2]}, [[[0.0, 0.0, 5.0], [1.0, -1.0, 2.0]]])


def pools():
    yield from grid()
    yield from kinks()


FILES = {"layers_lp_pool": pools}
