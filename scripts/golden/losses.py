"""Losses: output and gradient of the input."""

import itertools

import torch
from torch import nn

from .case import describe, encode, generator, values

REDUCTIONS = ("mean", "sum", "none")


def build(config):
    options = {
        key: torch.tensor(value, dtype=torch.float64) if key in ("weight", "pos_weight") else value
        for key, value in config.items()
        if key != "type"
    }
    return getattr(nn, config["type"])(**options)


def finish(name, config, x, target, stream):
    x.requires_grad_()
    y = build(config)(x, target)
    grad_output = values(stream, y.shape)
    y.backward(grad_output)
    return {
        "name": name,
        "loss": config,
        "input": encode(x),
        "target": encode(target),
        "grad_output": encode(grad_output),
        "output": encode(y),
        "grad_input": encode(x.grad),
    }


def indices(config, shape, ignored=(), labels=None, scale=1.0):
    """A loss against class indices; `shape` is [N, C, ...] or [C], `ignored` are flat positions without a class."""
    name = f"{describe(config)}, class indices for scores {shape}" + (", some ignored" if ignored else "")
    stream = generator(name)
    x = values(stream, shape, scale)
    classes, target_shape = (shape[1], shape[:1] + shape[2:]) if len(shape) > 1 else (shape[0], [])
    target = torch.randint(0, classes, target_shape, generator=stream)
    if labels is not None:
        target = torch.tensor(labels).reshape(target_shape)
    for position in ignored:
        target.view(-1)[position] = config.get("ignore_index", -100)
    return finish(name, config, x, target, stream)


def probabilities(config, shape):
    """A loss against one probability for every class, in multiples of 1/64 that sum to 1."""
    name = f"{describe(config)}, probabilities for scores {shape}"
    stream = generator(name)
    x = values(stream, shape)
    dim = 1 if len(shape) > 1 else 0
    draws = torch.randint(0, shape[dim], (64, *shape[:dim], *shape[dim + 1 :]), generator=stream)
    target = nn.functional.one_hot(draws, shape[dim]).sum(0).double().movedim(-1, dim) / 64
    return finish(name, config, x, target, stream)


def pair(config, shape, kind="numbers", scale=1.0):
    """A loss between two tensors of one shape; `kind` says what the targets are."""
    name = f"{describe(config)} between {shape} and {kind}" + ("" if scale == 1 else f", scores times {scale:g}")
    stream = generator(name)
    x = values(stream, shape, scale)
    if kind == "numbers":
        target = values(stream, shape)
    elif kind == "0 and 1":
        target = torch.randint(0, 2, shape, generator=stream).double()
    elif kind == "probabilities":
        target = torch.randint(0, 65, shape, generator=stream).double() / 64
    else:
        target = x.clone()
    return finish(name, config, x, target, stream)


def classification():
    for kind in ("CrossEntropyLoss", "NLLLoss"):
        yield indices({"type": kind}, [3, 5])
        for reduction in REDUCTIONS:
            config = {"type": kind, "reduction": reduction}
            yield indices(config, [3, 5])
            yield indices({**config, "weight": [0.5, 1.25, 2.0, 0.25, 0.75]}, [7, 5])
            yield indices({**config, "weight": [0.5, 1.25, 0.0], "ignore_index": 2}, [5, 3], ignored=(1, 3))
            yield indices({**config, "ignore_index": -1}, [5, 3], ignored=(0, 4))
            yield indices(config, [5, 3], ignored=(2,))
            yield indices(config, [2, 3, 5])
            yield indices({**config, "weight": [0.5, 1.25, 2.0]}, [2, 3, 5], ignored=(4, 7))
        yield indices({"type": kind}, [7])
        yield indices({"type": kind, "reduction": "none", "weight": [0.5, 1.25, 2.0]}, [3])
        yield indices({"type": kind}, [2, 3, 5, 7])
        yield indices({"type": kind, "reduction": "sum"}, [0, 3])
        yield indices({"type": kind, "reduction": "none"}, [0, 3])
    for reduction in REDUCTIONS:
        config = {"type": "CrossEntropyLoss", "reduction": reduction}
        yield indices({**config, "label_smoothing": 0.125}, [3, 5])
        yield indices({**config, "label_smoothing": 1.0}, [3, 5])
        yield indices({**config, "label_smoothing": 0.25, "weight": [0.5, 1.25, 2.0]}, [5, 3])
        yield indices(
            {**config, "label_smoothing": 0.25, "weight": [0.5, 1.25, 2.0], "ignore_index": 1}, [5, 3], ignored=(1, 3)
        )
        yield indices({**config, "label_smoothing": 0.25}, [2, 3, 5], ignored=(4,))
        yield probabilities(config, [3, 5])
        yield probabilities({**config, "weight": [0.5, 1.25, 2.0]}, [5, 3])
        yield probabilities({**config, "label_smoothing": 0.25}, [3, 5])
        yield probabilities({**config, "label_smoothing": 0.25, "weight": [0.5, 1.25, 2.0]}, [2, 3, 5])
    yield probabilities({"type": "CrossEntropyLoss"}, [7])
    yield indices({"type": "CrossEntropyLoss", "reduction": "none"}, [3, 2], scale=1000.0)
    yield indices(
        {"type": "CrossEntropyLoss", "ignore_index": 255, "reduction": "none"}, [6, 3], labels=[0, 1, 255, 0, 1, 2]
    )
    yield indices(
        {"type": "CrossEntropyLoss", "weight": [0.25, 0.375], "label_smoothing": 0.125}, [2, 2], labels=[-100, 1]
    )


