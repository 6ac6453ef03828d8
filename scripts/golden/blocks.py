"""Models whose layers are wired: residual blocks, branches, several inputs and outputs, further results."""

import random

import torch

from .case import generator, values
from .module_case import Model, model, run
from .random_models import REFUSALS, random_model, random_tensors, types_of


def network(name, inputs, layers, outputs=None, mode="train"):
    """`inputs` are {name: shape, or a tensor of indices}."""
    stream = generator(name)
    declared = {}
    for key, given in inputs.items():
        is_tensor = torch.is_tensor(given)
        declared[key] = {"shape": list(given.shape if is_tensor else given)[1:], "dtype": "int64" if is_tensor else "float32"}
    head = {"name": name, "model": {"inputs": declared, "layers": layers}}
    if outputs:
        head["model"]["outputs"] = outputs
    xs = {key: given if torch.is_tensor(given) else values(stream, given) for key, given in inputs.items()}
    return run(head, Model(layers, list(inputs), outputs), xs, stream, mode)


def conv(dims, channels_in, channels_out, kernel=3, padding=1, **options):
    return {"type": f"Conv{dims}d", "in_channels": channels_in, "out_channels": channels_out, "kernel_size": kernel,
            "padding": padding, **options}


def residual(dims, channels, name):
    return {"type": "Graph", "name": name, "layers": [
        conv(dims, channels, channels, name="conv1", bias=False),
        {"type": f"BatchNorm{dims}d", "name": "bn1", "num_features": channels},
        {"type": "Tanh"},
        conv(dims, channels, channels, name="conv2", bias=False),
        {"type": f"BatchNorm{dims}d", "name": "bn2", "num_features": channels},
        {"type": "Add", "name": "sum", "inputs": ["bn2", "input"]},
        {"type": "SiLU"},
    ]}


def down(dims, channels_in, channels_out, name):
    return {"type": "Graph", "name": name, "layers": [
        conv(dims, channels_in, channels_out, name="conv", stride=2),
        {"type": "Sequential", "name": "shortcut", "inputs": ["input"], "layers": [
            conv(dims, channels_in, channels_out, kernel=1, padding=0, stride=2)]},
        {"type": "Add", "inputs": ["conv", "shortcut"]},
    ]}


def blocks():
    for mode in ("train", "eval"):
        yield model(f"a residual block of Conv1d and BatchNorm1d in {mode} mode", [2, 3, 7], [residual(1, 3, "block")], mode)
        yield model(f"two residual blocks of Conv2d in {mode} mode", [2, 2, 5, 3],
                    [residual(2, 2, "block1"), residual(2, 2, "block2")], mode)
    yield model("a block with a shortcut of its own", [2, 2, 7], [down(1, 2, 3, "down")])
    yield model("a small residual network", [3, 1, 5, 7], [
        conv(2, 1, 2, name="stem"), residual(2, 2, "layer1"), down(2, 2, 3, "layer2"),
        {"type": "AdaptiveAvgPool2d", "output_size": 1}, {"type": "Flatten"},
        {"type": "Linear", "name": "fc", "in_features": 3, "out_features": 5},
    ])
    yield model("a graph in a Sequential in a graph", [2, 3, 5], [
        {"type": "Graph", "name": "outer", "layers": [
            {"type": "Sequential", "name": "middle", "layers": [
                {"type": "Graph", "layers": [
                    {"type": "Linear", "in_features": 5, "out_features": 5}, {"type": "Multiply", "inputs": ["0", "input"]}]},
                {"type": "Tanh"}]},
            {"type": "Add", "inputs": ["middle", "input", "middle"]}]},
        {"type": "Linear", "in_features": 5, "out_features": 2},
    ])
    yield model("a dense block, every layer reading all before it", [2, 2, 5], [
        conv(1, 2, 3, name="a"), {"type": "Concat", "dim": 1, "name": "b", "inputs": ["input", "a"]},
        conv(1, 5, 2, name="c"), {"type": "Concat", "dim": 1, "inputs": ["input", "a", "c"]},
    ])
    yield model("the inner results of a block read from outside", [2, 3, 7], [
        {"type": "Graph", "name": "block", "outputs": ["halved", "first", "input"], "layers": [
            conv(1, 3, 2, name="first"), {"type": "AvgPool1d", "name": "halved", "kernel_size": 2}]},
        {"type": "Tanh"},
        {"type": "Concat", "dim": 2, "inputs": ["1", "block.first"]},
    ])
    yield model("an Inception block of four branches", [2, 3, 5, 5], [
        conv(2, 3, 2, kernel=1, padding=0, name="one"),
        {"type": "Sequential", "name": "three", "inputs": ["input"], "layers": [conv(2, 3, 1, kernel=1, padding=0), conv(2, 1, 2)]},
        {"type": "Sequential", "name": "pool", "inputs": ["input"], "layers": [
            {"type": "MaxPool2d", "kernel_size": 3, "stride": 1, "padding": 1}, conv(2, 3, 1, kernel=1, padding=0)]},
        {"type": "AvgPool2d", "name": "mean", "inputs": ["input"], "kernel_size": 3, "stride": 1, "padding": 1},
        {"type": "Concat", "dim": 1, "inputs": ["one", "three", "pool", "mean"]},
    ])
    yield model("a squeeze-and-excitation block", [2, 3, 4, 5], [
        conv(2, 3, 5, name="conv"),
        {"type": "Sequential", "name": "gate", "layers": [
            {"type": "AdaptiveAvgPool2d", "output_size": 1}, conv(2, 5, 2, kernel=1, padding=0), {"type": "ReLU"},
            conv(2, 2, 5, kernel=1, padding=0), {"type": "Sigmoid"}]},
        {"type": "Multiply", "inputs": ["conv", "gate"]},
    ])


