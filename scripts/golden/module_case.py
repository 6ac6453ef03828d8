"""How a case of a layer or a small model is made: one forward and backward, with all that it reads and changes."""

import torch
from torch import nn

from .case import describe, encode, generator, values


class Joined(nn.Module):
    """Add, Multiply and Concat, which PyTorch has as functions only."""

    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, *inputs):
        if self.config["type"] == "Concat":
            return torch.cat(inputs, dim=self.config["dim"])
        total = inputs[0]
        for other in inputs[1:]:
            total = total + other if self.config["type"] == "Add" else total * other
        return total


# Layers that PyTorch has as functions of a tensor and the layer's options.
FUNCTIONS = {
    "Permute": lambda x, dims: x.permute(dims),
    "Select": lambda x, dim, index: x.select(dim, index),
    "Squeeze": lambda x, dim: x.squeeze(dim),
    "Transpose": lambda x, dim0, dim1: x.transpose(dim0, dim1),
    "Unsqueeze": lambda x, dim: x.unsqueeze(dim),
}


class Function(nn.Module):
    def __init__(self, function, options):
        super().__init__()
        self.function, self.options = function, options

    def forward(self, x):
        return self.function(x, **self.options)


class Cell(nn.LSTMCell):
    """Takes both states also as inputs of their own."""

    def forward(self, x, *states):
        return super().forward(x, states[0] if len(states) == 1 else states or None)


class Unpool(nn.Module):
    """With the output size among its options."""

    def __init__(self, config):
        super().__init__()
        options = {key: value for key, value in config.items() if key not in ("type", "name", "inputs")}
        self.output_size = options.pop("output_size", None)
        self.unpool = getattr(nn, config["type"])(**options)

    def forward(self, x, indices):
        return self.unpool(x, indices, self.output_size)


class Attention(nn.MultiheadAttention):
    """Reads one input for itself, or query, key and value."""

    def forward(self, *inputs):
        return super().forward(*(inputs if len(inputs) > 1 else inputs * 3))


# What layers give beside their main result, by their names in Taper.
FURTHER = {"RNN": ["h_n"], "GRU": ["h_n"], "LSTM": ["h_n", "c_n"], "LSTMCell": ["c"], "MultiheadAttention": ["attn_weights"]}
FURTHER |= {f"{kind}{dims}d": ["indices"] for kind in ("MaxPool", "AdaptiveMaxPool") for dims in (1, 2, 3)}


def flat(results):
    for result in results:
        yield from flat(result) if isinstance(result, tuple) else [result]


class Model(nn.Module):
    """A list of layer configs run in order; `inputs` names earlier results, else the one before is taken. Gives the
    results that `outputs` names, {name: tensor}, else the last layer's.
    """

    def __init__(self, layers, inputs=("input",), outputs=None):
        super().__init__()
        self.inputs, self.outputs, self.plan = inputs, outputs, []
        for index, config in enumerate(layers):
            name = config.get("name", str(index))
            self.add_module(name, build(config))
            read = config.get("inputs")
            self.plan.append((name, list(read.values()) if isinstance(read, dict) else read, FURTHER.get(config["type"], [])))

    def forward(self, *xs):
        results = dict(zip(self.inputs, xs))
        x = xs[0]
        for name, inputs, further in self.plan:
            x = getattr(self, name)(*([results[key] for key in inputs] if inputs else [x]))
            if isinstance(x, tuple):
                x, *others = flat(x)
                results |= {f"{name}.{key}": other for key, other in zip(further, others)}
            if isinstance(x, dict):
                results |= {f"{name}.{key}": other for key, other in x.items()}
                x = next(iter(x.values()))
            results[name] = x
        return {name: results[name] for name in self.outputs} if self.outputs else x


