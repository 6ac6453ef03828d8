"""Layers and small models: output, gradient of the input, gradients of the parameters.

Sizes within a case are pairwise different and mostly prime, so that no two of them can be mixed up unnoticed.
"""

import itertools

import torch

from .case import describe, generator
from .module_case import build, layer, model, run


def linear():
    def case(shape, out, **options):
        return layer({"type": "Linear", "in_features": shape[-1], "out_features": out, **options}, shape)

    for shape, out in (
        ([2, 3], 5), ([5, 7], 3), ([11, 2], 7), ([7, 13], 2), ([1, 17], 1), ([3, 1], 11), ([5], 7), ([1], 3),
        ([2, 3, 5], 7), ([3, 2, 1, 7], 5), ([0, 3], 5), ([2, 0, 3], 5),
    ):
        yield case(shape, out)
    yield case([3, 5], 2, bias=False)
    yield case([5], 3, bias=False)
    yield case([0, 5], 3, bias=False)
    for shape, options in (
        ([2, 3, 5], {}), ([2, 3, 5, 7], {}), ([2, 3], {}), ([2, 3, 5, 7], {"start_dim": 2}),
        ([2, 3, 5, 7], {"end_dim": 2}), ([2, 3, 5, 7], {"start_dim": 1, "end_dim": -2}), ([3, 5, 7], {"start_dim": 0}),
        ([3, 5, 7], {"start_dim": -2}), ([3, 5, 7], {"start_dim": 1, "end_dim": 1}), ([7], {"start_dim": 0}),
        ([0, 3, 5], {}), ([2, 3, 5], {"start_dim": 0, "end_dim": 1}),
    ):
        yield layer({"type": "Flatten", **options}, shape)
    for shape in ([2, 3, 5], [7], [0, 3]):
        yield layer({"type": "Identity"}, shape)
    yield layer({"type": "Dropout"}, [3, 7], mode="eval")
    yield layer({"type": "Dropout", "p": 0.3}, [2, 3, 5], mode="eval")
    yield layer({"type": "Dropout", "p": 0}, [3, 5])
    yield layer({"type": "Dropout", "p": 1}, [3, 5])


