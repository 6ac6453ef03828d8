"""The table: what is compared. One `Row` is one line of the results."""

import math
from dataclasses import dataclass, field

F32, F64, I64 = 4, 8, 8


@dataclass
class Phase:
    """Part of a row's work that runs by itself: what it must compute, and the bytes it must move at least."""

    flops: float = 0
    read: float = 0
    write: float = 0
    update: float = 0  # in place
    double: bool = False
    divisions: float = 0
    roots: float = 0


@dataclass
class Row:
    """One comparison.

    name    what `--rows` selects by
    task    what every peer is asked for (peers/framework.hpp)
    bound   the phases of the smallest possible work of one repetition; none: no physical bound is stated
    ratio   peer time / Taper time that is asked for
    share   share of the bound that is asked for, whatever the ratio
    peers   the only ones it is held against; none: all that offer the task
    tolerance  largest difference of outputs, relative to the largest of them
    group   heading in the results
    """

    name: str
    task: str
    bound: list = field(default_factory=list)
    ratio: float | None = None
    share: float | None = None
    peers: tuple = ()
    tolerance: float = 1e-5
    group: str = ""


ROWS = []
GROUPS = []


def group(name):
    GROUPS.append(name)


def row(name, task, *bound, **wanted):
    ROWS.append(Row(name, task, list(bound), group=GROUPS[-1], **wanted))


def stream(read, write, **more):
    """Float32 elements read once, and others written once."""
    return Phase(read=read * F32, write=write * F32, **more)


def updates(read, update, **more):
    """Float32 elements read once, and others changed in place."""
    return Phase(read=read * F32, update=update * F32, **more)


def adam(parameters):
    """Reads the gradient, changes parameter and two moments; a root and a division each."""
    return updates(parameters, 3 * parameters, divisions=parameters, roots=parameters)


# --- the cost of an operation -----------------------------------------------------------------------------------------

group("The cost of an operation")

row("add/one element", "add n=1 pass=forward", ratio=25)
row("add/one element, recorded", "add n=1 pass=recorded", ratio=18)
row("chain/100 operations, forward and backward", "chain ops=100", ratio=30)

SMALL = (
    ("relu (8)", "map f=relu n=8"),
    ("multiply by a row (2,4)", "mul_rows rows=2 columns=4"),
    ("mean over the last dim (2,4)", "reduce f=mean outer=2 n=4"),
    ("softmax (2,4)", "softmax rows=2 columns=4"),
    ("cross_entropy (2,4)", "cross_entropy rows=2 columns=4"),
    ("linear 4 to 3, batch 2", "linear n=2 in=4 out=3"),
    ("conv1d k3 (1,2,8)", "conv1d n=1 c=2 f=2 l=8 k=3 p=1"),
    ("conv2d k3 (1,2,4,4)", "conv2d n=1 c=2 f=2 h=4 k=3 p=1"),
    ("conv_transpose1d k4 s2 (1,2,8)", "conv_transpose1d n=1 c=2 f=2 l=8 k=4 s=2 p=1"),
    ("avg_pool1d k2 (1,2,8)", "avg_pool1d n=1 c=2 l=8 k=2"),
    ("avg_pool1d k3 s1 p1 (1,2,8)", "avg_pool1d n=1 c=2 l=8 k=3 s=1 p=1"),
    ("avg_pool2d k2 (1,2,4,4)", "avg_pool2d n=1 c=2 h=4 k=2"),
    ("adaptive_avg_pool2d 1 (1,2,4,4)", "adaptive_avg_pool2d n=1 c=2 h=4 o=1"),
    ("max_pool2d k2 (1,2,4,4)", "max_pool2d n=1 c=2 h=4 k=2"),
    ("LayerNorm (2,4)", "layer_norm rows=2 columns=4"),
    ("BatchNorm2d, training (2,2,2,2)", "batch_norm n=2 c=2 h=2 training=1"),
    ("Embedding (8,4), 2 rows", "embedding n=2 rows=8 columns=4"),
)
# A kernel that is called by itself makes no tensor and checks nothing.
FRAMEWORKS = ("torch", "torch-debian")
for name, task in SMALL:
    row(f"{name}/forward", f"{task} pass=forward", ratio=5, peers=FRAMEWORKS)
    row(f"{name}/forward and backward", f"{task} pass=both", ratio=10, peers=FRAMEWORKS)

