"""Small models drawn at random from all layers, as configs that both sides build."""

import torch

from .module_case import build

ACTIVATIONS = ("ReLU", "LeakyReLU", "GELU", "SiLU", "ELU", "SELU", "Softplus", "Sigmoid", "Tanh")
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class Draw:
    """A model that grows layer by layer; what PyTorch or `allowed` refuses is not taken."""

    def __init__(self, rng, shape, allowed):
        self.rng, self.allowed = rng, allowed
        self.input_shape = list(shape)
        self.layers, self.results = [], [("input", torch.randn(2, *shape, dtype=torch.float64))]

    @property
    def last(self):
        return self.results[-1][1]

    def try_layer(self, kind, inputs=None, **options):
        """Appends a layer if it can be; `inputs` are positions in `results`."""
        if not self.allowed(kind):
            return False
        config = {"type": kind, **options}
        sources = [self.results[i] for i in inputs] if inputs else [self.results[-1]]
        try:
            with torch.no_grad():
                y = build(config).double()(*(tensor for _, tensor in sources))
        except (RuntimeError, ValueError, AssertionError):
            return False
        y = y[0] if isinstance(y, tuple) else y
        if not 0 < y[0].numel() <= 600 or not torch.isfinite(y).all():
            return False
        name = f"layer{len(self.layers)}"
        config["name"] = name
        if inputs:
            config["inputs"] = [source for source, _ in sources]
        self.layers.append(config)
        self.results.append((name, y))
        return True

    def flip(self, probability=0.5):
        return self.rng.random() < probability

    def sizes(self, low, high, n):
        """One number for all dimensions, or one for each."""
        if self.flip():
            return self.rng.randint(low, high)
        return [self.rng.randint(low, high) for _ in range(n)]

    def join(self):
        """Joins with an earlier result, where that fits."""
        earlier = self.rng.randrange(len(self.results))
        newest = len(self.results) - 1
        kind = self.rng.choice(["Add", "Multiply", "Concat", "Bilinear"])
        options = {"dim": 1} if kind == "Concat" else {}
        if kind == "Bilinear":
            widths = [self.results[i][1].shape[-1] for i in (earlier, newest)]
            options = {"in1_features": widths[0], "in2_features": widths[1], "out_features": self.rng.choice([2, 3])}
        self.try_layer(kind, [earlier, newest], **options)

    def finish(self):
        self.try_layer("Flatten")
        self.try_layer("Linear", in_features=self.last.shape[1], out_features=self.rng.choice([1, 3, 5]))
        return self.input_shape, self.layers


