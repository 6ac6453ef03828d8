"""Normalisation layers: every option, training and evaluation, running statistics after the step, empty batches."""

import itertools

import torch

from .case import generator, values
from .module_case import layer

MODES = ("train", "eval")
BATCHED = {1: [3, 2, 4], 2: [4, 2, 1, 3], 3: [3, 2, 1, 4, 1]}


def batch_norms():
    def case(dims, shape, mode="train", **options):
        return layer({"type": f"BatchNorm{dims}d", "num_features": shape[1], **options}, shape, mode)

    for dims, shape in BATCHED.items():
        for mode, affine, tracked in itertools.product(MODES, (True, False), (True, False)):
            yield case(dims, shape, mode, affine=affine, track_running_stats=tracked)
        for mode in MODES:
            yield case(dims, shape, mode)
            yield case(dims, shape, mode, bias=False)
            yield case(dims, shape, mode, momentum=0.3, eps=0.25)
            yield case(dims, shape, mode, momentum=None)
            yield case(dims, [0, *shape[1:]], mode)
            yield case(dims, [1, *shape[1:]], mode)
            yield case(dims, shape, mode, eps=1e-3, momentum=0.75, bias=False, affine=True)
        yield case(dims, shape, "eval", eps=2.0)
        yield case(dims, shape, momentum=0.0)
        yield case(dims, shape, momentum=1.0)
    for mode in MODES:
        yield case(1, [5, 3], mode)
        yield case(1, [5, 3], mode, affine=False, momentum=None)
        yield case(1, [7, 1], mode, track_running_stats=False)
        yield case(1, [2, 11], mode)
        yield case(1, [0, 3], mode)
        yield case(1, [2, 17], mode)
        yield case(1, [2, 3, 0], mode)
        yield case(1, [2, 3, 1], mode)
        yield case(1, [1, 3, 2], mode)
        yield case(1, [2, 11, 6], mode)
        yield case(1, [2, 5, 7], mode)
        yield case(1, [2, 3, 16], mode)
        yield case(1, [3, 1, 37], mode)
        yield case(2, [2, 5, 1, 3], mode)
        yield case(2, [2, 3, 5, 4], mode)
        yield case(2, [2, 3, 0, 5], mode)
        yield case(2, [2, 3, 11, 1], mode, bias=False)
        yield case(3, [2, 3, 1, 1, 5], mode)
        yield case(3, [3, 1, 2, 4, 5], mode, momentum=None)
    yield case(1, [1, 3], "eval")
    yield case(1, [1, 3, 1], "eval")
    yield case(2, [1, 3, 1, 1], "eval")


def instance_norms():
    def case(dims, shape, mode="train", batched=True, **options):
        channels = shape[1] if batched else shape[0]
        return layer({"type": f"InstanceNorm{dims}d", "num_features": channels, **options}, shape, mode)

    for dims, shape in BATCHED.items():
        for mode, affine, tracked in itertools.product(MODES, (True, False), (True, False)):
            yield case(dims, shape, mode, affine=affine, track_running_stats=tracked)
        for mode in MODES:
            yield case(dims, shape, mode)
            yield case(dims, shape, mode, affine=True, bias=False)
            yield case(dims, shape, mode, affine=True, track_running_stats=True, momentum=0.3, eps=0.25)
            yield case(dims, [1, *shape[1:]], mode, track_running_stats=True)
            yield case(dims, shape[1:], mode, batched=False)
            yield case(dims, shape[1:], mode, batched=False, affine=True, track_running_stats=True)
            yield case(dims, [0, *shape[1:]], mode)
        yield case(dims, shape, momentum=1.0, track_running_stats=True)
        yield case(dims, [1, 3, 2, 1, 1][: dims + 2])
    for mode in MODES:
        yield case(1, [2, 3, 0], mode)
        yield case(1, [2, 7, 2], mode, affine=True)
        yield case(1, [2, 3, 19], mode, affine=True)
        yield case(2, [2, 3, 1, 5], mode, affine=True, track_running_stats=True)
    yield case(1, [2, 3, 1], "eval", track_running_stats=True)