def regression():
    shapes = ([7], [3, 5], [2, 3, 5], [])
    for kind, options in (
        ("MSELoss", ({},)), ("L1Loss", ({},)), ("SmoothL1Loss", ({}, {"beta": 0.25}, {"beta": 2.0}, {"beta": 0.0})),
        ("HuberLoss", ({}, {"delta": 0.25}, {"delta": 2.0})),
    ):
        for option in options:
            for reduction in REDUCTIONS:
                yield pair({"type": kind, **option, "reduction": reduction}, [3, 5])
            yield pair({"type": kind, **option, "reduction": "none"}, [5], kind="itself")
        for shape in shapes:
            yield pair({"type": kind}, shape)
        yield pair({"type": kind, "reduction": "sum"}, [0, 3])


def binary():
    kind = {"type": "BCEWithLogitsLoss"}
    weight, pos_weight = {"weight": [0.5, 1.25, 2.0, 0.0, 0.75]}, {"pos_weight": [2.0, 0.25, 1.0, 3.5, 0.0]}
    for reduction in REDUCTIONS:
        for options in ({}, weight, pos_weight, {**weight, **pos_weight}):
            yield pair({**kind, **options, "reduction": reduction}, [3, 5], kind="0 and 1")
    yield pair({**kind, **weight, **pos_weight}, [3, 5], kind="probabilities")
    yield pair(kind, [2, 3, 5], kind="probabilities")
    yield pair({**kind, **pos_weight}, [2, 3, 5], kind="0 and 1")
    yield pair(kind, [7], kind="0 and 1")
    yield pair(kind, [], kind="0 and 1")
    yield pair({**kind, "reduction": "none"}, [11], kind="0 and 1", scale=300.0)
    yield pair({**kind, "pos_weight": [2.5], "reduction": "none"}, [11], kind="0 and 1", scale=300.0)
    yield pair({**kind, "reduction": "sum"}, [0, 3], kind="0 and 1")


def combinations(**choices):
    """Every config of one value for each key; None leaves the key out."""
    for row in itertools.product(*choices.values()):
        yield {key: value for key, value in zip(choices, row) if value is not None}


def classification_grid():
    weights = {2: [0.5, 1.25], 3: [0.5, 1.25, 2.0], 4: [0.75, 0.0, 1.5, 0.25]}
    for kind in ("CrossEntropyLoss", "NLLLoss"):
        smoothing = (None, 0.25) if kind == "CrossEntropyLoss" else (None,)
        for options in combinations(
            weight=(None, True), ignore_index=(None, 1, -7), label_smoothing=smoothing, reduction=REDUCTIONS
        ):
            for shape, ignored in (([4], ()), ([5, 2], (1, 4)), ([3, 4, 2], (0, 5)), ([2, 3, 1, 2], (3,)), ([0, 3, 2], ())):
                classes = shape[1] if len(shape) > 1 else shape[0]
                config = {"type": kind, **options}
                if "weight" in config:
                    config["weight"] = weights[classes]
                if shape == [4] and config.get("ignore_index") == 1:
                    config["ignore_index"] = 9
                case = indices(config, shape, ignored=ignored)
                if "nan" not in case["output"]["data"]:  # a mean over no targets
                    yield case
    for options in combinations(weight=(None, True), label_smoothing=(None, 0.125, 1.0), reduction=REDUCTIONS):
        for shape in ([3], [2, 3], [2, 3, 2], [1, 3, 2, 2]):
            config = {"type": "CrossEntropyLoss", **options}
            if "weight" in config:
                config["weight"] = weights[3]
            if not (shape == [2, 3, 2] and "weight" in config and config.get("label_smoothing")):
                yield probabilities(config, shape)


def regression_grid():
    for kind, key, choices in (
        ("MSELoss", "none", (None,)), ("L1Loss", "none", (None,)), ("SmoothL1Loss", "beta", (0.5, 3.0)),
        ("HuberLoss", "delta", (0.5, 3.0)),
    ):
        for options in combinations(**{key: choices}, reduction=REDUCTIONS):
            for shape in ([], [2], [3, 1, 2], [0, 2]):
                if not (shape == [0, 2] and options["reduction"] == "mean"):
                    yield pair({"type": kind, **options}, shape)


def binary_grid():
    for options in combinations(
        weight=(None, [0.75], [0.5, 0.0, 2.0]), pos_weight=(None, [1.5], [2.0, 0.25, 0.0]), reduction=REDUCTIONS
    ):
        for shape, kind in (([3], "0 and 1"), ([2, 3], "probabilities"), ([2, 1, 3], "0 and 1")):
            yield pair({"type": "BCEWithLogitsLoss", **options}, shape, kind=kind, scale=3.0)


def losses():
    for group in (classification, regression, binary, classification_grid, regression_grid, binary_grid):
        yield from group()


FILES = {"losses": losses}
