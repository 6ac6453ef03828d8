"""Max pools with their indices, adaptive ones, and their inverse, over every option."""

import itertools

import torch
from torch import nn

from .case import describe, generator, values
from .grids import drawn
from .module_case import build, layer, run


def both(module, x):
    """The result and the indices that a layer with `return_indices` gives."""
    found = module(x)
    return dict(zip(("values", "indices"), found)) if isinstance(found, tuple) else found


def pool(kind, shape, indices=True, **options):
    return layer({"type": kind, **options, "return_indices": indices}, shape, call=both)


def pool_of(what, kind, data, **options):
    """A pool of chosen numbers: ties, NaN, infinities."""
    config = {"type": kind, **options, "return_indices": True}
    name = f"{describe(config)} of {what}"
    x = torch.tensor(data, dtype=torch.float64)
    return run({"name": name, "layer": config}, build(config), x, generator(name), "train", call=both)


def out_length(length, kernel, stride, padding, dilation, ceil):
    """Windows of a pool; 0 if it is not legal, or if a window steps over the whole input."""
    travel = length + 2 * padding - dilation * (kernel - 1) - 1
    out = (travel + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (out - 1) * stride >= length + padding:
        out -= 1
    if padding > kernel // 2 or out < 1 or -padding % dilation >= length:
        return 0
    return out


def axis(lengths):
    """(length, kernel, stride, padding, dilation) of one dimension."""
    return [
        case
        for case in itertools.product(lengths, (1, 2, 3, 4), (1, 2, 3), (0, 1, 2), (1, 2, 3))
        if case[3] <= case[1] // 2
    ]


def options_of(axes):
    keys = ("kernel_size", "stride", "padding", "dilation")
    return {key: [part[1 + i] for part in axes] for i, key in enumerate(keys)}


def pools_1d():
    grid = itertools.product((1, 2, 5, 7, 11), (1, 2, 3, 4, 6), (1, 2, 3, 5), (0, 1, 2, 3), (1, 2, 3), (False, True))
    for length, kernel, stride, padding, dilation, ceil in drawn(110, [c for c in grid if out_length(*c)]):
        yield pool(
            "MaxPool1d", [3, length] if (length + kernel) % 5 == 0 else [2, 3, length],
            indices=(length + stride) % 4 != 0,
            kernel_size=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil,
        )
    yield pool("MaxPool1d", [2, 3, 7], kernel_size=3)
    yield pool("MaxPool1d", [2, 3, 7], indices=False, kernel_size=7)
    yield pool("MaxPool1d", [2, 3, 7], kernel_size=[2], stride=[3], padding=[1], dilation=[2])
    yield pool("MaxPool1d", [0, 3, 7], kernel_size=3)
    for length, size in itertools.product((1, 2, 5, 7, 11), (1, 2, 3, 4, 7, 13)):
        yield pool("AdaptiveMaxPool1d", [3, length] if size == 4 else [2, 3, length], output_size=size)
    yield pool("AdaptiveMaxPool1d", [0, 3, 7], output_size=2)
    yield pool("AdaptiveMaxPool1d", [2, 3, 7], indices=False, output_size=3)


def pools_2d():
    small, wide = axis((2, 3, 5)), axis((3, 5, 7))
    grid = [
        (h, w, ceil)
        for h, w, ceil in itertools.product(small, wide, (False, True))
        if h[0] != w[0] and h[1] != w[1] and h[4] != w[4] and out_length(*h, ceil) and out_length(*w, ceil)
    ]
    for h, w, ceil in drawn(70, grid):
        shape = [2, h[0], w[0]] if (h[1] + w[2]) % 4 == 0 else [1, 2, h[0], w[0]]
        yield pool("MaxPool2d", shape, indices=h[2] != w[1], **options_of((h, w)), ceil_mode=ceil)
    yield pool("MaxPool2d", [2, 3, 5, 7], kernel_size=2)
    yield pool("MaxPool2d", [2, 3, 5, 7], kernel_size=[3, 2], stride=2)
    yield pool("MaxPool2d", [0, 3, 5, 7], kernel_size=[2, 3])
    sizes = [size for size in itertools.product((1, 2, 3, 7, None), (1, 2, 4, 11, None)) if size[0] != size[1]]
    for index, size in enumerate(sizes):
        yield pool("AdaptiveMaxPool2d", [[1, 2, 3, 5], [2, 5, 3], [2, 1, 2, 7]][index % 3], output_size=list(size))
    yield pool("AdaptiveMaxPool2d", [2, 3, 5, 7], output_size=3)
    yield pool("AdaptiveMaxPool2d", [2, 3, 5, 7], indices=False, output_size=[None, None])
    yield pool("AdaptiveMaxPool2d", [0, 3, 5, 7], output_size=[2, 3])


def pools_3d():
    first, second, third = axis((2, 3)), axis((3, 5)), axis((4, 7))
    for d, h, w, ceil in drawn(
        50,
        (
            case
            for case in itertools.product(drawn(25, first), drawn(25, second), drawn(25, third), (False, True))
            if len({part[1] for part in case[:3]}) == 3 and all(out_length(*part, case[3]) for part in case[:3])
        ),
    ):
        shape = [2, d[0], h[0], w[0]] if (h[1] + w[2]) % 4 == 0 else [1, 2, d[0], h[0], w[0]]
        yield pool("MaxPool3d", shape, indices=d[2] != w[2], **options_of((d, h, w)), ceil_mode=ceil)
    yield pool("MaxPool3d", [1, 2, 3, 5, 4], kernel_size=2)
    yield pool("MaxPool3d", [0, 2, 3, 5, 4], kernel_size=[1, 2, 3])
    for index, size in enumerate(
        ([1, 1, 1], [2, 3, 1], [1, 4, 2], [3, 1, 5], [None, 2, 3], [2, None, 1], [None, 4, None], [5, 2, 7])
    ):
        yield pool("AdaptiveMaxPool3d", [[1, 2, 2, 3, 5], [2, 3, 2, 4]][index % 2], output_size=size)
    yield pool("AdaptiveMaxPool3d", [1, 2, 3, 4, 5], output_size=2)
    yield pool("AdaptiveMaxPool3d", [0, 2, 3, 4, 5], output_size=2)


def choices():
    """Which of equal elements, NaN and infinities is chosen."""
    nan, inf = float("nan"), float("inf")
    rows = {
        "ties": [3.0, 1.0, 1.0, 5.0, 5.0, 2.0, 5.0],
        "NaN": [1.0, nan, 2.0, nan, 3.0, 4.0, 0.5],
        "infinities": [-inf, -inf, 2.0, -inf, inf, inf, -inf],
        "minus infinity alone": [-inf] * 7,
        "NaN alone": [nan] * 7,
        "one number": [2.0] * 7,
    }
    for what, row in rows.items():
        for options in (
            {"kernel_size": 3, "stride": 1}, {"kernel_size": 2, "stride": 2, "padding": 1},
            {"kernel_size": 2, "stride": 1, "dilation": 3}, {"kernel_size": 4, "stride": 3, "ceil_mode": True},
        ):
            yield pool_of(what, "MaxPool1d", [row], **options)
        yield pool_of(what, "AdaptiveMaxPool1d", [row], output_size=3)
        plane = [row[:3] + row[4:6], row[2:7], row[1:6]]
        yield pool_of(what, "MaxPool2d", [plane], kernel_size=[2, 3], stride=[1, 2], padding=[1, 0])
        yield pool_of(what, "AdaptiveMaxPool2d", [plane], output_size=[2, 3])
        yield pool_of(what, "MaxPool3d", [[plane, plane[::-1]]], kernel_size=2, stride=1)


def unpool(kind, shape, pooled, **options):
    """Takes a max pool's values and indices apart; `pooled` are the max pool's options."""
    config = {"type": kind, **options}
    name = f"{describe(config)} of max pooled {shape}"
    stream = generator(name)
    source = getattr(nn, kind.replace("Unp", "P"))(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in pooled.items()},
        return_indices=True,
    )
    found, indices = source(values(stream, shape))
    size = config.get("output_size")
    size = None if size is None else [size] * int(kind[-2]) if isinstance(size, int) else size
    module = build({key: value for key, value in config.items() if key != "output_size"})
    x = {"input": values(stream, found.shape), "indices": indices}

    def call(module, x):
        torch.use_deterministic_algorithms(False)  # PyTorch makes no promise for more than one thread
        y = module(*x.values(), output_size=size)
        torch.use_deterministic_algorithms(True)
        return y

    return run({"name": name, "layer": config}, module, x, stream, "train", call=call)


