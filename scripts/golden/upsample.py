"""Upsample in one to three dimensions: every mode, sizes up and down, factors that do not come out even."""

import itertools

from .module_case import layer

MODES = {1: "linear", 2: "bilinear", 3: "trilinear"}
SHAPES = {1: [2, 3, 5], 2: [2, 1, 3, 5], 3: [1, 2, 2, 3, 4]}
SIZES = {1: (1, 3, 7, 10, 5), 2: ([2, 7], [5, 3], 4), 3: ([3, 2, 5], 3)}
FACTORS = {1: (2, 1.7, 0.6, 3.3, 1), 2: ([1.5, 2.3], 2, [0.7, 1.9]), 3: ([1.5, 0.7, 1.3], 1.8)}


def case(shape, **options):
    return layer({"type": "Upsample", **options}, shape)


def upsampling():
    for dims, shape in SHAPES.items():
        for mode in ("nearest", "nearest-exact"):
            for size in SIZES[dims]:
                yield case(shape, size=size, mode=mode)
            for factor, recompute in itertools.product(FACTORS[dims], (None, True)):
                flag = {} if recompute is None else {"recompute_scale_factor": recompute}
                yield case(shape, scale_factor=factor, mode=mode, **flag)
        for align in (None, False, True):
            corners = {} if align is None else {"align_corners": align}
            for size in SIZES[dims]:
                yield case(shape, size=size, mode=MODES[dims], **corners)
            for factor, recompute in itertools.product(FACTORS[dims], (None, True, False)):
                if recompute is False and align is not None:
                    continue
                flag = {} if recompute is None else {"recompute_scale_factor": recompute}
                yield case(shape, scale_factor=factor, mode=MODES[dims], **corners, **flag)
        yield case([0, *shape[1:]], scale_factor=2)
        yield case([0, *shape[1:]], size=4, mode=MODES[dims])
        yield case([*shape[:2]] + [1] * dims, size=3, mode=MODES[dims])
        yield case([*shape[:2]] + [1] * dims, scale_factor=2.5)
    # Lengths whose quotients binary numbers miss.
    for length, size in ((3, 41), (7, 31), (11, 29), (29, 11), (23, 61), (13, 39)):
        for mode in ("nearest", "nearest-exact"):
            yield case([1, 1, length], size=size, mode=mode)
        yield case([1, 1, length], size=size, mode="linear")
    for factor in (3, 7, 1 / 3, 0.3, 2.9999, 4.1):
        for mode in ("nearest", "nearest-exact", "linear"):
            yield case([1, 2, 11], scale_factor=factor, mode=mode)


def bicubic_and_area():
    shape = SHAPES[2]
    for align in (None, True):
        corners = {} if align is None else {"align_corners": align}
        for size in ([2, 7], [5, 3]):
            yield case(shape, size=size, mode="bicubic", **corners)
        for factor, recompute in (([1.5, 2.3], None), ([1.5, 2.3], True), ([0.7, 1.9], False)):
            flag = {} if recompute is None else {"recompute_scale_factor": recompute}
            yield case(shape, scale_factor=factor, mode="bicubic", **corners, **flag)
        yield case([2, 1, 1, 1], size=[2, 3], mode="bicubic", **corners)
        yield case([1, 1, 4, 7], size=[1, 2], mode="bicubic", **corners)
    yield case([0, 1, 3, 5], size=4, mode="bicubic")
    for dims, shape in SHAPES.items():
        yield case(shape, size=SIZES[dims][0], mode="area")
        yield case(shape, scale_factor=FACTORS[dims][-2], mode="area")
    yield case(SHAPES[1], scale_factor=1.7, mode="area", recompute_scale_factor=False)
    yield case(SHAPES[1], scale_factor=0.6, mode="area", recompute_scale_factor=True)
    yield case([0, 1, 3, 5], size=4, mode="area")


FILES = {"layers_upsample": upsampling, "layers_upsample_further": bicubic_and_area}