# --- steps of a training ----------------------------------------------------------------------------------------------

group("Steps of a training")

for n, ratio in ((2, 40), (32, 25), (256, 12)):
    conv, linear = 2 * n * 10 * 32 * 9, 2 * n * 32 * 5
    row(f"forum model step/batch {n}", f"forum_step n={n}", Phase(2 * conv + 3 * linear),
        adam(32 * 9 + 32 + 32 * 5 + 5), ratio=ratio, tolerance=1e-4)

weights = 784 * 256 + 256 * 128 + 128 * 10
row("MLP step/batch 64", "mlp_step n=64", Phase(2 * 64 * (3 * weights - 784 * 256)), adam(weights + 394), ratio=2.5,
    tolerance=1e-4)

convs, products = (784 * 6 * 25, 100 * 16 * 150), 400 * 120 + 120 * 84 + 84 * 10
row("LeNet-5 step/batch 64", "lenet_step n=64",
    Phase(2 * 64 * (3 * sum(convs) - convs[0] + 3 * products)), adam(61706), ratio=2.8, tolerance=1e-4)

# What else small models are made of: name, task, parameters, and the multiply-adds of a sample's forward: of the layers
# that read the input, which needs no gradient, and of all others.
MODELS = (
    ("residual network", "residual_step", 19_994, 442_368, 8_388_928),
    ("separable convolutions", "separable_step", 4_394, 110_592, 318_080),
    ("dilated convolutions over time", "temporal_step", 10_277, 98_304, 1_179_808),
    ("network over time that halves and doubles", "unet_step", 4_147, 49_152, 798_720),
    ("autoencoder", "autoencoder_step", 13_265, 28_224, 677_376),
    ("LSTM over 25 words", "words_step l=25", 57_413, 0, 614_720),
    ("encoder of 32 words", "transformer_step l=32", 116_357, 0, 1_704_256),
)
for name, task, parameters, first, others in MODELS:
    for n, ratio in ((2, 5), (32, 1)):
        row(f"{name} step/batch {n}", f"{task} n={n}", Phase(2 * n * (2 * first + 3 * others)), adam(parameters),
            ratio=ratio, tolerance=1e-4)

# --- convolutions -----------------------------------------------------------------------------------------------------

group("Convolutions")


def conv(name, task, pass_, multiply_adds, x, w, y, **wanted):
    """A forward is one product of this size, a forward and backward three."""
    forward = Phase(2 * multiply_adds, F32 * (x + w), F32 * y)
    backward = Phase(4 * multiply_adds, F32 * (x + w + y), F32 * (x + w))
    bound = {"forward": [forward], "both": [forward, backward]}[pass_]
    words = {"forward": "forward", "both": "forward and backward"}[pass_]
    row(f"{name}/{words}", f"{task} pass={pass_}", *bound, **wanted)


for k, ratios in ((3, (2, 1.2)), (9, (1.4, 1.6)), (15, (1.25, 1.25))):
    for pass_, ratio in zip(("forward", "both"), ratios):
        conv(f"conv1d k{k} (16,64,1024)", f"conv1d n=16 c=64 f=64 l=1024 k={k} p={k // 2}", pass_,
             16 * 1024 * 64 * 64 * k, 16 * 64 * 1024, 64 * 64 * k, 16 * 64 * 1024, ratio=ratio)