def joining():
    """Blocks that read several values under names of their own."""
    gate = {"type": "Graph", "name": "gate", "inputs": {"x": "a", "by": "b"}, "layers": [
        {"type": "Linear", "name": "fc", "inputs": ["by"], "in_features": 3, "out_features": 3}, {"type": "Sigmoid"},
        {"type": "Multiply", "name": "gated", "inputs": ["x", "1"]}, {"type": "Add", "inputs": ["gated", "x", "by"]}]}
    yield network("a block that reads two values", {"a": [2, 3], "b": [2, 3]}, [
        gate, {"type": "Linear", "in_features": 3, "out_features": 2}])
    yield network("a block of two inputs and two outputs in another", {"left": [2, 3, 5], "right": [2, 2, 5]}, [
        {"type": "Graph", "name": "outer", "inputs": {"r": "right", "l": "left"}, "outputs": ["sum", "l"], "layers": [
            {"type": "Graph", "name": "inner", "inputs": {"l": "l", "input": "r"}, "outputs": ["both", "input"], "layers": [
                conv(1, 3, 2, name="c"), {"type": "Add", "name": "both", "inputs": ["c", "input"]}]},
            {"type": "Multiply", "name": "sum", "inputs": ["inner", "inner.input", "r"]}]},
        {"type": "Concat", "dim": 1, "inputs": ["outer", "outer.l", "right"]},
    ])
    yield network("a block of words and the numbers beside them", {"words": torch.tensor([[1, 2], [0, 2]]), "x": [2, 3]}, [
        {"type": "Graph", "name": "read", "inputs": {"numbers": "x", "words": "words"}, "layers": [
            {"type": "Embedding", "name": "table", "inputs": ["words"], "num_embeddings": 3, "embedding_dim": 2},
            {"type": "Flatten"}, {"type": "Concat", "inputs": ["1", "numbers"], "dim": 1}]}])


