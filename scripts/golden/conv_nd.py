"""Conv2d and Conv3d: chosen cases of every option, then a grid of their combinations."""

import itertools
import random

from .module_case import layer

MODES = ("zeros", "reflect", "replicate", "circular")


def conv(shape, out, kernel, **options):
    """A convolution of `shape`, with a batch or without; the channels follow from it."""
    dims = len(kernel) if isinstance(kernel, list) else options.pop("dims")
    channels = shape[-dims - 1]
    return layer(
        {"type": f"Conv{dims}d", "in_channels": channels, "out_channels": out, "kernel_size": kernel, **options}, shape
    )


def chosen_2d():
    plain = [1, 3, 4, 5]
    yield conv(plain, 2, [2, 3])
    yield conv(plain, 2, 3, dims=2)
    yield conv(plain, 5, 1, dims=2)
    yield conv(plain, 2, [4, 5])
    yield conv(plain, 2, [1, 4])
    yield conv(plain, 2, [4, 1])
    yield conv([2, 3, 5, 7], 2, [2, 3], bias=False)
    for stride in (2, [2, 3], [3, 1], [1, 2], [7, 5]):
        yield conv(plain, 2, [2, 3], stride=stride)
    for padding in (1, [0, 2], [2, 1], [4, 0], "same", "valid"):
        yield conv(plain, 2, [3, 2], padding=padding)
    for dilation in (2, [1, 3], [3, 2]):
        yield conv(plain, 2, [2, 3], padding=[1, 2], dilation=dilation)
        yield conv(plain, 2, [2, 3], padding="same", dilation=dilation)
    yield conv([1, 6, 3, 4], 9, [2, 3], groups=3)
    yield conv([1, 6, 5, 4], 4, [3, 2], groups=2, stride=[1, 2], padding=[1, 0])
    yield conv([1, 3, 5, 7], 3, [3, 3], groups=3, padding=1)
    yield conv([1, 3, 5, 7], 6, [3, 2], groups=3, stride=[2, 1], padding="valid")
    yield conv([2, 4, 3, 5], 4, [1, 1], groups=4, bias=False)
    for mode in MODES[1:]:
        yield conv(plain, 2, [3, 5], padding=[1, 2], padding_mode=mode)
        yield conv(plain, 2, [2, 4], padding="same", padding_mode=mode)
        yield conv([3, 5, 7], 2, [3, 2], padding=[2, 0], stride=[1, 2], padding_mode=mode)
        yield conv(plain, 3, [3, 2], padding=[3, 4], dilation=[2, 1], groups=3, padding_mode=mode)
    yield conv([3, 7, 5], 2, [2, 3])
    yield conv([4, 7, 5], 2, [3, 2], stride=[2, 3], padding=[1, 1], groups=2)
    yield conv([0, 3, 5, 7], 2, [2, 3], padding=1)
    yield conv([0, 4, 5, 7], 2, [2, 3], padding=[0, 1], groups=2, padding_mode="replicate")
    yield conv([2, 3, 1, 11], 2, [1, 3], stride=[1, 2], padding=[0, 1])
    yield conv([2, 3, 11, 1], 2, [3, 1], stride=[2, 1], padding=[1, 0])
    yield conv([1, 2, 13, 17], 1, [3, 5], stride=[4, 5], padding=[2, 3])


def chosen_3d():
    plain = [1, 2, 3, 2, 4]
    yield conv(plain, 2, [2, 1, 3])
    yield conv(plain, 2, 2, dims=3)
    yield conv(plain, 3, 1, dims=3)
    yield conv(plain, 2, [3, 2, 4])
    yield conv(plain, 2, [1, 1, 3], bias=False)
    yield conv([2, 2, 2, 1, 4], 2, [2, 1, 3])
    for stride in (2, [1, 2, 3], [3, 1, 2]):
        yield conv(plain, 2, [2, 1, 3], stride=stride)
    for padding in (1, [0, 1, 2], [2, 1, 0], "same", "valid"):
        yield conv(plain, 2, [2, 2, 3], padding=padding)
    for dilation in (2, [1, 2, 3], [2, 3, 1]):
        yield conv(plain, 2, [2, 2, 2], padding=[1, 2, 1], dilation=dilation)
        yield conv(plain, 2, [2, 2, 2], padding="same", dilation=dilation)
    yield conv([1, 4, 2, 3, 4], 6, [1, 2, 3], groups=2)
    yield conv([1, 3, 3, 2, 4], 3, [2, 1, 2], groups=3, padding=[1, 0, 1])
    for mode in MODES[1:]:
        yield conv(plain, 2, [2, 2, 3], padding=[0, 1, 2], padding_mode=mode)
        yield conv(plain, 2, [2, 2, 3], padding="same", padding_mode=mode)
    yield conv([2, 3, 5, 4], 2, [2, 3, 1], stride=[1, 2, 1], padding=[1, 0, 0])
    yield conv([2, 2, 3, 4], 2, [2, 2, 3], padding="same", dilation=[2, 1, 1])
    yield conv([0, 2, 3, 4, 5], 2, [2, 1, 3])
    yield conv([1, 2, 1, 7, 5], 2, [1, 3, 2], padding=[0, 1, 1])
    yield conv([1, 2, 5, 1, 7], 2, [2, 1, 3], stride=[2, 1, 3])


def grid(dims, count, extents, seed):
    """`count` combinations of all options with different values along every dimension."""
    draw = random.Random(seed)
    made = 0
    while made < count:
        size = draw.sample(extents, dims)
        kernel = [draw.choice((1, 2, 3)) for _ in range(dims)]
        dilation = [draw.choice((1, 1, 2)) for _ in range(dims)]
        stride = [draw.choice((1, 1, 2, 3)) for _ in range(dims)]
        padding = draw.choice(("same", "valid", None, None, None))
        if padding is None:
            padding = [draw.choice((0, 1, 2)) for _ in range(dims)]
        elif padding == "same":
            stride = [1] * dims
        mode = draw.choice(MODES + ("zeros",) * 3)
        total = [
            d * (k - 1) if padding == "same" else 0 if padding == "valid" else 2 * p
            for d, k, p in zip(dilation, kernel, [0] * dims if isinstance(padding, str) else padding)
        ]
        fits = all(s + t > d * (k - 1) for s, t, d, k in zip(size, total, dilation, kernel))
        if mode == "reflect" and any((t + 1) // 2 >= s for s, t in zip(size, total)):
            continue
        if not fits or (mode == "circular" and any((t + 1) // 2 > s for s, t in zip(size, total))):
            continue
        groups = draw.choice((1, 1, 2, 3))
        channels = groups * draw.choice((1, 2) if groups < 3 else (1,))
        out = groups * draw.choice((1, 2) if groups < 3 else (1,))
        batch = draw.choice(([], [1]))
        made += 1
        yield conv(
            batch + [channels] + size, out, kernel, stride=stride, padding=padding, dilation=dilation, groups=groups,
            bias=draw.choice((True, False)), padding_mode=mode,
        )


def distinct(cases):
    seen = set()
    for case in cases:
        if case["name"] not in seen:
            seen.add(case["name"])
            yield case


FILES = {
    "layers_conv2d": lambda: distinct(itertools.chain(chosen_2d(), grid(2, 110, (2, 3, 4, 5), 2))),
    "layers_conv3d": lambda: distinct(itertools.chain(chosen_3d(), grid(3, 90, (1, 2, 3, 4), 3))),
}