for pass_ in ("forward", "both"):
    conv("conv1d k1 (16,64,1024)", "conv1d n=16 c=64 f=64 l=1024 k=1 p=0", pass_, 16 * 1024 * 64 * 64, 16 * 64 * 1024,
         64 * 64, 16 * 64 * 1024, ratio=1)
    conv("conv1d k5 s2 (16,64,1024)", "conv1d n=16 c=64 f=64 l=1024 k=5 s=2 p=2", pass_, 16 * 512 * 64 * 64 * 5,
         16 * 64 * 1024, 64 * 64 * 5, 16 * 64 * 512, ratio=1)
    conv("conv2d k3 (16,32,32,32)", "conv2d n=16 c=32 f=32 h=32 k=3 p=1", pass_, 16 * 1024 * 32 * 32 * 9,
         16 * 32 * 1024, 32 * 32 * 9, 16 * 32 * 1024, ratio=1)
    conv("conv2d k5, first layer (64,1,28,28)", "conv2d n=64 c=1 f=6 h=28 k=5 p=2", pass_, 64 * 784 * 6 * 25, 64 * 784,
         6 * 25, 64 * 6 * 784, ratio=1)
    conv("depthwise conv2d k3 (16,64,32,32)", "conv2d n=16 c=64 f=64 h=32 k=3 p=1 groups=64", pass_,
         16 * 1024 * 64 * 9, 16 * 64 * 1024, 64 * 9, 16 * 64 * 1024, ratio=1)
    conv("depthwise conv1d k9 (16,64,1024)", "conv1d n=16 c=64 f=64 l=1024 k=9 p=4 groups=64", pass_,
         16 * 1024 * 64 * 9, 16 * 64 * 1024, 64 * 9, 16 * 64 * 1024, ratio=1)
    conv("conv_transpose1d k4 s2 (16,64,256)", "conv_transpose1d n=16 c=64 f=32 l=256 k=4 s=2 p=1", pass_,
         16 * 256 * 64 * 32 * 4, 16 * 64 * 256, 64 * 32 * 4, 16 * 32 * 512, ratio=1)
    conv("conv_transpose2d k4 s2 (8,64,16,16)", "conv_transpose2d n=8 c=64 f=32 h=16 k=4 s=2 p=1", pass_,
         8 * 256 * 64 * 32 * 16, 8 * 64 * 256, 64 * 32 * 16, 8 * 32 * 1024, ratio=1)

# Lines that fill no vectors, as most models' last layers have.
for pass_ in ("forward", "both"):
    for n, c, f, h, s in ((16, 64, 64, 28, 1), (16, 64, 64, 14, 1), (16, 64, 128, 14, 2), (16, 64, 64, 8, 1),
                          (16, 64, 64, 7, 1)):
        size = (h - 1) // s + 1
        conv(f"conv2d k3{' s2' if s > 1 else ''} ({n},{c},{h},{h}) to {f}",
             f"conv2d n={n} c={c} f={f} h={h} k=3 s={s} p=1", pass_, n * size**2 * c * f * 9, n * c * h * h, c * f * 9,
             n * f * size**2, ratio=1)
    for n, l in ((64, 10), (16, 100)):
        conv(f"conv1d k3 ({n},64,{l})", f"conv1d n={n} c=64 f=64 l={l} k=3 p=1", pass_, n * l * 64 * 64 * 3, n * 64 * l,
             64 * 64 * 3, n * 64 * l, ratio=1)

# --- pools and means --------------------------------------------------------------------------------------------------

group("Pools and means")


def pool(name, task, x, y, forward, backward, **wanted):
    row(f"{name}/forward", f"{task} pass=forward", stream(x, y), ratio=forward, **wanted)
    row(f"{name}/backward", f"{task} pass=backward", stream(y, x), ratio=backward, **wanted)


pool("avg_pool2d k2 (32,64,32,32)", "avg_pool2d n=32 c=64 h=32 k=2", 2048 * 1024, 2048 * 256, 15, 15)
pool("avg_pool2d k3 s2 p1, pad not counted (32,64,56,56)", "avg_pool2d n=32 c=64 h=56 k=3 s=2 p=1 count=0",
     2048 * 56 * 56, 2048 * 28 * 28, 8, 8)
pool("avg_pool2d k3 s1 p1 (32,64,32,32)", "avg_pool2d n=32 c=64 h=32 k=3 s=1 p=1", 2048 * 1024, 2048 * 1024, 20, 20)
pool("adaptive_avg_pool2d 1 (32,2048,7,7)", "adaptive_avg_pool2d n=32 c=2048 h=7 o=1", 65536 * 49, 65536, 1.5, 6)
pool("adaptive_avg_pool2d 7 (4,512,56,56)", "adaptive_avg_pool2d n=4 c=512 h=56 o=7", 2048 * 56 * 56, 2048 * 49, 5, 5)
pool("adaptive_avg_pool2d 7 (4,512,112,112)", "adaptive_avg_pool2d n=4 c=512 h=112 o=7", 2048 * 112 * 112, 2048 * 49,
     4, 8)