def build(config):
    if config["type"] in ("Sequential", "Graph"):
        read = config.get("inputs")
        return Model(config["layers"], list(read) if isinstance(read, dict) else ["input"], config.get("outputs"))
    if config["type"] in ("Add", "Multiply", "Concat"):
        return Joined(config)
    options = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in config.items()
        if key not in ("type", "name", "inputs")
    }
    if config["type"] in FUNCTIONS:
        return Function(FUNCTIONS[config["type"]], options)
    if config["type"].startswith("MaxUnpool"):
        return Unpool(config)
    kind = {"LSTMCell": Cell, "MultiheadAttention": Attention}.get(config["type"]) or getattr(nn, config["type"])
    return kind(**options)


def named(key, given):
    """One tensor alone under `key`; several, {name: tensor or None}, under its plural."""
    if isinstance(given, dict):
        return {key + "s": {name: None if x is None else encode(x) for name, x in given.items()}}
    return {key: None if given is None else encode(given)}


def like(given, function):
    return {name: function(x) for name, x in given.items()} if isinstance(given, dict) else function(given)


def fill(module, stream):
    """Parameters and running statistics that are not what every module starts with."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(values(stream, parameter.shape, 0.5))
        for name, buffer in module.named_buffers():
            if buffer.is_floating_point():
                buffer.copy_(values(stream, buffer.shape, 0.5))
                if name.endswith("var"):
                    buffer.abs_()


def run(head, module, x, stream, mode, call=None):
    """One forward and backward. `x` is a tensor, or {name: tensor or None} in the order of Taper's `forward_all`;
    `call(module, x)` replaces the plain call and may return {name: tensor}, the result first.
    """
    module = module.double()
    module.train(mode == "train")
    fill(module, stream)
    parameters = {name: encode(p) for name, p in module.named_parameters()}
    buffers = {name: encode(b) for name, b in module.named_buffers()}
    each = [t for t in (x.values() if isinstance(x, dict) else [x]) if t is not None and t.is_floating_point()]
    for tensor in each:
        tensor.requires_grad_()
    if call:
        y = call(module, x)
    else:
        y = module(*x.values()) if isinstance(x, dict) else module(x)
    grad_output = like(y, lambda t: values(stream, t.shape) if t.requires_grad else None)
    pairs = list(zip(y.values(), grad_output.values())) if isinstance(y, dict) else [(y, grad_output)]
    pairs = [(output, gradient) for output, gradient in pairs if gradient is not None]
    torch.autograd.backward([output for output, _ in pairs], [gradient for _, gradient in pairs])
    case = {
        **head,
        "mode": mode,
        **named("input", x),
        "parameters": parameters,
        **named("grad_output", grad_output),
        **named("output", y),
        **named("grad_input", like(x, lambda t: None if t is None else t.grad)),
        "grad_parameters": {name: None if p.grad is None else encode(p.grad) for name, p in module.named_parameters()},
    }
    after = {name: encode(p) for name, p in module.named_parameters()}
    if after != parameters:
        case |= {"parameters_after": after}
    if buffers:
        case |= {"buffers": buffers, "buffers_after": {name: encode(b) for name, b in module.named_buffers()}}
    return case


def layer(config, shape, mode="train", scale=1.0, call=None):
    """`shape` is that of the only input, or {name: shape, or a tensor of other values, or None}; `call` as in `run`."""
    if isinstance(shape, dict):
        shown = ", ".join(f"{name} {list(s.shape) if torch.is_tensor(s) else s}" for name, s in shape.items())
    else:
        shown = shape
    name = f"{describe(config)} on {shown}" + ("" if mode == "train" else " in eval mode")
    stream = generator(name)
    x = like(shape, lambda s: s if s is None or torch.is_tensor(s) else values(stream, s, scale))
    return run({"name": name, "layer": config}, build(config), x, stream, mode, call)


def model(name, shape, layers, mode="train"):
    stream = generator(name)
    head = {"name": name, "model": {"input": {"shape": shape[1:]}, "layers": layers}}
    return run(head, Model(layers), values(stream, shape), stream, mode)
