"""Small models drawn at random from all layers, as configs that both sides build."""

import warnings

import torch

from .module_case import FURTHER, Model, build, flat

ACTIVATIONS = ("ReLU", "LeakyReLU", "GELU", "SiLU", "ELU", "SELU", "Softplus", "Sigmoid", "Tanh", "Identity")
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")
REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError)
MOST = 600  # elements of a sample's result
VOCABULARY = 7
# Their first dimension need not be the batch, so no layer reads them; a model gives them out.
ENDS = ("h_n", "c_n", "attn_weights")


class Draw:
    """A model that grows layer by layer; what PyTorch refuses is not taken, nor what `allowed` does not know.

    `results` are all that a layer may read, by name, for a batch of two; `last` is the name of the newest. Where there
    is a choice of types, the one that is `wanted` is taken.
    """

    def __init__(self, rng, inputs, mode, allowed, wanted="", nested=0):
        self.rng, self.mode, self.allowed, self.wanted, self.nested = rng, mode, allowed, wanted, nested
        self.inputs, self.results = inputs, dict(inputs)
        self.last = next(iter(inputs))
        self.layers = []

    @property
    def shape(self):
        return self.results[self.last].shape

    @property
    def dims(self):
        """How many spatial dimensions the newest result has."""
        return len(self.shape) - 2

    def flip(self, probability=0.5):
        return self.rng.random() < probability

    def pick(self, kinds):
        return self.wanted if self.wanted in kinds else self.rng.choice(kinds)

    def spatial(self, kinds):
        """One of the types, given without their number of dimensions."""
        return self.pick([f"{kind}{self.dims}d" for kind in kinds])

    def sizes(self, low, high):
        """One number for all spatial dimensions, or one for each."""
        if self.flip():
            return self.rng.randint(low, high)
        return [self.rng.randint(low, high) for _ in range(self.dims)]

    def rate(self):
        """A probability whose results do not depend on random numbers."""
        return self.rng.choice([0, 0, 0, 1, 0.5] if self.mode == "eval" else [0, 0, 0, 1])

    def floating(self, fits=lambda shape: True):
        """The names of results that layers of floating numbers may read."""
        return [
            name for name, t in self.results.items()
            if t.is_floating_point() and not name.endswith(ENDS) and fits(t.shape)
        ]

    def try_layer(self, kind, inputs=None, **options):
        """Appends a layer if it can be; `inputs` are names. Gives its name."""
        if not self.allowed(kind):
            return None
        config = {"type": kind, **options}
        try:
            with torch.no_grad():
                module = build(config).double().train(self.mode == "train")
                y, *others = flat((module(*(self.results[name] for name in inputs or [self.last])),))
        except REFUSALS:
            return None
        if not (y.dim() > 1 and 0 < y[0].numel() <= MOST and torch.isfinite(y).all()):
            return None
        name = f"layer{len(self.layers)}"
        config["name"] = name
        if inputs:
            config["inputs"] = inputs
        self.layers.append(config)
        self.results[name], self.last = y, name
        self.results |= {f"{name}.{key}": other for key, other in zip(FURTHER.get(kind, []), others)}
        return name

    # --- layers of any number of dimensions -----------------------------------------------------------------------------

    def activate(self):
        rank = len(self.shape)
        choice = self.pick(["plain"] * 6 + ["PReLU", "Softmax", "Dropout", "options"])
        if choice == "PReLU":
            self.try_layer("PReLU", num_parameters=self.rng.choice([1, self.shape[1]]), init=self.rng.choice([0.25, -0.5]))
        elif choice == "Softmax":
            dim = self.rng.randint(1, rank - 1)
            kind = self.pick(["Softmax", "LogSoftmax", "Softmax2d"] if rank == 4 else ["Softmax", "LogSoftmax"])
            self.try_layer(kind, **({} if kind == "Softmax2d" else {"dim": self.rng.choice([dim, dim - rank])}))
        elif choice == "Dropout":
            self.try_layer(self.pick(["Dropout", "AlphaDropout"]), p=self.rate())
        elif choice == "options":
            kind, options = self.rng.choice([
                ("LeakyReLU", {"negative_slope": 0.3}), ("GELU", {"approximate": "tanh"}), ("ELU", {"alpha": 0.5}),
                ("Softplus", {"beta": 2, "threshold": 1}),
            ])
            self.try_layer(kind, **options)
        else:
            self.try_layer(self.pick(ACTIVATIONS))

    def join(self):
        """Joins with an earlier result, where that fits."""
        earlier = self.rng.choice(self.floating())
        kind = self.pick(["Add", "Multiply", "Concat", "Bilinear"])
        options = {"dim": self.rng.randint(1, len(self.shape) - 1)} if kind == "Concat" else {}
        if kind in ("Add", "Multiply") and len(self.results[earlier].shape) != len(self.shape):
            return
        if kind == "Bilinear":
            widths = self.results[earlier].shape[-1], self.shape[-1]
            options = {"in1_features": widths[0], "in2_features": widths[1], "out_features": self.rng.choice([2, 3])}
        self.try_layer(kind, [earlier, self.last], **options)

    def linear(self):
        self.try_layer(
            "Linear", in_features=self.shape[-1], out_features=self.rng.choice([2, 4]), bias=self.flip(0.8)
        )

    def normalise_rows(self):
        count = self.rng.randint(1, len(self.shape) - 1)
        kind = self.pick(["LayerNorm", "RMSNorm"])
        self.try_layer(
            kind, normalized_shape=list(self.shape[-count:]), eps=self.rng.choice([1e-3, 0.1]),
            elementwise_affine=self.flip(0.7), **({"bias": self.flip()} if kind == "LayerNorm" else {}),
        )

    def normalise(self):
        channels, dims = self.shape[1], max(self.dims, 1)
        kinds = [f"BatchNorm{dims}d", f"InstanceNorm{dims}d"] if self.dims else ["BatchNorm1d"]
        kind = self.pick([*kinds, "GroupNorm"])
        if kind == "GroupNorm":
            self.try_layer(
                kind, num_groups=self.rng.choice([1, 2]), num_channels=channels, eps=1e-3, affine=self.flip(0.7)
            )
        else:
            self.try_layer(
                kind, num_features=channels, affine=self.flip(), track_running_stats=self.flip(),
                momentum=self.rng.choice([0.1, 0.5]), eps=1e-3,
            )

    def reorder(self):
        """What changes the order or the number of dimensions, but not the batch."""
        rank = len(self.shape)
        kind = self.pick(["Permute", "Transpose", "Unsqueeze", "Squeeze", "Select", "Unflatten", "Flatten"])
        dim = self.rng.randint(1, rank - 1)
        shown = self.rng.choice([dim, dim - rank])
        if kind == "Permute":
            order = list(range(1, rank))
            self.rng.shuffle(order)
            self.try_layer(kind, dims=[0, *order])
        elif kind == "Transpose":
            self.try_layer(kind, dim0=shown, dim1=self.rng.randint(1, rank - 1))
        elif kind == "Unsqueeze" and rank < 5:
            self.try_layer(kind, dim=self.rng.choice([dim, rank, -1]))
        elif kind == "Squeeze":
            self.try_layer(kind, dim=shown)
        elif kind == "Select" and rank > 2:
            extent = self.shape[dim]
            self.try_layer(kind, dim=shown, index=self.rng.randint(-extent, extent - 1))
        elif kind == "Unflatten" and rank < 5:
            part = self.rng.choice([n for n in range(1, self.shape[dim] + 1) if self.shape[dim] % n == 0])
            self.try_layer(kind, dim=shown, unflattened_size=self.rng.choice([[part, -1], [-1, part]]))
        elif kind == "Flatten":
            self.try_layer(kind, start_dim=shown, end_dim=self.rng.choice([-1, self.rng.randint(dim, rank - 1)]))

    def nest(self):
        """A block of its own, which reads the newest result."""
        if self.nested == 2:
            return
        inner = Draw(self.rng, {"input": self.results[self.last]}, self.mode, self.allowed, nested=self.nested + 1)
        inner.grow(1, 3)
        plain = not any("inputs" in layer for layer in inner.layers)
        if inner.layers:
            self.try_layer("Sequential" if plain and self.flip() else "Graph", layers=inner.layers)

    # --- layers of one to three spatial dimensions ----------------------------------------------------------------------

    def convolution(self):
        channels, groups, n = self.shape[1], self.rng.choice([1, 1, 2]), self.dims
        self.try_layer(
            f"Conv{n}d", in_channels=channels, out_channels=groups * self.rng.choice([1, 2, 3]),
            kernel_size=self.sizes(1, 3), stride=self.sizes(1, 2), padding=self.sizes(0, 2), dilation=self.sizes(1, 2),
            groups=groups, bias=self.flip(0.7), padding_mode=self.rng.choice(PADDING_MODES),
        ) or self.try_layer(f"Conv{n}d", in_channels=channels, out_channels=3, kernel_size=2, padding="same")

    def transposed(self):
        self.try_layer(
            f"ConvTranspose{self.dims}d", in_channels=self.shape[1], out_channels=self.rng.choice([1, 2, 3]),
            kernel_size=self.sizes(1, 3), stride=self.sizes(1, 2), padding=self.sizes(0, 1),
            output_padding=self.rng.choice([0, 0, 1]), dilation=self.sizes(1, 2), bias=self.flip(0.7),
        )

    def average_pool(self):
        options = {"divisor_override": self.rng.choice([None, 3])} if self.dims > 1 else {}
        self.try_layer(
            f"AvgPool{self.dims}d", kernel_size=self.sizes(1, 3), stride=self.sizes(1, 3), padding=self.sizes(0, 1),
            ceil_mode=self.flip(), count_include_pad=self.flip(), **options,
        )

    def max_pool(self):
        """With its inverse at times; windows may overlap, as what lies between changes equal elements alike."""
        dims, spatial = self.dims, list(self.shape[2:])
        if self.flip(0.7):
            self.try_layer(
                f"MaxPool{dims}d", kernel_size=self.sizes(1, 3), stride=self.sizes(1, 3), padding=self.sizes(0, 1),
                dilation=self.sizes(1, 2), ceil_mode=self.flip(),
            )
            return
        window = {"kernel_size": self.sizes(1, 3), "stride": self.rng.choice([None, self.sizes(1, 3)])}
        window |= {"padding": self.sizes(0, 1)}
        pool = self.try_layer(f"MaxPool{dims}d", return_indices=True, **window)
        if pool:
            if self.flip():
                self.try_layer(self.pick(ACTIVATIONS))
            indices = [self.last, f"{pool}.indices"]
            self.try_layer(f"MaxUnpool{dims}d", indices, output_size=self.rng.choice([None, spatial]), **window)

    def other_pool(self):
        kind = self.spatial(["AdaptiveAvgPool", "AdaptiveMaxPool", "LPPool"])
        if kind.startswith("LPPool"):
            one = self.dims == 1  # PyTorch's takes no list
            self.try_layer(
                kind, norm_type=self.rng.choice([1, 2, 2, 3]),
                kernel_size=self.rng.randint(1, 3) if one else self.sizes(1, 3),
                stride=self.rng.randint(1, 2) if one else self.sizes(1, 2), ceil_mode=self.flip(),
            )
        else:
            self.try_layer(kind, output_size=self.sizes(1, 5))

    def drop_channels(self):
        self.try_layer(f"Dropout{self.dims}d", p=self.rate())

    def pad(self):
        kind = self.spatial(["ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"])
        amounts = [self.rng.randint(0, 2) for _ in range(2 * self.dims)]
        self.try_layer(kind, padding=amounts, **({"value": 0.5} if kind.startswith("ConstantPad") else {}))

    def upsample(self):
        linear = {1: "linear", 2: "bilinear", 3: "trilinear"}[self.dims]
        mode = self.rng.choice(["nearest", "nearest-exact", linear, "bicubic" if self.dims == 2 else "area"])
        options = {"align_corners": self.flip()} if mode in (linear, "bicubic") else {}
        size = {"scale_factor": self.rng.choice([2, 1.5])} if self.flip(0.7) else {"size": self.sizes(1, 6)}
        self.try_layer("Upsample", mode=mode, **size, **options)

    # --- sequences [N, L, C] and steps [N, C] ---------------------------------------------------------------------------

    def recurrent(self):
        kind = self.pick(["RNN", "LSTM", "GRU"])
        count = self.rng.choice([1, 2])
        own = {"LSTM": {"proj_size": self.rng.choice([0, 1])}, "RNN": {"nonlinearity": self.rng.choice(["tanh", "relu"])}}
        self.try_layer(
            kind, input_size=self.shape[-1], hidden_size=self.rng.choice([2, 3]), num_layers=count, bias=self.flip(0.8),
            batch_first=self.flip(0.8), bidirectional=self.flip(), dropout=self.rate() if count > 1 else 0,
            **own.get(kind, {}),
        )

    def cell(self):
        """One step without states, or with those that earlier results can be."""
        kind, hidden = self.pick(["RNNCell", "LSTMCell", "GRUCell"]), self.rng.choice([2, 3])
        states = self.floating(lambda shape: shape == (self.shape[0], hidden))
        self.try_layer(
            kind, [self.last] + (self.rng.choices(states, k=2 if kind == "LSTMCell" else 1) if states else []),
            input_size=self.shape[-1], hidden_size=hidden, bias=self.flip(0.8),
            **({"nonlinearity": self.rng.choice(["tanh", "relu"])} if kind == "RNNCell" else {}),
        )

    def attend(self):
        sources = self.floating(lambda shape: len(shape) == 3)
        key = self.rng.choice(sources) if self.flip() else self.last
        width = self.results[key].shape[-1]
        self.try_layer(
            "MultiheadAttention", [self.last, key, key], embed_dim=self.shape[-1], num_heads=self.rng.choice([1, 2]),
            dropout=0.5 if self.mode == "eval" else 0, bias=self.flip(), add_bias_kv=self.flip(0.2),
            add_zero_attn=self.flip(0.2), batch_first=self.flip(0.8), kdim=width, vdim=width,
        )

    # --- the whole ------------------------------------------------------------------------------------------------------

    def steps(self):
        steps = [self.activate, self.activate, self.join, self.reorder, self.nest, self.linear, self.normalise_rows]
        if 1 <= self.dims <= 3:
            steps += 2 * [self.convolution] + [self.transposed, self.average_pool, self.max_pool, self.other_pool]
            steps += [self.normalise, self.pad, self.upsample, self.drop_channels]
        if self.dims == 1:
            steps += 2 * [self.recurrent] + [self.attend]
        if self.dims == 0:
            steps += 3 * [self.cell] + [self.normalise]
        return steps

    def embed(self):
        options = {"padding_idx": self.rng.choice([None, 1, -1]), "scale_grad_by_freq": self.flip()}
        if self.flip(0.3):
            options |= {"max_norm": 1.0, "norm_type": self.rng.choice([2.0, 1.0])}
        return self.try_layer(
            "Embedding", num_embeddings=VOCABULARY, embedding_dim=self.rng.choice([2, 3, 4]), **options
        )

    def grow(self, low, high):
        if not self.results[self.last].is_floating_point() and not self.embed():
            return
        for _ in range(self.rng.randint(low, high)):
            self.rng.choice(self.steps())()

    def model(self):
        """The config, as of `taper run`; `finish` makes a few numbers of most models."""
        if self.flip():
            self.try_layer("Flatten")
            self.try_layer("Linear", in_features=self.shape[-1], out_features=self.rng.choice([1, 3, 5]))
        if self.last in self.inputs:
            self.try_layer("Identity")
        outputs = [self.last] + [name for name in self.results if name != self.last and self.flip(0.15)]
        return {
            "inputs": {
                name: {"shape": list(x.shape[1:]), "dtype": "float32" if x.is_floating_point() else "int64"}
                for name, x in self.inputs.items()
            },
            "layers": self.layers,
            "outputs": outputs if self.flip(0.3) else [self.last],
        }