pool("adaptive_avg_pool2d 10 (16,256,100,100)", "adaptive_avg_pool2d n=16 c=256 h=100 o=10", 4096 * 10000, 4096 * 100,
     4, 10)
pool("adaptive_avg_pool1d 10 (4,128,87)", "adaptive_avg_pool1d n=4 c=128 l=87 o=10", 512 * 87, 512 * 10, 10, 10)
pool("adaptive_avg_pool1d 50 (1,80,312)", "adaptive_avg_pool1d n=1 c=80 l=312 o=50", 80 * 312, 80 * 50, 10, 10)
pool("avg_pool1d k2 (32,64,4096)", "avg_pool1d n=32 c=64 l=4096 k=2", 2048 * 4096, 2048 * 2048, 10, 10)
pool("avg_pool1d k1000, global (64,256,1000)", "avg_pool1d n=64 c=256 l=1000 k=1000", 16384 * 1000, 16384, 4, 8)
pool("mean over dim 2 (64,256,1000)", "reduce f=mean outer=16384 n=1000", 16384 * 1000, 16384, 1.1, 8)

# The same windows in data of each cache's size.
for level, n in (("L1", 1), ("L2", 24), ("L3", 800), ("memory", 12800)):
    pool(f"avg_pool1d k4 in {level} (1,{n},4096)", f"avg_pool1d n=1 c={n} l=4096 k=4", n * 4096, n * 1024, 1, 1)
    pool(f"avg_pool2d k2 in {level} (1,{n},64,64)", f"avg_pool2d n=1 c={n} h=64 k=2", n * 4096, n * 1024, 1, 1)

pool("max_pool2d k2 (32,64,32,32)", "max_pool2d n=32 c=64 h=32 k=2", 2048 * 1024, 2048 * 256, 1, 1)
pool("max_pool2d k3 s2 p1 (32,64,56,56)", "max_pool2d n=32 c=64 h=56 k=3 s=2 p=1", 2048 * 56 * 56, 2048 * 28 * 28, 1, 1)
pool("max_pool1d k4 (32,64,4096)", "max_pool1d n=32 c=64 l=4096 k=4", 2048 * 4096, 2048 * 1024, 1, 1)
pool("max_pool1d k3 s1 p1 (8,64,1000)", "max_pool1d n=8 c=64 l=1000 k=3 s=1 p=1", 512000, 512000, 1, 1)

# Long rows, several of which are read together: their order in memory is hidden from the processor.
pool("avg_pool2d k2 (16,32,224,224)", "avg_pool2d n=16 c=32 h=224 k=2", 512 * 224**2, 512 * 112**2, 1, 1)
pool("avg_pool2d k3 s1 p1 (16,32,224,224)", "avg_pool2d n=16 c=32 h=224 k=3 s=1 p=1", 512 * 224**2, 512 * 224**2, 1, 1)
pool("max_pool2d k3 s2 p1 (16,32,224,224)", "max_pool2d n=16 c=32 h=224 k=3 s=2 p=1", 512 * 224**2, 512 * 112**2, 1, 1)
pool("max_pool2d k3 s1 p1 (16,32,32,32)", "max_pool2d n=16 c=32 h=32 k=3 s=1 p=1", 512 * 1024, 512 * 1024, 1, 1)
pool("max_pool2d k5 s1 p2 (16,32,32,32)", "max_pool2d n=16 c=32 h=32 k=5 s=1 p=2", 512 * 1024, 512 * 1024, 1, 1)
pool("max_pool2d k4 s2 p1 (16,32,32,32)", "max_pool2d n=16 c=32 h=32 k=4 s=2 p=1", 512 * 1024, 512 * 256, 1, 1)

# --- products: the three of a linear layer ----------------------------------------------------------------------------

group("Products")