def convolution():
    def case(shape, out, kernel, **options):
        channels = shape[-2]
        return layer(
            {"type": "Conv1d", "in_channels": channels, "out_channels": out, "kernel_size": kernel, **options}, shape
        )

    plain = [2, 3, 11]
    for kernel in (1, 2, 4, 7, 11):
        yield case(plain, 5, kernel)
    for kernel, stride in ((1, 2), (2, 3), (3, 2), (4, 3), (5, 7), (2, 13)):
        yield case(plain, 5, kernel, stride=stride)
    for kernel, padding in ((3, 1), (4, 2), (5, 2), (2, 5), (13, 1), (1, 1)):
        yield case(plain, 5, kernel, padding=padding)
    for kernel, dilation in ((2, 3), (3, 2), (4, 3), (6, 2), (1, 5)):
        yield case(plain, 2, kernel, dilation=dilation)
    yield case(plain, 5, 3, padding="valid")
    yield case(plain, 2, 3, padding="valid", stride=2, dilation=2)
    for kernel, dilation in ((1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (2, 3), (3, 2), (4, 3), (6, 2)):
        yield case(plain, 2, kernel, padding="same", dilation=dilation)
    for mode in ("reflect", "replicate", "circular"):
        yield case(plain, 2, 3, padding=1, padding_mode=mode)
        yield case(plain, 2, 5, padding=4, padding_mode=mode, stride=2)
        yield case(plain, 2, 4, padding=3, padding_mode=mode, dilation=2)
        yield case(plain, 2, 4, padding="same", padding_mode=mode)
        yield case(plain, 2, 2, padding="same", padding_mode=mode, dilation=5)
        yield case([3, 7], 5, 3, padding=2, padding_mode=mode)
        yield case([0, 3, 7], 5, 3, padding=2, padding_mode=mode)
    yield case([2, 3, 7], 2, 3, padding=6, padding_mode="reflect")
    yield case([2, 3, 5], 2, 3, padding=5, padding_mode="circular")
    yield case([2, 3, 5], 2, 3, padding=11, padding_mode="replicate")
    yield case([2, 3, 1], 5, 2, padding=3, padding_mode="replicate")
    yield case([2, 3, 5], 7, 2, padding=3, padding_mode="zeros")
    yield case([3, 4, 7], 6, 3, groups=2)
    yield case([2, 6, 7], 9, 2, groups=3)
    yield case([2, 5, 7], 5, 3, groups=5, padding=1)
    yield case([2, 3, 7], 6, 4, groups=3, padding="same")
    yield case([2, 4, 11], 6, 3, groups=2, stride=2, padding=3, dilation=2)
    yield case([2, 4, 11], 6, 3, groups=2, stride=3, padding=4, dilation=2, padding_mode="reflect", bias=False)
    yield case(plain, 5, 3, bias=False)
    yield case([2, 5, 7], 5, 3, bias=False, groups=5)
    yield case([3, 7], 5, 2)
    yield case([5, 7], 2, 3, stride=2, padding=1)
    yield case([4, 7], 6, 3, groups=2, padding="same", bias=False)
    yield case([0, 3, 7], 5, 2)
    yield case([0, 4, 7], 6, 3, groups=2, padding="same", bias=False)
    yield case([2, 1, 7], 1, 3)
    yield case([1, 2, 5], 3, 5)
    yield case([2, 3, 1], 5, 1)
    yield case([1, 1, 31], 2, 3, stride=2, dilation=5)
    yield case([2, 13, 5], 17, 2, padding=1)


def is_legal(length, kernel, stride, padding, ceil):
    """Whether the pool is legal: padding at most half the kernel and at least one window."""
    if padding > kernel // 2:
        return False
    out = (length + 2 * padding - kernel + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (out - 1) * stride >= length + padding:
        out -= 1
    return out >= 1


def pooling_1d():
    def case(shape, **options):
        return layer({"type": "AvgPool1d", **options}, shape)

    for length, kernel, stride, padding in (
        (5, 2, 2, 0), (5, 3, 2, 1), (6, 3, 2, 1), (6, 4, 3, 2), (7, 2, 3, 0), (11, 5, 3, 2), (6, 2, 4, 1), (2, 3, 2, 0),
        (13, 3, 5, 1),
    ):
        for ceil, counted in itertools.product((False, True), (True, False)):
            if is_legal(length, kernel, stride, padding, ceil) and (counted or padding or ceil):
                yield case(
                    [2, 3, length], kernel_size=kernel, stride=stride, padding=padding, ceil_mode=ceil,
                    count_include_pad=counted,
                )
    yield case([2, 3, 7], kernel_size=2)
    yield case([2, 3, 7], kernel_size=1)
    yield case([2, 3, 7], kernel_size=7)
    yield case([2, 3, 7], kernel_size=3, stride=1)
    yield case([2, 3, 5], kernel_size=4, stride=1, padding=2)
    yield case([2, 3, 5], kernel_size=6, ceil_mode=True)
    yield case([2, 3, 4], kernel_size=1, stride=3, ceil_mode=True)
    yield case([2, 3, 6], kernel_size=2, stride=7, padding=1, ceil_mode=True)
    yield case([3, 7], kernel_size=3, stride=2, padding=1)
    yield case([3, 7], kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)
    yield case([0, 3, 7], kernel_size=3)
    yield case([2, 3, 11], kernel_size=[5], stride=[2], padding=[1])
    for shape, size in (
        ([2, 3, 7], 2), ([2, 3, 7], 3), ([2, 3, 7], 5), ([2, 3, 7], 11), ([2, 3, 7], 7), ([2, 3, 7], 1), ([2, 3, 1], 5),
        ([2, 3, 5], 3), ([2, 3, 10], 3), ([2, 3, 14], 4), ([3, 7], 4), ([0, 3, 7], 2),
    ):
        yield layer({"type": "AdaptiveAvgPool1d", "output_size": size}, shape)


def pooling_2d():
    def case(shape, **options):
        return layer({"type": "AvgPool2d", **options}, shape)

    plain = [2, 3, 5, 7]
    for kernel, stride, padding in (
        ([2, 3], [2, 2], [0, 1]), ([3, 2], [2, 3], [1, 1]), ([3, 5], [1, 2], [1, 2]), ([2, 4], [3, 5], [1, 0]),
    ):
        for ceil, counted in itertools.product((False, True), (True, False)):
            yield case(
                plain, kernel_size=kernel, stride=stride, padding=padding, ceil_mode=ceil, count_include_pad=counted
            )
    for options in (
        {"kernel_size": 2}, {"kernel_size": [2, 3]}, {"kernel_size": [5, 7]}, {"kernel_size": 1},
        {"kernel_size": 3, "stride": 2}, {"kernel_size": 3, "stride": [2, 1]}, {"kernel_size": [3, 2], "stride": 2},
        {"kernel_size": 3, "padding": 1}, {"kernel_size": [2, 3], "padding": [1, 0]},
        {"kernel_size": 2, "ceil_mode": True}, {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
        {"kernel_size": [1, 2], "stride": 2, "padding": [0, 1], "ceil_mode": True},
    ):
        yield case([2, 5, 7], **options)
    for ceil, counted in itertools.product((False, True), (True, False)):
        yield case(
            [3, 5, 7], kernel_size=[3, 2], stride=[2, 3], padding=1, ceil_mode=ceil, count_include_pad=counted,
            divisor_override=7,
        )
    yield case([2, 3, 3, 5], kernel_size=2, divisor_override=3)
    yield case([2, 3, 3, 5], kernel_size=2, divisor_override=1)
    yield case([2, 3, 3, 5], kernel_size=2, divisor_override=2, count_include_pad=False)
    yield case([2, 3, 5, 7], kernel_size=[3, 2], stride=[4, 5], ceil_mode=True, divisor_override=2)
    yield case([0, 3, 5, 7], kernel_size=[2, 3])
    yield case([2, 3, 2, 11], kernel_size=[3, 4], stride=[2, 3], ceil_mode=True)
    yield case([2, 3, 13, 1], kernel_size=[5, 1], stride=[3, 2])
    for shape, size in (
        ([2, 3, 5, 7], 1), ([2, 3, 5, 7], 2), ([2, 3, 5, 7], [2, 3]), ([2, 3, 5, 7], [3, 1]), ([2, 3, 5, 7], [None, 3]),
        ([2, 3, 5, 7], [2, None]), ([2, 3, 5, 7], [None, None]), ([2, 3, 5, 7], [7, 11]), ([2, 3, 5, 7], [3, 11]),
        ([2, 5, 7], [3, 2]), ([2, 5, 7], 3), ([0, 3, 5, 7], [2, 3]), ([2, 3, 1, 2], [5, 3]), ([3, 11, 13], [4, 5]),
    ):
        yield layer({"type": "AdaptiveAvgPool2d", "output_size": size}, shape)


EDGES = [-90.0, -30.0, -20.0, -8.0, -3.0, -1.0, -1 / 256, 0.0, 1 / 256, 1.0, 3.0, 8.0, 20.0, 30.0, 90.0]


def at_edges(config):
    """Where exponentials saturate and slopes jump: 0 itself, both sides of it, and far away."""
    name = f"{describe(config)} at 0 and far from it"
    x = torch.tensor(EDGES, dtype=torch.float64)
    return run({"name": name, "layer": config}, build(config), x, generator(name), "train")


def activations():
    for config in (
        {"type": "ReLU"}, {"type": "LeakyReLU"}, {"type": "LeakyReLU", "negative_slope": 0.25}, {"type": "GELU"},
        {"type": "GELU", "approximate": "none"}, {"type": "GELU", "approximate": "tanh"}, {"type": "SiLU"},
        {"type": "ELU"}, {"type": "ELU", "alpha": 0.5}, {"type": "SELU"}, {"type": "Softplus"},
        {"type": "Softplus", "beta": 2}, {"type": "Softplus", "beta": 0.5, "threshold": 2}, {"type": "Sigmoid"},
        {"type": "Tanh"},
    ):
        yield layer(config, [2, 3, 5], scale=2.0)
        yield at_edges(config)
    for config in ({"type": "ReLU"}, {"type": "GELU"}, {"type": "Tanh"}):
        yield layer(config, [0, 3])
        yield layer(config, [7])
    for kind in ("Softmax", "LogSoftmax"):
        for shape, dim in (
            ([2, 3, 5], 0), ([2, 3, 5], 1), ([2, 3, 5], 2), ([2, 3, 5], -1), ([2, 3, 5, 7], -3), ([7], 0), ([0, 3], 1),
            ([3, 1], 1),
        ):
            yield layer({"type": kind, "dim": dim}, shape, scale=2.0)
        yield layer({"type": kind, "dim": 1}, [2, 7], scale=300.0)


def models():
    conv = {"type": "Conv1d", "in_channels": 3, "out_channels": 5, "kernel_size": 3, "padding": 1}
    yield model("a model of Conv1d, ReLU, AvgPool1d, Flatten and Linear", [2, 3, 11], [
        conv, {"type": "ReLU"}, {"type": "AvgPool1d", "kernel_size": 11}, {"type": "Flatten"},
        {"type": "Linear", "in_features": 5, "out_features": 7},
    ])
    yield model("a model whose layers have names", [2, 3, 11], [
        {**conv, "name": "conv1"}, {"type": "Tanh", "name": "squash"},
        {"type": "AdaptiveAvgPool1d", "output_size": 2}, {"type": "Flatten", "name": "flat"},
        {"type": "Linear", "name": "fc", "in_features": 10, "out_features": 7},
    ])
    yield model("two Conv1d blocks with average pools", [2, 3, 13], [
        {**conv, "padding": "same"}, {"type": "GELU"}, {"type": "AvgPool1d", "kernel_size": 2, "ceil_mode": True},
        {"type": "Conv1d", "in_channels": 5, "out_channels": 4, "kernel_size": 2, "dilation": 2},
        {"type": "SiLU"}, {"type": "AdaptiveAvgPool1d", "output_size": 3}, {"type": "Flatten"},
        {"type": "Linear", "in_features": 12, "out_features": 3}, {"type": "LogSoftmax", "dim": 1},
    ])
    yield model("a Sequential inside a Sequential inside a model", [3, 5], [
        {"type": "Linear", "in_features": 5, "out_features": 7},
        {"type": "Sequential", "layers": [
            {"type": "ELU"},
            {"type": "Sequential", "layers": [
                {"type": "Linear", "in_features": 7, "out_features": 2, "bias": False}, {"type": "Sigmoid"}]},
            {"type": "Linear", "in_features": 2, "out_features": 3},
        ]},
        {"type": "Softplus"},
    ])
    yield model("an image model of pools and Linear layers", [2, 1, 7, 5], [
        {"type": "AvgPool2d", "kernel_size": [3, 2], "stride": 1},
        {"type": "AdaptiveAvgPool2d", "output_size": [3, None]},
        {"type": "Flatten"}, {"type": "Linear", "in_features": 12, "out_features": 7}, {"type": "ReLU"},
        {"type": "Linear", "in_features": 7, "out_features": 3}, {"type": "Softmax", "dim": -1},
    ])
    yield model("a skip connection joined by Add", [2, 3, 7], [
        {**conv, "name": "first"}, {"type": "ReLU"},
        {"type": "Conv1d", "name": "second", "in_channels": 5, "out_channels": 5, "kernel_size": 3, "padding": "same"},
        {"type": "Add", "inputs": ["first", "second"]}, {"type": "Tanh"},
    ])
    yield model("the input multiplied by a gate made from it", [3, 5], [
        {"type": "Linear", "in_features": 5, "out_features": 5}, {"type": "Sigmoid", "name": "gate"},
        {"type": "Multiply", "inputs": ["input", "gate"]}, {"type": "Linear", "in_features": 5, "out_features": 2},
    ])
    yield model("two branches joined by Concat along the channels", [2, 3, 7], [
        {"type": "Conv1d", "name": "narrow", "in_channels": 3, "out_channels": 2, "kernel_size": 1},
        {"type": "Conv1d", "name": "wide", "inputs": ["input"], "in_channels": 3, "out_channels": 5, "kernel_size": 4,
         "padding": "same"},
        {"type": "Concat", "dim": 1, "inputs": ["narrow", "wide"]}, {"type": "AvgPool1d", "kernel_size": 3},
    ])
    yield model("one branch added three times", [2, 3], [
        {"type": "Linear", "name": "fc", "in_features": 3, "out_features": 5},
        {"type": "Add", "inputs": ["fc", "fc", "fc"]},
    ])
    yield model("a model on a batch of none", [0, 3, 7], [
        conv, {"type": "ReLU"}, {"type": "AdaptiveAvgPool1d", "output_size": 1}, {"type": "Flatten"},
        {"type": "Linear", "in_features": 5, "out_features": 2},
    ])


FILES = {
    "layers_linear": linear,
    "layers_conv": convolution,
    "layers_pool1d": pooling_1d,
    "layers_pool2d": pooling_2d,
    "layers_activation": activations,
    "layers_model": models,
}
