"""Average pools of three dimensions, sliding and adaptive: one implementation with those of one and two."""

import itertools

from .case import describe, generator, values
from .module_case import build, layer, run

PLAIN = [1, 2, 3, 5, 4]


def sliding(shape, **options):
    return layer({"type": "AvgPool3d", **options}, shape)


def average():
    for kernel, stride, padding in (
        ([2, 3, 1], [1, 2, 3], [1, 0, 0]), ([3, 2, 4], [2, 1, 3], [0, 1, 2]), ([1, 4, 2], [3, 2, 1], [0, 2, 1]),
        ([2, 5, 3], [2, 4, 2], [1, 2, 0]), ([3, 1, 2], [1, 3, 5], [1, 0, 1]),
    ):
        for ceil, counted, divisor in itertools.product((False, True), (True, False), (None, 7)):
            yield sliding(
                PLAIN, kernel_size=kernel, stride=stride, padding=padding, ceil_mode=ceil, count_include_pad=counted,
                divisor_override=divisor,
            )
    for options in (
        {"kernel_size": 1}, {"kernel_size": 2}, {"kernel_size": 3}, {"kernel_size": [3, 5, 4]},
        {"kernel_size": [1, 2, 3]}, {"kernel_size": 2, "stride": 1}, {"kernel_size": [2, 3, 1], "stride": 2},
        {"kernel_size": 2, "stride": [3, 1, 2]}, {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 2, "padding": [0, 1, 0]}, {"kernel_size": 2, "ceil_mode": True},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
        {"kernel_size": 2, "divisor_override": 1}, {"kernel_size": 2, "divisor_override": 3, "ceil_mode": True},
    ):
        yield sliding([2, 3, 5, 4], **options)
    yield sliding([0, 2, 3, 5, 4], kernel_size=[2, 3, 1])
    yield sliding([2, 1, 3, 2, 5], kernel_size=[2, 1, 3], padding=[1, 0, 1])
    yield sliding([2, 3, 2, 1, 7], kernel_size=[2, 1, 5], stride=[1, 1, 4], ceil_mode=True)
    yield sliding([2, 1, 1, 11, 3], kernel_size=[1, 4, 2], stride=[1, 3, 1])


def adaptive():
    for size in (
        1, 2, 3, 5, [1, 2, 3], [3, 1, 2], [2, 4, 3], [5, 2, 1], [4, 7, 5], [None, 2, 3], [2, None, 1], [3, 2, None],
        [None, None, 2], [None, 3, None], [None, None, None], [3, 5, 4], [6, 1, 8], [2, 5, 7],
    ):
        yield layer({"type": "AdaptiveAvgPool3d", "output_size": size}, PLAIN)
    for shape, size in (
        ([2, 3, 5, 4], [2, 1, 3]), ([2, 3, 5, 4], 2), ([3, 5, 4, 2], [None, 3, 1]), ([0, 2, 3, 5, 4], [2, 3, 1]),
        ([2, 1, 1, 2, 3], [4, 3, 2]), ([1, 2, 7, 3, 2], [3, 2, 1]), ([2, 3, 1, 1, 1], [2, 3, 1]),
        ([1, 2, 2, 11, 3], [1, 4, 2]), ([2, 3, 5, 4], [5, 3, 2]),
    ):
        yield layer({"type": "AdaptiveAvgPool3d", "output_size": size}, shape)


def pools():
    yield from average()
    yield from adaptive()


def lower():
    """What pool1d and pool2d leave out: divisors with ceil mode and padding, wide windows, more outputs."""
    for shape, size in (([2, 1, 13], 5), ([5, 11], 13), ([1, 2, 17], 6)):
        yield layer({"type": "AdaptiveAvgPool1d", "output_size": size}, shape)
    for shape, size in (([2, 1, 7, 3], [5, None]), ([2, 11, 3], [4, 7]), ([1, 2, 3, 7], [None, 11])):
        yield layer({"type": "AdaptiveAvgPool2d", "output_size": size}, shape)
    for divisor, ceil, counted in itertools.product((1, 5), (False, True), (True, False)):
        yield layer(
            {"type": "AvgPool2d", "kernel_size": [4, 3], "stride": [3, 2], "padding": [2, 1], "ceil_mode": ceil,
             "count_include_pad": counted, "divisor_override": divisor},
            [2, 3, 5, 7],
        )
    for length, kernel, stride, padding, counted in (
        (17, 16, 1, 8, True), (17, 16, 3, 8, False), (19, 19, 1, 9, False), (31, 25, 5, 12, True), (37, 33, 2, 7, False),
    ):
        yield layer(
            {"type": "AvgPool1d", "kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": True,
             "count_include_pad": counted},
            [1, 2, length],
        )


def special():
    """Infinities and NaN stay in the windows that hold them; values far apart keep their sum."""
    for config, shape in (
        ({"type": "AvgPool1d", "kernel_size": 3, "stride": 2, "padding": 1}, [1, 2, 11]),
        ({"type": "AvgPool2d", "kernel_size": [2, 3], "stride": 1}, [1, 3, 5]),
        ({"type": "AvgPool3d", "kernel_size": [1, 2, 3], "stride": 1}, [1, 2, 3, 5]),
        ({"type": "AdaptiveAvgPool1d", "output_size": 4}, [1, 2, 11]),
        ({"type": "AdaptiveAvgPool2d", "output_size": [2, 3]}, [1, 3, 7]),
        ({"type": "AdaptiveAvgPool3d", "output_size": [1, 2, 3]}, [1, 2, 3, 5]),
    ):
        for what, number in (("nan", float("nan")), ("inf", float("inf")), ("1e30", 1e30)):
            name = f"{describe(config)} on {shape} with {what} in it"
            stream = generator(name)
            x = values(stream, shape)
            x.flatten()[4] = number
            yield run({"name": name, "layer": config}, build(config), x, stream, "train")


def others():
    yield from lower()
    yield from special()


FILES = {"layers_avg_pool3d": pools, "layers_avg_pool": others}