def product(m, n, k, transposed="nn", double=False):
    ta, tb = (int(letter == "t") for letter in transposed)
    size = F64 if double else F32
    use = {"nn": "input gradient", "nt": "forward", "tn": "weight gradient"}[transposed]
    # 70 % of the peak at 32^3, 85 % from 128^3 on, 80 % for weight gradients.
    cube = (m * n * k) ** (1 / 3)
    most = 0.80 if transposed == "tn" else 0.85
    share = 0.70 + (most - 0.70) * min(1, max(0, math.log2(cube / 32) / 2))
    row(f"{'dgemm' if double else 'sgemm'} {transposed} {m}x{n}x{k}, {use}",
        f"product m={m} n={n} k={k} ta={ta} tb={tb} double={int(double)} pass=forward",
        Phase(2 * m * n * k, size * (m * k + k * n), size * m * n, double=double), share=share, tolerance=1e-4)


for cube in (32, 48, 64, 96, 100, 128, 192, 200, 256, 384, 512, 1000, 1024, 2048):
    product(cube, cube, cube)
for m, n, k in ((64, 128, 784), (64, 256, 784), (37, 61, 97), (128, 128, 128), (256, 256, 256), (257, 263, 251),
                (512, 512, 512), (1024, 1024, 1024)):
    product(m, n, k, "nt")
    product(m, n, k, "tn")
product(64, 128, 784)
product(37, 61, 97)
for cube in (32, 64, 128, 256, 512, 1024):
    product(cube, cube, cube, double=True)
product(257, 263, 251, "nt", double=True)

for pass_ in ("forward", "both"):
    work = 64 * 784 * 256
    conv("linear 784 to 256, batch 64", "linear n=64 in=784 out=256", pass_, work, 64 * 784, 784 * 256, 64 * 256,
         ratio=1)
    conv("linear 32 to 5, batch 32", "linear n=32 in=32 out=5", pass_, 32 * 32 * 5, 32 * 32, 32 * 5, 32 * 5, ratio=1)

# --- the rest: vectorised, at the bound of memory or of the instructions ----------------------------------------------

group("Elementwise, reductions, normalisations, sequences, optimisers")

for name, n in (("L1", 2048), ("L2", 65536), ("memory", 1 << 24)):
    row(f"add in {name}", f"add n={n} pass=forward", stream(2 * n, n), ratio=1)
# Multiply-adds and divisions an element that a vectorised float32 function takes at least; estimates.
for f, multiply_adds, divisions in (("relu", 1, 0), ("exp", 10, 0), ("log", 12, 0), ("tanh", 12, 1), ("sigmoid", 12, 1),
                                    ("gelu", 16, 0)):
    row(f"{f} in L2/forward", f"map f={f} n=65536 pass=forward",
        stream(65536, 65536, flops=2 * 65536 * multiply_adds, divisions=65536 * divisions), ratio=1)
    row(f"{f} in L2/backward", f"map f={f} n=65536 pass=backward", stream(2 * 65536, 65536), ratio=1)
row("relu in memory/forward", f"map f=relu n={1 << 24} pass=forward", stream(1 << 24, 1 << 24), ratio=1)
for pass_ in ("forward", "both"):
    size = 1024 * 768 * (2 if pass_ == "both" else 1)
    row(f"multiply by a row (1024,768)/{pass_}", f"mul_rows rows=1024 columns=768 pass={pass_}",
        stream(size + 768, size), ratio=1)
row("transpose (32,256,256)", "transpose n=32 rows=256 columns=256 pass=forward", stream(1 << 21, 1 << 21), ratio=1)
row("transpose (2000,2000)", "transpose n=1 rows=2000 columns=2000 pass=forward", stream(4000000, 4000000), ratio=1)

row("sum of all, L2", "sum_all n=131072 pass=forward", stream(131072, 1), ratio=1)
row("sum of all, memory", f"sum_all n={1 << 24} pass=forward", stream(1 << 24, 1), ratio=1)
row("sum over rows (4096,256)", "reduce f=sum outer=1 n=4096 inner=256 pass=forward", stream(1 << 20, 256), ratio=1)
row("sum over rows (65536,256)", "reduce f=sum outer=1 n=65536 inner=256 pass=forward", stream(1 << 24, 256), ratio=1)
row("sum over rows (16384,1000)", "reduce f=sum outer=1 n=16384 inner=1000 pass=forward",
    stream(16384000, 1000), ratio=1)
for f in ("max", "var"):
    row(f"{f} over rows (65536,256)", f"reduce f={f} outer=1 n=65536 inner=256 pass=forward", stream(1 << 24, 256),
        ratio=1)