def spatial(rng, dims, allowed):
    """Convolutions, pools, padding and normalisation over 1 to 3 dimensions."""
    lengths = {1: (9, 15), 2: (5, 8), 3: (3, 5)}[dims]
    draw = Draw(rng, [rng.choice([1, 2, 4]), *(rng.randint(*lengths) for _ in range(dims))], allowed)
    kernel = lambda: draw.sizes(1, 3, dims)

    def convolution():
        channels, groups = draw.last.shape[1], rng.choice([1, 1, 2])
        mode = rng.choice(PADDING_MODES)
        draw.try_layer(
            f"Conv{dims}d", in_channels=channels, out_channels=groups * rng.choice([1, 2, 3]), kernel_size=kernel(),
            stride=draw.sizes(1, 2, dims), padding=draw.sizes(0, 2, dims), dilation=draw.sizes(1, 2, dims), groups=groups,
            bias=draw.flip(0.7), padding_mode=mode,
        ) or draw.try_layer(f"Conv{dims}d", in_channels=channels, out_channels=3, kernel_size=2, padding="same")

    def transposed():
        draw.try_layer(
            f"ConvTranspose{dims}d", in_channels=draw.last.shape[1], out_channels=rng.choice([1, 2, 3]),
            kernel_size=kernel(), stride=draw.sizes(1, 2, dims), padding=draw.sizes(0, 1, dims),
            output_padding=rng.choice([0, 0, 1]), dilation=draw.sizes(1, 2, dims), bias=draw.flip(0.7),
        )

    def average_pool():
        options = {"divisor_override": rng.choice([None, 3])} if dims > 1 else {}
        draw.try_layer(
            f"AvgPool{dims}d", kernel_size=kernel(), stride=draw.sizes(1, 3, dims), padding=draw.sizes(0, 1, dims),
            ceil_mode=draw.flip(), count_include_pad=draw.flip(), **options,
        )

    def max_pool():
        draw.try_layer(
            f"MaxPool{dims}d", kernel_size=kernel(), stride=draw.sizes(1, 3, dims), padding=draw.sizes(0, 1, dims),
            dilation=draw.sizes(1, 2, dims), ceil_mode=draw.flip(),
        )

    def other_pool():
        kind = rng.choice(["AdaptiveAvgPool", "AdaptiveMaxPool", "LPPool"])
        if kind == "LPPool":
            one = dims == 1  # PyTorch's takes no list
            draw.try_layer(
                f"LPPool{dims}d", norm_type=2, kernel_size=rng.randint(1, 3) if one else kernel(),
                stride=rng.randint(1, 2) if one else draw.sizes(1, 2, dims), ceil_mode=draw.flip(),
            )
        else:
            draw.try_layer(f"{kind}{dims}d", output_size=draw.sizes(1, 5, dims))

    def normalise():
        channels = draw.last.shape[1]
        kind = rng.choice(["BatchNorm", "InstanceNorm", "GroupNorm", "LayerNorm", "RMSNorm"])
        if kind in ("BatchNorm", "InstanceNorm"):
            draw.try_layer(
                f"{kind}{dims}d", num_features=channels, affine=draw.flip(), track_running_stats=draw.flip(),
                momentum=rng.choice([0.1, 0.5]), eps=1e-3,
            )
        elif kind == "GroupNorm":
            draw.try_layer(kind, num_groups=rng.choice([1, 2]), num_channels=channels, eps=1e-3)
        else:
            draw.try_layer(kind, normalized_shape=list(draw.last.shape[-dims:]), eps=1e-3)

    def pad():
        kind = rng.choice(["ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"])
        amounts = [rng.randint(0, 2) for _ in range(2 * dims)]
        draw.try_layer(f"{kind}{dims}d", padding=amounts, **({"value": 0.5} if kind == "ConstantPad" else {}))

    def upsample():
        linear = {1: "linear", 2: "bilinear", 3: "trilinear"}[dims]
        mode = rng.choice(["nearest", linear])
        draw.try_layer("Upsample", scale_factor=2, mode=mode, **({"align_corners": draw.flip()} if mode == linear else {}))

    def activate():
        if draw.flip(0.2):
            draw.try_layer("PReLU", num_parameters=rng.choice([1, draw.last.shape[1]]))
        else:
            draw.try_layer(rng.choice(ACTIVATIONS))

    steps = [convolution, convolution, transposed, average_pool, max_pool, other_pool, normalise, pad, upsample, activate,
             activate, draw.join]
    for _ in range(rng.randint(2, 6)):
        rng.choice(steps)()
    return draw.finish()


def sequence(rng, allowed):
    """Recurrent layers and attention over [L, C]."""
    draw = Draw(rng, [rng.randint(2, 5), rng.choice([2, 4, 6])], allowed)

    def recurrent():
        kind = rng.choice(["RNN", "LSTM", "GRU"])
        draw.try_layer(
            kind, input_size=draw.last.shape[-1], hidden_size=rng.choice([2, 3]), num_layers=rng.choice([1, 2]),
            bias=draw.flip(0.8), batch_first=True, bidirectional=draw.flip(),
            **({"nonlinearity": rng.choice(["tanh", "relu"])} if kind == "RNN" else {}),
        )

    def attend():
        newest = len(draw.results) - 1
        draw.try_layer(
            "MultiheadAttention", [newest] * 3, embed_dim=draw.last.shape[-1], num_heads=rng.choice([1, 2]),
            bias=draw.flip(), batch_first=True,
        )

    def normalise():
        draw.try_layer(rng.choice(["LayerNorm", "RMSNorm"]), normalized_shape=[draw.last.shape[-1]], eps=1e-3)

    def linear():
        draw.try_layer("Linear", in_features=draw.last.shape[-1], out_features=rng.choice([2, 4]), bias=draw.flip(0.8))

    def activate():
        if draw.flip(0.3):
            draw.try_layer(rng.choice(["Softmax", "LogSoftmax"]), dim=-1)
        else:
            draw.try_layer(rng.choice(ACTIVATIONS))

    steps = [recurrent, recurrent, attend, attend, normalise, linear, activate, draw.join]
    for _ in range(rng.randint(2, 5)):
        rng.choice(steps)()
    return draw.finish()


def random_model(rng, allowed=lambda kind: True):
    """An input shape without the batch, and layer configs; only of types that are `allowed`."""
    dims = rng.choice([0, 0, 1, 1, 2, 2, 3])
    return spatial(rng, dims, allowed) if dims else sequence(rng, allowed)
