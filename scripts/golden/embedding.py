"""Embedding: indices of every rank, repeated and missing rows, a padding row, gradients by frequency,
rows of bounded length."""

import torch

from .case import generator
from .module_case import layer

ROWS, WIDTH = 7, 3


def indices(name, shape, rows=ROWS):
    return torch.randint(0, rows, shape, generator=generator(name))


def embedding():
    def case(index, rows=ROWS, width=WIDTH, mode="train", **options):
        config = {"type": "Embedding", "num_embeddings": rows, "embedding_dim": width, **options}
        return layer(config, {"input": index}, mode)

    choices = [
        {},
        {"padding_idx": 0},
        {"padding_idx": 2},
        {"padding_idx": 6},
        {"padding_idx": -1},
        {"padding_idx": -7},
        {"scale_grad_by_freq": True},
        {"padding_idx": 1, "scale_grad_by_freq": True},
    ]
    for options in choices:
        for shape in ([], [5], [2, 5], [0, 5], [2, 0], [2, 3, 5], [11, 2]):
            yield case(indices(f"indices {options} {shape}", shape), **options)
    yield case(torch.tensor([[2, 2, 2], [2, 2, 2]]))
    yield case(torch.tensor([[2, 2, 2], [2, 2, 2]]), padding_idx=2)
    yield case(torch.tensor([[2, 2, 3], [2, 5, 2]]), scale_grad_by_freq=True)
    yield case(torch.tensor([[0, 6], [6, 0], [0, 6]]))
    yield case(torch.tensor([[0, 0], [0, 0], [0, 0]]), rows=1, width=5)
    yield case(torch.tensor([[0, 0], [0, 0]]), rows=1, width=1, padding_idx=0)
    yield case(indices("wide", [2, 3], 5), rows=5, width=67)
    yield case(indices("many", [97], 3), rows=3, width=2)
    yield case(indices("many by frequency", [97], 3), rows=3, width=2, scale_grad_by_freq=True)
    bounds = [
        {"max_norm": 1.0},
        {"max_norm": 0.25, "norm_type": 1.0},
        {"max_norm": 0.5, "norm_type": 3.0, "padding_idx": 1},
        {"max_norm": 0.75, "norm_type": 0.5, "scale_grad_by_freq": True},
        {"max_norm": 1.5, "norm_type": 0.0},
        {"max_norm": 0.25, "norm_type": -1.0, "padding_idx": -2},
        {"max_norm": 0.0},
        {"max_norm": 100.0},
    ]
    for options in bounds:
        for mode in ("train", "eval"):
            yield case(indices(f"bound {options} {mode}", [2, 3]), mode=mode, **options)
    yield case(indices("bound of none", [0, 5]), max_norm=0.5)
    yield case(indices("bound of one", []), max_norm=0.5)


FILES = {"layers_embedding": embedding}