row("mean over dim 1 (64,256,128)", "reduce f=mean outer=64 n=256 inner=128 pass=forward", stream(1 << 21, 8192),
    ratio=1)
row("mean over dim 1 (2000,3,4)", "reduce f=mean outer=2000 n=3 inner=4 pass=forward", stream(24000, 8000), ratio=1)
row("max over the last dim (4096,256)", "reduce f=max outer=4096 n=256 pass=forward", stream(1 << 20, 4096), ratio=1)


def both(name, task, x, saved=0, **wanted):
    """An operation that keeps the shape: [x] to [x]; its backward reads the gradient and what was saved."""
    row(f"{name}/forward", f"{task} pass=forward", stream(x, x), **wanted)
    row(f"{name}/backward", f"{task} pass=backward", stream(2 * x, x), **wanted)


both("softmax (1024,256)", "softmax rows=1024 columns=256", 1 << 18, ratio=1)
both("softmax (4096,10)", "softmax rows=4096 columns=10", 40960, ratio=1)
both("log_softmax (1024,256)", "log_softmax rows=1024 columns=256", 1 << 18, ratio=1)
row("cross_entropy (1024,256)/forward and backward", "cross_entropy rows=1024 columns=256 pass=both",
    stream(1 << 18, 1 << 18), ratio=1)
row("cross_entropy (256,10)/forward and backward", "cross_entropy rows=256 columns=10 pass=both", stream(2560, 2560),
    ratio=1)
both("LayerNorm (1024,768)", "layer_norm rows=1024 columns=768", 1024 * 768, ratio=1)
both("GroupNorm 8 (32,64,32,32)", "group_norm n=32 c=64 h=32 groups=8", 2048 * 1024, ratio=1)
both("BatchNorm2d, training (32,64,32,32)", "batch_norm n=32 c=64 h=32 training=1", 2048 * 1024, ratio=1)
row("BatchNorm2d, evaluation (32,64,32,32)", "batch_norm n=32 c=64 h=32 training=0 pass=forward",
    stream(2048 * 1024, 2048 * 1024), ratio=1)
row("Embedding (5000,64), 4096 rows/forward", "embedding n=4096 rows=5000 columns=64 pass=forward",
    stream(4096 * 64, 4096 * 64), ratio=1)
row("Embedding (5000,64), 4096 rows/backward", "embedding n=4096 rows=5000 columns=64 pass=backward",
    stream(4096 * 64, 5000 * 64), ratio=1)

for name, task, gates in (("LSTM", "lstm", 4), ("GRU", "gru", 3)):
    for n, l, width in ((32, 25, 64), (1, 50, 32), (64, 50, 256)):
        work = n * l * gates * width * 2 * width
        sizes = n * l * width, gates * width * 2 * width, n * l * width
        for pass_ in ("forward", "both"):
            conv(f"{name} batch {n}, length {l}, width {width}", f"{task} n={n} l={l} in={width} h={width}", pass_,
                 work, *sizes, ratio=1, tolerance=1e-4)

for pass_ in ("forward", "both"):
    conv("attention (4,8,128,32)", "attention n=4 heads=8 l=128 e=32", pass_, 2 * 32 * 128 * 128 * 32,
         3 * 32 * 128 * 32, 0, 32 * 128 * 32, ratio=1)

for f, changed, slow in (("sgd", 1, 0), ("momentum", 2, 0), ("adam", 3, 1), ("adamw", 3, 1), ("rmsprop", 2, 1)):
    for count, n in ((20, 64), (1, 65536), (1, 1 << 22)):
        size = count * n
        row(f"optimiser {f}, {count} of {n}", f"optimizer f={f} count={count} n={n}",
            updates(size, changed * size, divisions=slow * size, roots=slow * size), ratio=1, tolerance=1e-4)

# --- what is asked for less often -------------------------------------------------------------------------------------

group("Other operations")


