"""Padding layers in one to three dimensions: every kind, both sides apart, crops, the limits, empty batches."""

from .module_case import layer

KINDS = ("ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad")
SHAPES = {1: [2, 3, 5], 2: [2, 3, 4, 5], 3: [2, 1, 2, 3, 4]}
SIDES = {
    1: (1, [1, 2], [3, 0], [0, 1], [-1, 2], [2, -1], [-1, -2], 0),
    2: (1, [1, 2, 3, 0], [0, 1, 1, 0], [4, 0, 0, 3], [-1, 2, 1, -2], [0, 0, 2, 1], [-1, -2, -1, 0]),
    3: (1, [1, 2, 0, 1, 1, 0], [0, 0, 0, 0, 0, 1], [-1, 2, 1, -1, 0, 1], [0, 1, -1, -1, 1, 0]),
}


def padding():
    def case(kind, dims, padding, shape):
        value = {"value": 1.75} if kind == "ConstantPad" else {}
        return layer({"type": f"{kind}{dims}d", "padding": padding, **value}, shape)

    for kind in KINDS:
        for dims, shape in SHAPES.items():
            for sides in SIDES[dims]:
                yield case(kind, dims, sides, shape)
            yield case(kind, dims, 1, shape[1:])
            yield case(kind, dims, SIDES[dims][1], shape[1:])
            yield case(kind, dims, SIDES[dims][1], [0, *shape[1:]])
    # As far as each kind goes.
    yield case("ReflectionPad", 1, [4, 3], [2, 3, 5])
    yield case("ReflectionPad", 2, [4, 4, 2, 2], [2, 1, 3, 5])
    yield case("ReflectionPad", 1, [-3, 4], [2, 3, 5])
    yield case("ReflectionPad", 1, [2, -6], [2, 3, 5])
    yield case("ReplicationPad", 1, [11, 7], [2, 3, 5])
    yield case("ReplicationPad", 1, [3, 2], [2, 3, 1])
    yield case("ReplicationPad", 1, [6, -6], [2, 3, 5])
    yield case("ReplicationPad", 1, [-7, 9], [2, 3, 5])
    yield case("CircularPad", 1, [5, 4], [2, 3, 5])
    yield case("CircularPad", 1, [-1, 4], [2, 3, 5])
    yield case("CircularPad", 2, [5, 2, 3, 1], [2, 1, 3, 5])
    yield case("CircularPad", 1, [1, 1], [2, 3, 1])
    yield case("ConstantPad", 1, [-2, -3], [2, 3, 5])
    yield case("ConstantPad", 1, [6, -5], [2, 3, 5])
    yield case("ConstantPad", 1, [2, 1], [5])
    yield case("ConstantPad", 2, [2, 1, 0, 1], [3, 5])
    yield case("ZeroPad", 1, [2, 1], [2, 3, 5, 2])
    yield layer({"type": "ConstantPad1d", "padding": [1, 2], "value": -0.5}, [2, 3, 5])
    yield layer({"type": "ConstantPad1d", "padding": [1, 2], "value": 3}, [0, 3, 5])


FILES = {"layers_pad": padding}
