"""Small cases of every combination of options, beside the chosen ones of layers.py."""

import itertools
import random

from .module_case import layer


def drawn(count, candidates):
    """`count` of the candidates, in their order, the same every time."""
    candidates = list(candidates)
    kept = set(random.Random(7).sample(range(len(candidates)), min(count, len(candidates))))
    return [candidate for index, candidate in enumerate(candidates) if index in kept]


def out_length(length, kernel, stride, padding, ceil):
    """Windows of a pool; 0 if it is not legal."""
    if padding > kernel // 2:
        return 0
    out = (length + 2 * padding - kernel + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (out - 1) * stride >= length + padding:
        out -= 1
    return max(out, 0)


def pools_1d():
    grid = itertools.product((1, 2, 3, 4, 6, 8), (1, 2, 3, 4, 5), (1, 2, 3, 5), (0, 1, 2), (False, True), (True, False))
    legal = [case for case in grid if out_length(*case[:5]) > 0]
    for length, kernel, stride, padding, ceil, counted in drawn(190, legal):
        yield layer(
            {"type": "AvgPool1d", "kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil,
             "count_include_pad": counted},
            [2, length] if (length + kernel) % 5 == 0 else [1, 2, length],
        )
    for length, size in itertools.product((1, 2, 3, 6, 8, 11), (1, 2, 3, 4, 5, 7, 8)):
        yield layer({"type": "AdaptiveAvgPool1d", "output_size": size}, [1, 2, length])


def pools_2d():
    axis = [
        (length, kernel, stride, padding)
        for length, kernel, stride, padding in itertools.product((2, 3, 5), (1, 2, 3), (1, 2, 3), (0, 1))
        if padding <= kernel // 2
    ]
    grid = [
        (h, w, ceil, counted, divisor)
        for h, w, ceil, counted, divisor in itertools.product(axis, axis, (False, True), (True, False), (None, 3))
        if h[0] != w[0] and h[1] != w[1] and out_length(*h, ceil) and out_length(*w, ceil)
    ]
    for h, w, ceil, counted, divisor in drawn(160, grid):
        yield layer(
            {"type": "AvgPool2d", "kernel_size": [h[1], w[1]], "stride": [h[2], w[2]], "padding": [h[3], w[3]],
             "ceil_mode": ceil, "count_include_pad": counted, "divisor_override": divisor},
            [2, h[0], w[0]] if (h[1] + w[2]) % 5 == 0 else [1, 2, h[0], w[0]],
        )
    sizes = [(h, w) for h, w in itertools.product((1, 2, 3, 4, None), (1, 2, 3, 5, None)) if h != w]
    for index, size in enumerate(sizes):
        yield layer({"type": "AdaptiveAvgPool2d", "output_size": list(size)}, [[1, 2, 3, 5], [2, 5, 2]][index % 2])


def convolutions():
    grid = itertools.product(
        (1, 2, 3, 4), (1, 2, 3), (0, 1, 2, "same", "valid"), (1, 2), (1, 2), (True, False),
        ("zeros", "reflect", "replicate", "circular"),
    )
    legal = [
        (kernel, stride, padding, dilation, groups, bias, mode)
        for kernel, stride, padding, dilation, groups, bias, mode in grid
        if not (padding == "same" and stride != 1) and (mode == "zeros" or padding not in (0, "valid"))
    ]
    for index, (kernel, stride, padding, dilation, groups, bias, mode) in enumerate(drawn(130, legal)):
        channels, shape = (2, [1, 2, 7]) if index % 3 else (4, [4, 8])
        yield layer(
            {"type": "Conv1d", "in_channels": channels, "out_channels": 2 * groups if index % 2 else 6, "kernel_size": kernel,
             "stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "bias": bias,
             "padding_mode": mode},
            shape,
        )


def dense():
    for inputs, outputs, bias in itertools.product((1, 2, 3, 7), (1, 2, 5), (True, False)):
        for lead in ([2], [], [3, 2], [0], [2, 1, 2]):
            if (inputs + outputs + len(lead)) % 2 == 0:
                config = {"type": "Linear", "in_features": inputs, "out_features": outputs, "bias": bias}
                yield layer(config, [*lead, inputs], scale=0.5)
    for start, end in itertools.combinations_with_replacement(range(4), 2):
        yield layer({"type": "Flatten", "start_dim": start, "end_dim": end}, [2, 3, 1, 2])
        yield layer({"type": "Flatten", "start_dim": start - 4, "end_dim": end - 4}, [2, 1, 3, 2])
    for shape in ([1], [2, 2, 3], [0, 2, 3], [3, 1, 2, 2], []):
        yield layer({"type": "Identity"}, shape)
        for p in (0.25, 0.75):
            yield layer({"type": "Dropout", "p": p}, shape, mode="eval")
        yield layer({"type": "Dropout", "p": 1.0}, shape)


def activations():
    configs = [
        {"type": kind} for kind in ("ReLU", "LeakyReLU", "GELU", "SiLU", "ELU", "SELU", "Softplus", "Sigmoid", "Tanh")
    ]
    configs += [{"type": "LeakyReLU", "negative_slope": slope} for slope in (0.0, 0.5, 1.0, -0.25, 2.0)]
    configs += [{"type": "ELU", "alpha": alpha} for alpha in (0.0, 0.25, 2.0, -0.5)]
    configs += [{"type": "GELU", "approximate": "tanh"}]
    configs += [
        {"type": "Softplus", "beta": beta, "threshold": threshold} for beta in (0.25, 1.0, 3.0) for threshold in (1, 5, 40)
    ]
    for config in configs:
        for shape in ([], [3], [0, 2], [2, 1, 3, 2]):
            yield layer(config, shape, scale=3.0)
    for kind in ("Softmax", "LogSoftmax"):
        for shape in ([5], [3, 2], [2, 3, 4], [1, 2, 1, 3], [0, 2, 3]):
            for dim in range(-len(shape), len(shape)):
                yield layer({"type": kind, "dim": dim}, shape, scale=3.0)


def pools():
    yield from pools_1d()
    yield from pools_2d()


def simple():
    yield from dense()
    yield from activations()


FILES = {"layers_grid_pool": pools, "layers_grid_conv1d": convolutions, "layers_grid_simple": simple}