def operation(name, f, a, *more, out=None, bound=True, **wanted):
    """One of `operations` in peers; `a` and `more` are shapes, or what else the task says, `out` elements of results.
    A bound is stated where elements are only moved or little is done with them.
    """
    read = math.prod(map(int, a.split("x")))
    moves = [stream(read, out or read)] if bound else []
    rest = " ".join(more)
    row(f"{name}/forward", f"operation f={f} a={a} {rest} pass=forward", *moves, ratio=1, **wanted)
    row(f"{name}/forward and backward", f"operation f={f} a={a} {rest} pass=both", ratio=1, **wanted)


operation("dimensions reversed (64,64,64)", "reverse", "64x64x64")
operation("stack along the last dim, 2 of (256,128)", "stack_last", "256x128", "b=256x128", bound=False)
operation("cat of channels, 32 and 16 (16,c,14,14)", "cat", "16x32x14x14", "b=16x16x14x14", bound=False)
operation("pad with zeros (16,32,14,14)", "pad_zeros", "16x32x14x14", out=512 * 256)
operation("pad with the border (16,32,14,14)", "pad_replicate", "16x32x14x14", out=512 * 256)
operation("index_select of columns (512,256)", "index_select", "512x256", "index=256 classes=256")
operation("gather of 64 columns (512,256)", "gather", "512x256", "index=512x64 classes=256", bound=False)
operation("PReLU of channels (16,32,14,14)", "prelu", "16x32x14x14", "b=32")
operation("upsample nearest (8,32,14,14)", "nearest", "8x32x14x14", out=256 * 28 * 28)
operation("upsample bilinear (8,32,14,14)", "bilinear", "8x32x14x14", out=256 * 28 * 28)
operation("multiply by a column (2048,64)", "mul", "2048x64", "b=2048x1")
operation("multiply by a column (26214,5)", "mul", "26214x5", "b=26214x1")
operation("divide by a column (500,333)", "quotient", "500x333", "b=500x1 positive=1")
operation("maximum with a column (500,333)", "maximum", "500x333", "b=500x1")
operation("add a column (20000,5)", "plus", "20000x5", "b=20000x1")
operation("pad the ends of rows (4,3,20000)", "pad_ends", "4x3x20000")
operation("select of the last dim (3,5000,5)", "select_last", "3x5000x5", bound=False)
operation("upsample nearest 1-d (16,8,500)", "nearest_1d", "16x8x500", out=128 * 1000)
operation("upsample nearest 1-d (2,3,50000)", "nearest_1d", "2x3x50000", out=6 * 100000)
operation("sum over dims 0 and 2 (64,100,37)", "sum_0_2", "64x100x37", out=100)
operation("sum over dims 0 and 2 (3,5000,5)", "sum_0_2", "3x5000x5", out=5000)
operation("sum over dim 1 (4,3,20000)", "sum_1", "4x3x20000", out=80000)
operation("product over dim 1 (4,3,20000)", "prod_1", "4x3x20000", "positive=1", out=80000, tolerance=1e-4)
operation("maximum over dim 1 (4,3,20000)", "amax_1", "4x3x20000", out=80000)
operation("adaptive max pool 1-d 5 (500,30,11)", "amax_pool_1d", "500x30x11", out=75000, bound=False)
operation("matrix by vector (1024,512)", "matmul", "1024x512", "b=512x1", out=1024, tolerance=1e-4)
operation("product of 8 rows (784,128)", "matmul", "8x784", "b=784x128", bound=False, tolerance=1e-4)
operation("product over the last dim (512,256)", "prod", "512x256", "positive=1", out=512, tolerance=1e-4)
operation("norm over the last dim (512,256)", "norm", "512x256", out=512)
operation("variance over the last dim (512,256)", "var", "512x256", out=512)
operation("logsumexp over the last dim (512,256)", "logsumexp", "512x256", bound=False)
operation("amax over the last dim (512,256)", "amax", "512x256", out=512)
operation("sin in L2", "sin", "65536", bound=False)
operation("power 2.5 in L2", "power", "65536", "positive=1", bound=False)
operation("softmax over dim 1 (32,64,100)", "softmax_1", "32x64x100", bound=False)
operation("log_softmax over dim 1 (32,64,100)", "log_softmax_1", "32x64x100", bound=False)
operation("cross_entropy, smoothed (1024,100)", "smoothed", "1024x100", "index=1024 classes=100", bound=False)
operation("cross_entropy (1024,100)", "cross_entropy", "1024x100", "index=1024 classes=100", bound=False)
operation("cross_entropy of planes (8,10,28,28)", "cross_entropy", "8x10x28x28", "index=8x28x28 classes=10", bound=False)
operation("causal attention (8,4,64,32)", "causal", "8x4x64x32", "b=8x4x64x32 c=8x4x64x32", bound=False)
operation("adaptive_max_pool2d 1 (16,64,14,14)", "adaptive_max_1", "16x64x14x14", out=1024)
operation("adaptive_max_pool2d 5 (16,64,14,14)", "adaptive_max_5", "16x64x14x14", bound=False)
operation("max_pool3d k2 (4,16,16,16,16)", "max_pool3d", "4x16x16x16x16", out=64 * 512)
operation("avg_pool3d k2 (4,16,16,16,16)", "avg_pool3d", "4x16x16x16x16", out=64 * 512)
operation("conv3d k3 (4,8,8,16,16) to 16", "conv3d", "4x8x8x16x16", "b=16x8x3x3x3", bound=False, tolerance=1e-4)