def unpools():
    grid = itertools.product((5, 7, 11), (1, 2, 3, 4), (2, 3, 4), (0, 1))
    for length, kernel, stride, padding in grid:
        if padding > kernel // 2 or kernel > stride or not out_length(length, kernel, stride, padding, 1, False):
            continue
        options = {"kernel_size": kernel, "stride": stride, "padding": padding}
        shape = [3, length] if kernel == 2 else [2, 3, length]
        yield unpool("MaxUnpool1d", shape, options, **options, output_size=length)
    for length, kernel in ((6, 2), (9, 3), (20, 5)):
        yield unpool("MaxUnpool1d", [2, 3, length], {"kernel_size": kernel}, kernel_size=kernel)
    # Windows that overlap choose an element more than once.
    yield unpool("MaxUnpool1d", [2, 3, 11], {"kernel_size": 3, "stride": 1}, kernel_size=3, stride=1)
    yield unpool("MaxUnpool1d", [0, 3, 6], {"kernel_size": 2}, kernel_size=2)
    for shape, options in (
        ([2, 3, 4, 6], {"kernel_size": 2}), ([2, 3, 4, 9], {"kernel_size": [2, 3]}), ([3, 5, 7], {"kernel_size": [2, 3]}),
        ([2, 3, 5, 7], {"kernel_size": [3, 2], "stride": [2, 3]}), ([0, 3, 4, 6], {"kernel_size": 2}),
        ([2, 3, 5, 7], {"kernel_size": 3, "stride": 2, "padding": 1}),
        ([2, 1, 7, 3], {"kernel_size": [4, 1], "stride": [3, 1], "padding": [1, 0]}),
    ):
        yield unpool("MaxUnpool2d", shape, options, **options, output_size=shape[-2:])
    yield unpool("MaxUnpool2d", [2, 3, 4, 9], {"kernel_size": [2, 3]}, kernel_size=[2, 3])
    for shape, options in (
        ([1, 2, 4, 2, 6], {"kernel_size": 2}), ([2, 3, 4, 5], {"kernel_size": [1, 2, 3]}),
        ([1, 2, 3, 5, 4], {"kernel_size": [2, 3, 1], "stride": [1, 2, 3]}), ([0, 2, 4, 2, 6], {"kernel_size": 2}),
        ([1, 2, 5, 3, 7], {"kernel_size": [3, 2, 2], "stride": [2, 1, 3], "padding": [1, 0, 1]}),
    ):
        yield unpool("MaxUnpool3d", shape, options, **options, output_size=shape[-3:])
    yield unpool("MaxUnpool3d", [1, 2, 4, 3, 6], {"kernel_size": [2, 3, 1]}, kernel_size=[2, 3, 1])


FILES = {
    "layers_max_pool_1d": pools_1d,
    "layers_max_pool_2d": pools_2d,
    "layers_max_pool_3d": pools_3d,
    "layers_max_pool_choices": choices,
    "layers_max_unpool": unpools,
}
