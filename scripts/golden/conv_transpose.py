"""Transposed convolutions in one to three dimensions: every option alone and together, unbatched, empty batches."""

import itertools

from .module_case import layer


def case(dims, shape, out, kernel, **options):
    config = {"type": f"ConvTranspose{dims}d", "in_channels": shape[-dims - 1], "out_channels": out}
    return layer({**config, "kernel_size": kernel, **options}, shape)


def lines():
    plain = [2, 3, 5]
    for kernel in (1, 2, 4, 7):
        yield case(1, plain, 2, kernel)
    for kernel, stride in ((1, 2), (2, 3), (3, 2), (4, 3), (2, 5)):
        yield case(1, plain, 2, kernel, stride=stride)
        yield case(1, plain, 2, kernel, stride=stride, output_padding=stride - 1)
    for kernel, padding in ((3, 1), (4, 2), (5, 3), (7, 5), (2, 1)):
        yield case(1, plain, 2, kernel, padding=padding)
    for kernel, dilation in ((2, 3), (3, 2), (4, 3), (1, 5)):
        yield case(1, plain, 2, kernel, dilation=dilation)
        yield case(1, plain, 2, kernel, dilation=dilation, output_padding=dilation - 1, padding=1 if kernel > 1 else 0)
    for groups, channels, out in ((2, 4, 6), (3, 3, 3), (2, 2, 4), (5, 5, 10), (3, 6, 3)):
        for bias in (True, False):
            yield case(1, [1, channels, 3], out, 2, groups=groups, bias=bias, stride=2)
    for stride, padding, output_padding, dilation in itertools.product((1, 2, 3), (0, 1, 2), (0, 1, 2), (1, 2, 3)):
        if output_padding < max(stride, dilation) and (stride, dilation) != (1, 1):
            yield case(
                1, [1, 2, 3], 2, 3, stride=stride, padding=padding, output_padding=output_padding, dilation=dilation,
                groups=1 + (stride + padding) % 2,
            )
    for shape in ([3, 5], [0, 3, 5], [1, 3, 1], [2, 1, 7]):
        yield case(1, shape, 2, 3, stride=2, padding=1, output_padding=1)
        yield case(1, shape, 1, 4, bias=False)
    yield case(1, [4, 7], 6, 2, groups=2, bias=False)
    yield case(1, plain, 2, [3], stride=[2], padding=[1], output_padding=[1], dilation=[1])
    yield case(1, plain, 2, 3, padding_mode="zeros")
    yield case(1, [1, 1, 13], 2, 3, stride=5, dilation=2, padding=4)


def images():
    plain = [2, 1, 2, 3]
    for kernel in (1, 2, [2, 3], [3, 1]):
        yield case(2, plain, 2, kernel)
        yield case(2, plain, 2, kernel, stride=[2, 3])
        yield case(2, plain, 2, kernel, stride=[3, 1], output_padding=[2, 0])
        yield case(2, plain, 2, kernel, dilation=[1, 2], output_padding=[0, 1])
    for stride, padding, dilation, output_padding in (
        (1, [1, 0], [2, 1], 0), ([2, 1], [0, 1], 1, [1, 0]), ([1, 3], [1, 2], [3, 1], [2, 2]), (2, 1, 2, 1),
        ([3, 2], [2, 1], [1, 3], [1, 2]), ([2, 5], 0, 1, [0, 4]),
    ):
        for groups, bias in ((1, True), (2, False), (2, True)):
            yield case(
                2, [1, 2, 3, 2], 2 * groups, [3, 2], stride=stride, padding=padding, output_padding=output_padding,
                dilation=dilation, groups=groups, bias=bias,
            )
    for shape in ([3, 2, 5], [0, 3, 2, 5], [1, 3, 1, 1], [2, 1, 5, 2]):
        yield case(2, shape, 2, [2, 3], stride=[1, 2], padding=[0, 1], output_padding=[0, 1])
    yield case(2, [2, 3, 3, 2], 3, [2, 3], groups=3, bias=False)


def volumes():
    plain = [1, 2, 2, 3, 1]
    for options in (
        {}, {"stride": [2, 1, 3]}, {"stride": [2, 1, 3], "output_padding": [1, 0, 2]}, {"padding": [1, 0, 0]},
        {"dilation": [1, 2, 3]}, {"dilation": [1, 2, 3], "output_padding": [0, 1, 2]}, {"bias": False},
        {"groups": 2, "stride": [1, 2, 1], "padding": [1, 1, 0]},
        {"groups": 2, "bias": False, "stride": [3, 1, 2], "padding": [1, 0, 0], "output_padding": [2, 1, 0],
         "dilation": [1, 2, 1]},
    ):
        yield case(3, plain, 2, [2, 1, 3], **options)
        yield case(3, plain[1:], 2, [2, 3, 2], **options)
    yield case(3, [2, 3, 1, 2, 2], 2, 2)
    yield case(3, [2, 3, 1, 2, 2], 2, 1, stride=2, output_padding=1)
    yield case(3, [0, 2, 1, 3, 2], 3, [1, 2, 3], stride=[1, 2, 1], output_padding=[0, 1, 0])


def transposed():
    yield from lines()
    yield from images()
    yield from volumes()


FILES = {"layers_conv_transpose": transposed}