def ends():
    yield network("two inputs in a Bilinear layer", {"left": [3, 5], "right": [3, 2]}, [
        {"type": "Linear", "name": "a", "inputs": ["left"], "in_features": 5, "out_features": 3}, {"type": "Tanh", "name": "t"},
        {"type": "Bilinear", "inputs": ["t", "right"], "in1_features": 3, "in2_features": 2, "out_features": 7},
    ])
    yield network("words and numbers joined", {"words": torch.tensor([[1, 4, 4], [0, 2, 3]]), "numbers": [2, 5]}, [
        {"type": "Embedding", "name": "table", "inputs": ["words"], "num_embeddings": 5, "embedding_dim": 2, "padding_idx": 0},
        {"type": "Flatten", "name": "flat"},
        {"type": "Concat", "dim": 1, "inputs": ["flat", "numbers"]},
        {"type": "Linear", "name": "fc", "in_features": 11, "out_features": 3},
    ])
    yield network("two outputs of one trunk", {"x": [3, 5]}, [
        {"type": "Linear", "name": "trunk", "in_features": 5, "out_features": 7}, {"type": "ReLU", "name": "relu"},
        {"type": "Linear", "name": "classes", "in_features": 7, "out_features": 3},
        {"type": "Linear", "name": "box", "inputs": ["relu"], "in_features": 7, "out_features": 4},
    ], ["classes", "box", "trunk"])
    yield network("an output that is an input, and an inner one", {"a": [2, 3], "b": [2, 3]}, [
        {"type": "Multiply", "name": "product", "inputs": ["a", "b"]}, {"type": "Add", "inputs": ["product", "a"]},
    ], ["1", "b", "product"])
    torch.use_deterministic_algorithms(False)  # as in max_pool.py
    yield network("an autoencoder with the indices of its max pool", {"x": [2, 3, 8]}, [
        conv(1, 3, 2, name="conv"),
        {"type": "MaxPool1d", "name": "pool", "kernel_size": 2, "return_indices": True},
        {"type": "Tanh", "name": "code"},
        {"type": "MaxUnpool1d", "inputs": ["code", "pool.indices"], "kernel_size": 2},
        conv(1, 2, 3, name="back"),
    ], ["back", "pool.indices", "code"])
    torch.use_deterministic_algorithms(True)
    yield network("the last states of an LSTM", {"x": [2, 5, 3]}, [
        {"type": "LSTM", "name": "lstm", "input_size": 3, "hidden_size": 2, "num_layers": 2, "batch_first": True},
        {"type": "Select", "name": "last", "dim": 1, "index": -1},
        {"type": "Linear", "name": "fc", "in_features": 2, "out_features": 3},
    ], ["fc", "lstm.h_n", "lstm.c_n"])
    yield network("two towers of one shape compared", {"left": [3, 2, 5], "right": [3, 2, 5]}, [
        {"type": "Sequential", "name": "tower1", "inputs": ["left"], "layers": [conv(1, 2, 3), {"type": "Flatten"}]},
        {"type": "Sequential", "name": "tower2", "inputs": ["right"], "layers": [conv(1, 2, 3), {"type": "Flatten"}]},
        {"type": "Multiply", "inputs": ["tower1", "tower2"]},
        {"type": "Linear", "in_features": 15, "out_features": 1},
    ], mode="eval")
    yield network("empty batches of several inputs", {"left": [0, 5], "right": [0, 5]}, [
        {"type": "Add", "inputs": ["left", "right"]}, {"type": "Linear", "in_features": 5, "out_features": 2}])


def wired():
    yield from blocks()
    yield from joining()
    yield from ends()


def plain(case):
    """Whether all inputs are read, and no gradient is rounding made large, as that of a bias before a norm."""
    read = all(
        case["grad_inputs"][name] or given["dtype"] == "int64" for name, given in case["model"]["inputs"].items()
    )
    largest = [max(map(abs, g["data"]), default=0) for g in case["grad_parameters"].values() if g]
    return read and all(value == 0 or 0.01 < value < 20 for value in largest)


def drawn():
    rng = random.Random(7)
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(False)  # as in max_pool.py
    index = 0
    while index < 40:
        mode = rng.choice(["train", "eval"])
        config = random_model(rng, mode)
        kinds = ", ".join(types_of(config["layers"]))
        inputs = {
            name: x if x.dtype == torch.int64 else list(x.shape)
            for name, x in random_tensors(rng, config, rng.choice([2, 2, 2, 3])).items()
        }
        try:
            case = network(f"drawn model {index}: {kinds}", inputs, config["layers"], config["outputs"], mode)
        except REFUSALS:
            continue
        if plain(case):
            index += 1
            yield case
    torch.use_deterministic_algorithms(True)


FILES = {"models_wired": wired, "models_drawn": drawn}
