"""Losses: output and gradient of the input."""

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


def losses():
    yield from classification()
    yield from regression()
    yield from binary()


FILES = {"losses": losses}