# --- growth: how the time of Taper grows when one extent doubles ------------------------------------------------------


@dataclass
class Growth:
    """`task` with `{n}` at each of `sizes`; a doubling may cost up to `cliff` times, and more only by as much as the
    least time for `bound(n)`, a list of phases, grows by more than 2, 4, 8... times, because data leaves a cache.
    """

    name: str
    task: str
    sizes: list
    cliff: float
    bound: object = None


def doublings(first, last):
    return [first << i for i in range((last // first).bit_length())]


GROWTH = [
    Growth("batch of the forum model", "forum_step n={n}", doublings(1, 1024), 2.5),
    Growth("batch of the MLP", "mlp_step n={n}", doublings(1, 256), 2.5),
    Growth("batch of conv1d k3 (n,32,256)", "conv1d n={n} c=32 f=32 l=256 k=3 p=1 pass=both", doublings(1, 64), 2.5),
    Growth("length of conv1d k3 (4,32,l)", "conv1d n=4 c=32 f=32 l={n} k=3 p=1 pass=both", doublings(8, 8192), 2.5),
    Growth("channels of conv1d k3 (4,c,256)", "conv1d n=4 c={n} f={n} l=256 k=3 p=1 pass=both", doublings(1, 256), 5),
    Growth("length of avg_pool1d k4 (8,16,l)", "avg_pool1d n=8 c=16 l={n} k=4 pass=forward", doublings(8, 65536), 2.5,
           lambda n: [stream(128 * n, 32 * n)]),
    Growth("window of avg_pool1d, stride 1 (8,16,4096)", "avg_pool1d n=8 c=16 l=4096 k={n} s=1 pass=forward",
           doublings(1, 1024), 2.5),
    Growth("size of a product", "product m={n} n={n} k={n} pass=forward", doublings(4, 1024), 9),
    Growth("features of linear, batch 32", "linear n=32 in={n} out={n} pass=both", doublings(4, 1024), 5,
           lambda n: [Phase(2 * 32 * n * n), stream(n * n, 0), Phase(2 * 32 * n * n), stream(n * n, 0),
                      Phase(2 * 32 * n * n), stream(0, n * n)]),
    Growth("length of softmax (64,l)", "softmax rows=64 columns={n} pass=forward", doublings(2, 16384), 2.5),
    Growth("steps of LSTM (8,l,32)", "lstm n=8 l={n} in=32 h=32 pass=both", doublings(1, 256), 2.5),
    Growth("depth of a chain", "chain ops={n}", doublings(1, 1 << 17), 2.5),
]

# --- a flood of denormals: an MLP whose inputs, and so products and gradients, are below the normal numbers -----------


@dataclass
class Flood:
    """Two tasks that differ in their numbers only."""

    name: str
    usual: str
    flooded: str


FLOODS = [
    Flood("MLP step/batch 64, denormals count as 0 as in trainings from JSON", "mlp_step n=64 flush=1",
          "mlp_step n=64 flush=1 denormal=1"),
    Flood("MLP step/batch 64, denormals are computed as C++ programs are used to", "mlp_step n=64",
          "mlp_step n=64 denormal=1"),
]
