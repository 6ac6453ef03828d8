"""The printed form of tensors."""

import torch

from .case import encode


def printing():
    generator = torch.Generator().manual_seed(20)

    def random(*shape, scale=1.0, dtype=torch.float64):
        return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(torch.float32).to(dtype)

    nan, inf = float("nan"), float("inf")
    float32, float64, int64 = torch.float32, torch.float64, torch.int64
    values = [
        ("scalar", torch.tensor(3.5)),
        ("whole scalar", torch.tensor(3.0)),
        ("scalar 0", torch.tensor(0.0)),
        ("scalar -0", torch.tensor(-0.0)),
        ("nan", torch.tensor(nan)),
        ("tiny scalar", torch.tensor(1e-5)),
        ("0.0001", torch.tensor([0.0001])),
        ("0.0001 in float64", torch.tensor([0.0001], dtype=float64)),
        ("whole numbers", torch.tensor([[1.0, 2.0], [3.0, 4.0]])),
        ("whole numbers and infinite ones", torch.tensor([1.0, -inf, inf, nan, -20.0])),
        ("fractions and infinite ones", torch.tensor([0.25, -inf, inf, nan, -20.0])),
        ("only infinite ones", torch.tensor([nan, -inf, inf])),
        ("zeros", torch.zeros(2, 3)),
        ("zeros of both signs", torch.tensor([0.0, -0.0, 1.0])),
        ("ratio of exactly 1000", torch.tensor([0.5, 500.0])),
        ("ratio above 1000", torch.tensor([0.5, 500.5, 0.0, nan, -inf])),
        ("whole with ratio above 1000", torch.tensor([1.0, 1001.0, 0.0, inf])),
        ("1e8", torch.tensor([1e8, 2e8])),
        ("above 1e8", torch.tensor([1.5e8, 2e8])),
        ("large", torch.tensor([1e300, 3e299], dtype=float64)),
        ("rounding half", torch.tensor([0.00025, 0.00035, 0.03125, 2.5])),
        ("float64", random(2, 3)),
        ("int64", torch.tensor([[1, -20, 300], [4, 5, 6]])),
        ("extreme int64", torch.tensor([2**63 - 1, -(2**63), 0])),
        ("int64 scalar", torch.tensor(7)),
        ("empty", torch.zeros(0)),
        ("empty float64", torch.zeros(0, dtype=float64)),
        ("empty int64", torch.zeros(0, dtype=int64)),
        ("empty matrix", torch.zeros(2, 0)),
        ("empty cube", torch.zeros(0, 3, 5, dtype=float64)),
        ("one of each dimension", torch.ones(1, 1, 1, 1)),
        ("long vector", random(29, dtype=float32)),
        ("long vector in float64", random(37)),
        ("long rows", random(3, 17, scale=100, dtype=float32)),
        ("rows in scientific form", random(2, 11, scale=1e5, dtype=float32)),
        ("cube", random(2, 3, 5, dtype=float32)),
        ("four dimensions", random(2, 1, 3, 2)),
        ("long int64", torch.arange(53) * 7919 - 40000),
        ("1000 elements", torch.arange(1000, dtype=float32)),
        ("1001 elements", torch.arange(1001, dtype=float32)),
        ("elided matrix", random(40, 29, dtype=float32)),
        ("elided rows only", torch.arange(3003).reshape(1001, 3)),
        ("elided columns only", torch.arange(3003).reshape(3, 1001)),
        ("elided cube", random(11, 13, 17)),
        ("elided with large middle", torch.tensor([1.5] * 500 + [1e9] + [2.5] * 600)),
    ]
    for name, x in values:
        plain = str(x).replace("torch.", "")
        leaf = None if x.dtype == int64 else str(x.clone().requires_grad_()).replace("torch.", "")
        yield {"name": name, "tensor": {**encode(x), "dtype": str(x.dtype).removeprefix("torch.")}, "text": plain, "leaf": leaf}


FILES = {"printing": printing}