def layer_norms():
    def case(shape, normalized, **options):
        return layer({"type": "LayerNorm", "normalized_shape": normalized, **options}, shape)

    for shape, normalized in (
        ([3, 5], 5), ([3, 5], [5]), ([5], 5), ([2, 3, 5], 5), ([2, 3, 5], [3, 5]), ([3, 5], [3, 5]),
        ([1, 2, 3, 7], 7), ([1, 2, 3, 7], [3, 7]), ([1, 2, 3, 5], [2, 3, 5]),
        ([2, 17], 17), ([1, 23], 23),
    ):
        yield case(shape, normalized)
        yield case(shape, normalized, elementwise_affine=False)
        yield case(shape, normalized, bias=False)
        yield case(shape, normalized, eps=0.25)
    for shape, normalized in (
        ([0, 3], 3), ([0, 3, 5], [3, 5]), ([2, 0, 3], 3), ([2, 0], 0), ([2, 3, 0], [3, 0]), ([2, 3, 1], [3, 1]),
    ):
        yield case(shape, normalized)
        yield case(shape, normalized, bias=False, eps=0.125)


def rms_norms():
    def case(shape, normalized, **options):
        return layer({"type": "RMSNorm", "normalized_shape": normalized, **options}, shape)

    for shape, normalized in (
        ([3, 5], 5), ([5], 5), ([2, 3, 5], 5), ([2, 3, 5], [3, 5]), ([3, 5], [3, 5]), ([1, 2, 3, 7], 7),
        ([1, 2, 3, 7], [3, 7]), ([2, 17], 17), ([1, 23], [23]),
    ):
        yield case(shape, normalized)
        yield case(shape, normalized, elementwise_affine=False)
        yield case(shape, normalized, eps=0.25)
        yield case(shape, normalized, eps=1e-5, elementwise_affine=False)
    for shape, normalized in (([0, 3], 3), ([2, 0], 0), ([2, 3, 0], [3, 0])):
        yield case(shape, normalized)
        yield case(shape, normalized, eps=0.125)


def group_norms():
    def case(shape, groups, **options):
        return layer({"type": "GroupNorm", "num_groups": groups, "num_channels": shape[1], **options}, shape)

    # One or two values in a group leave PyTorch's own rounding errors as the gradient.
    for shape in ([2, 6, 3], [3, 6], [1, 6, 3, 2], [1, 6, 2, 1, 3], [3, 6, 1], [5, 6, 2]):
        for groups in (1, 2, 3, 6):
            if shape[1] * torch.Size(shape[2:]).numel() > 2 * groups:
                yield case(shape, groups)
        yield case(shape, 2, affine=False)
        yield case(shape, 3, bias=False)
        yield case(shape, 2, eps=0.25)
    for shape, groups in (
        ([0, 6, 5], 2), ([0, 6], 3), ([1, 6], 2), ([1, 6, 2], 3),
        ([2, 10, 3], 5), ([2, 7, 3], 7), ([2, 7, 3], 1), ([1, 4, 17], 2), ([3, 22], 2),
    ):
        yield case(shape, groups)
        yield case(shape, groups, affine=False, eps=0.125)
    yield case([2, 6, 0], 2, affine=False)


def channel_norms():
    yield from batch_norms()
    yield from instance_norms()


def row_norms():
    yield from layer_norms()
    yield from rms_norms()
    yield from group_norms()
    yield from far_from_zero()


def far_from_zero():
    """Means as far off as PyTorch itself is exact, and input that is constant."""
    for config, shape in (
        ({"type": "BatchNorm1d", "num_features": 3}, [5, 3, 2]),
        ({"type": "BatchNorm1d", "num_features": 3}, [2, 3, 17]),
        ({"type": "InstanceNorm1d", "num_features": 3, "affine": True}, [2, 3, 7]),
        ({"type": "LayerNorm", "normalized_shape": 7}, [3, 7]),
        ({"type": "RMSNorm", "normalized_shape": 7}, [3, 7]),
        ({"type": "GroupNorm", "num_groups": 2, "num_channels": 6}, [2, 6, 5]),
    ):
        for mean in (10, 100):
            x = values(generator(f"{config} {mean}"), shape) + mean
            yield renamed(layer(config, {"input": x}), config, shape, f"values near {mean}")
        if config["type"] != "LayerNorm":
            yield renamed(layer(config, {"input": torch.full(shape, 3.25, dtype=torch.float64)}), config, shape, "constants")


def renamed(case, config, shape, what):
    options = ", ".join(f"{key} {value}" for key, value in config.items() if key != "type")
    case = {**case, "name": f"{config['type']} with {options} on {shape}, {what}"}
    for key in ("input", "grad_input"):
        case[key] = case.pop(key + "s")["input"]
    return case


FILES = {"layers_channel_norm": channel_norms, "layers_row_norm": row_norms}
