"""What all cases share: seeded values that float32 holds exactly, and their form in JSON."""

import json
import math
import zlib

import torch

STEP = 256


def generator(name):
    """A stream of its own for every case, so that a new case leaves the values of the others alone."""
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def values(stream, shape, scale=1.0):
    """Normal numbers on the grid of 1/256: exact in float32, short in print, never 0 (where kinks are)."""
    steps = torch.round(torch.randn(shape, generator=stream, dtype=torch.float64) * scale * STEP)
    return torch.where(steps == 0, 1.0, steps) / STEP


def number(value):
    """JSON has no infinities and no NaN: they become the strings "inf", "-inf", "nan"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def encode(tensor):
    """{"shape", "data"} in row-major order, with "dtype" when it is not floating; numbers on the grid of `values` as
    whole numbers "over" its fineness, which takes a third of the place."""
    tensor = tensor.detach()
    result = {"shape": list(tensor.shape), "data": [number(value) for value in tensor.flatten().tolist()]}
    if not tensor.is_floating_point():
        return {"dtype": "int64", **result}
    steps = tensor * STEP
    whole = tensor.isfinite() & steps.frac().eq(0) & (steps.abs() < 1e6) & ~(tensor.signbit() & tensor.eq(0))
    if tensor.numel() > 1 and whole.all():
        return {**result, "over": STEP, "data": steps.long().flatten().tolist()}
    return result


def describe(config):
    """`AvgPool1d with kernel_size 3, stride 2`: the options as they stand in the config."""
    options = [
        f"{key} {value if isinstance(value, str) else json.dumps(value)}"
        for key, value in config.items()
        if key != "type"
    ]
    return config["type"] + (" with " + ", ".join(options) if options else "")
