"""Small layers: PReLU, the softmaxes, Bilinear, and those that change shapes only."""

from .module_case import layer


def slopes():
    def case(shape, **options):
        return layer({"type": "PReLU", **options}, shape)

    for shape in ([], [5], [2, 3], [2, 3, 5], [2, 3, 5, 2], [0, 3, 5], [3, 0]):
        yield case(shape)
        yield case(shape, num_parameters=1, init=0.5)
    for shape in ([2, 3], [7, 3], [2, 3, 5], [3, 3], [2, 3, 5, 2], [2, 3, 2, 5, 3], [0, 3, 5], [0, 3], [2, 3, 0]):
        yield case(shape, num_parameters=3)
    yield case([2, 5, 3], num_parameters=5, init=-0.25)


def softmaxes():
    for kind in ("Softmax", "LogSoftmax"):
        for shape in ([5], [2, 5], [2, 3, 5], [2, 3, 5, 7], [0, 3, 5]):
            for dim in range(-len(shape), len(shape)):
                if 0 not in shape or dim % len(shape):
                    yield layer({"type": kind, "dim": dim}, shape)
    for shape in ([2, 3, 5, 7], [3, 5, 7], [0, 3, 5, 7], [2, 1, 3, 2]):
        yield layer({"type": "Softmax2d"}, shape)


def bilinears():
    def case(leading, n1, n2, out, mode="train", **options):
        config = {"type": "Bilinear", "in1_features": n1, "in2_features": n2, "out_features": out, **options}
        return layer(config, {"left": [*leading, n1], "right": [*leading, n2]}, mode)

    for leading in ([], [2], [7], [0], [2, 5], [3, 1, 2]):
        for bias in (True, False):
            yield case(leading, 3, 5, 2, bias=bias)
    yield case([2], 1, 1, 1)
    yield case([2], 5, 3, 1)
    yield case([2], 1, 7, 3)
    yield case([3], 7, 1, 5, "eval")
    yield case([2], 11, 13, 3)


def shapes():
    for shape in ([2, 3, 5], [2, 3, 5, 7], [0, 3, 5], [2, 3], [2, 0, 3]):
        yield layer({"type": "Flatten"}, shape)
        for start, end in ((0, -1), (1, 1), (1, 2), (-2, -1), (0, 1)):
            if max(start, end) < len(shape):
                yield layer({"type": "Flatten", "start_dim": start, "end_dim": end}, shape)
    for dim, sizes, shape in (
        (1, [2, 3], [5, 6]),
        (1, [3, 2], [5, 6, 7]),
        (2, [2, -1, 3], [2, 5, 12]),
        (-1, [5, 1], [2, 3, 5]),
        (1, [1, 1, 3], [2, 3]),
        (0, [2, 2], [4, 3]),
        (1, [-1], [2, 3]),
        (1, [2, 3], [0, 6]),
        (2, [0, 7], [2, 3, 0]),
    ):
        yield layer({"type": "Unflatten", "dim": dim, "unflattened_size": sizes}, shape)
    for dim, shape in ((2, [2, 3, 1, 5]), (-1, [2, 3, 1]), (1, [2, 3, 1]), (1, [2, 1]), (0, [1, 3, 5]), (2, [0, 3, 1])):
        yield layer({"type": "Squeeze", "dim": dim}, shape)
    for dim, shape in ((0, [2, 3]), (1, [2, 3]), (2, [2, 3]), (-1, [2, 3]), (-3, [2, 3]), (1, [0, 3]), (-2, [2, 3, 5])):
        yield layer({"type": "Unsqueeze", "dim": dim}, shape)
    for dim, index, shape in (
        (0, 1, [2, 3]),
        (1, 0, [2, 3, 5]),
        (1, -1, [2, 3, 5]),
        (-1, 4, [2, 3, 5]),
        (2, -5, [2, 3, 5]),
        (1, 2, [0, 3, 5]),
        (0, 2, [3]),
    ):
        yield layer({"type": "Select", "dim": dim, "index": index}, shape)
    for dim0, dim1, shape in (
        (1, 2, [2, 3, 5]),
        (2, 1, [2, 3, 5]),
        (0, 1, [2, 3]),
        (-1, 1, [2, 3, 5, 7]),
        (1, 1, [2, 3]),
        (1, 3, [2, 3, 5, 2]),
        (1, 2, [0, 3, 5]),
    ):
        yield layer({"type": "Transpose", "dim0": dim0, "dim1": dim1}, shape)
    for dims, shape in (
        ([0, 2, 1], [2, 3, 5]),
        ([2, 0, 1], [2, 3, 5]),
        ([0, 3, 1, 2], [2, 3, 5, 7]),
        ([0, -1, -2], [2, 3, 5]),
        ([0, 1], [2, 3]),
        ([0], [3]),
        ([0, 2, 1], [0, 3, 5]),
        ([0, 2, 4, 1, 3], [2, 3, 1, 2, 5]),
    ):
        yield layer({"type": "Permute", "dims": dims}, shape)


def small():
    yield from slopes()
    yield from bilinears()
    yield from shapes()


FILES = {"layers_small": small, "layers_softmax": softmaxes}