# What the input of a model should be where a type of layer is wanted that not every model can have.
INPUTS = {"1d": [1, 1, "sequence"], "2d": [2], "3d": [3], "Cell": ["row"], "Embedding": ["words", "both"]}
INPUTS |= dict.fromkeys(("RNN", "LSTM", "GRU", "MultiheadAttention"), ["sequence"])


def random_inputs(rng, wanted):
    """One input of 1 to 4 dimensions, indices, or both, as for a batch of two."""
    def numbers(*shape):
        return torch.randn(2, *shape, dtype=torch.float64)

    def words():
        return torch.randint(VOCABULARY, (2, rng.randint(2, 5)))

    fitting = [choices for end, choices in INPUTS.items() if wanted.endswith(end)]
    choice = rng.choice(fitting[0] if fitting else ["row", "sequence", 1, 1, 2, 2, 3, "words", "both"])
    if choice == "row":
        return {"x": numbers(rng.choice([3, 4, 6]))}
    if choice == "sequence":
        return {"x": numbers(rng.randint(2, 5), rng.choice([2, 4, 6]))}
    if choice == "words":
        return {"words": words()}
    if choice == "both":
        indices = words()
        return {"words": indices, "x": numbers(indices.shape[1], rng.choice([2, 3]))}
    lengths = {1: (9, 15), 2: (5, 8), 3: (3, 5)}[choice]
    return {"x": numbers(rng.choice([1, 2, 4]), *(rng.randint(*lengths) for _ in range(choice)))}


def random_model(rng, mode="train", allowed=lambda kind: True, wanted=""):
    """A config with `inputs`, `layers` and `outputs`, only of types that are `allowed`; likely with the one `wanted`."""
    draw = Draw(rng, random_inputs(rng, wanted), mode, allowed, wanted)
    with warnings.catch_warnings(action="ignore"):
        draw.grow(2, 6)
        return draw.model()


def types_of(layers):
    """The types of all layers, also of those in blocks."""
    for layer in layers:
        yield layer["type"]
        yield from types_of(layer.get("layers", []))


def random_tensors(rng, config, batch):
    """Inputs of a model by name, floating ones exact in float32; `batch` None leaves the dimension out."""
    first = [] if batch is None else [batch]
    return {
        name: torch.randint(VOCABULARY, first + given["shape"]) if given["dtype"] == "int64"
        else torch.randn(first + given["shape"]).double()
        for name, given in config["inputs"].items()
    }


def module_of(config):
    """The model in PyTorch, with running statistics that are not what every module starts with."""
    module = Model(config["layers"], list(config["inputs"]), config["outputs"])
    for name, buffer in module.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_()
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 2)
    return module
