"""Holds the program `taper` against PyTorch, through files alone.

    python3 scripts/check_pytorch.py build/release/taper [number of models]

1. Random models of all layers through `taper run`: outputs, all gradients and running statistics, in float64 and
   float32, training and evaluation, batches of none, one and several samples, and without that dimension. At least one
   for each type that `taper layers` lists.
2. A checkpoint that `taper train` wrote is loaded into the same PyTorch module by name, and weights that PyTorch saved
   are loaded by Taper; the logits must agree to 1e-6 of the largest.

Needs torch, numpy and safetensors. Prints the worst error of each part and exits 1 when one is too large.
"""

import copy
import json
import math
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import torch
from golden.random_models import REFUSALS, module_of, random_model, random_tensors, types_of
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {torch.float64: 1e-11, torch.float32: 2e-6}
BATCHES = (0, 1, 2, 3, 5, None)  # None: without the dimension of the batch
MOST_DRAWN = 5000  # models drawn for one that has the type wanted


def taper(*arguments):
    done = subprocess.run([TAPER, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(f"taper {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")


def error(ours, theirs, scale=0.0):
    """The largest difference, relative to the largest value; to a thousandth of `scale` where all are smaller. NaN and
    infinities must be the same.
    """
    if ours.shape != theirs.shape:
        raise RuntimeError(f"shapes differ: {list(ours.shape)} and {list(theirs.shape)}")
    special = [torch.where(t.isfinite(), 0, t).nan_to_num(2, 1, -1) for t in (ours, theirs)]
    if not torch.equal(*special):
        return math.inf
    finite = theirs.isfinite()
    if not finite.any():
        return 0.0
    ours, theirs = ours[finite], theirs[finite]
    return ((ours - theirs).abs().max() / theirs.abs().max().clamp_min(max(1e-3, 1e-3 * scale))).item()


def layer_types():
    done = subprocess.run([TAPER, "layers", "--json"], capture_output=True, text=True, check=True)
    return [entry["name"] for entry in json.loads(done.stdout) if entry["group"] == "Layers"]


def cast(tensors, dtype):
    return {name: t.to(dtype) if t.is_floating_point() else t for name, t in tensors.items()}


def run_taper(folder, config, module, xs, dys, mode, dtype):
    weights = {name: t.contiguous() for name, t in cast(module.state_dict(), dtype).items()}
    (folder / "model.json").write_text(json.dumps(config))
    save_file(weights or {"none": torch.zeros(1)}, folder / "weights.safetensors")
    save_file(cast(xs, dtype), folder / "x.safetensors")
    save_file(cast(dys, dtype) or {"none": torch.zeros(1)}, folder / "dy.safetensors")
    arguments = ["--weights", folder / "weights.safetensors"] if weights else []
    taper("run", folder / "model.json", *arguments, "--input", folder / "x.safetensors", "--grad-output",
          folder / "dy.safetensors", "--dtype", str(dtype).removeprefix("torch."), "--mode", mode, "--output",
          folder / "out.safetensors")
    return load_file(folder / "out.safetensors")


def run_pytorch(module, xs, dys, mode, dtype):
    """All outputs, and the gradients that `dys` send back; without `dys` the outputs alone."""
    module = copy.deepcopy(module).to(dtype).train(mode == "train")
    xs = {name: x.detach().clone() for name, x in cast(xs, dtype).items()}
    leaves = {name: x.requires_grad_() for name, x in xs.items() if x.is_floating_point()}
    leaves |= module.named_parameters()
    outputs = module(*xs.values())
    results = {name: y.detach().clone() for name, y in outputs.items()}
    if dys is None:
        return results
    sent = [(y, dys[name].to(dtype)) for name, y in outputs.items() if y.requires_grad]
    torch.autograd.backward([y for y, _ in sent], [dy for _, dy in sent])
    for name, leaf in leaves.items():
        results[f"grad.{name}"] = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
    if mode == "train":
        results |= {f"buffer.{name}": buffer for name, buffer in module.named_buffers()}
    return {name: t.double() for name, t in results.items()}


class Rounding(torch.autograd.Function):
    """Changes each element and each gradient by up to half a unit in the last place of float32."""

    @staticmethod
    def forward(_, x):
        return x * (1 + 2**-24 * (2 * torch.rand_like(x) - 1))

    @staticmethod
    def backward(_, dy):
        return Rounding.forward(None, dy)


def rounded(results):
    if isinstance(results, tuple):
        return tuple(map(rounded, results))
    return Rounding.apply(results) if torch.is_tensor(results) and results.is_floating_point() else results


def amplified(module, xs, dys, mode, truth):
    """The largest error that exact layers make by giving their results and gradients in float32, in a few trials."""
    module = copy.deepcopy(module)
    for part in module.modules():
        if not list(part.children()):
            part.register_forward_pre_hook(lambda _, inputs: rounded(inputs))
            part.register_forward_hook(lambda _, inputs, y: rounded(y))
    return max(largest_error(run_pytorch(module, xs, dys, mode, torch.float64), truth)[0] for _ in range(3))


def largest_error(ours, theirs):
    finite = [t[t.isfinite()].abs().max().item() for t in theirs.values() if t.isfinite().any()]
    return max((error(ours[name].double(), theirs[name], max(finite, default=0)), name) for name in theirs)


def draw(rng, known, wanted):
    """A model that has a layer of the type wanted, with an input that PyTorch takes, and its mode."""
    for _ in range(MOST_DRAWN):
        mode = rng.choice(["train", "eval"])
        config = random_model(rng, mode, known.__contains__, wanted)
        kinds = list(types_of(config["layers"]))
        if wanted not in kinds:
            continue
        module = module_of(config).float().double()
        batches = rng.sample(BATCHES, len(BATCHES))
        if any(kind.startswith(("BatchNorm", "GroupNorm", "Upsample")) for kind in kinds):
            batches.remove(None)  # there PyTorch takes the channels for a batch
        if any(kind.startswith("InstanceNorm") for kind in kinds) and mode == "train":
            batches.remove(0)  # PyTorch's running statistics become NaN, Taper's stay
        if rng.random() < 0.3:
            batches.sort(key=lambda batch: batch is not None)
        for batch in batches:
            xs = random_tensors(rng, config, batch)
            try:
                with torch.no_grad():
                    outputs = run_pytorch(module, xs, None, mode, torch.float64)
            except REFUSALS:
                continue
            dys = {name: torch.randn(y.shape).double() for name, y in outputs.items() if y.is_floating_point()}
            return config, module, xs, dys, mode, "unbatched" if batch is None else f"batch {batch}"
    sys.exit(f"{wanted}: in none of {MOST_DRAWN} random models; give it a step in scripts/golden/random_models.py")


def check_random_models(folder, count):
    """Every type of layer is met: each model has one of the type that was met least. Inputs and weights are exact in
    float32, so PyTorch's float64 is the truth for both types.

    Results may be off by `LIMITS`; by more only where the model itself amplifies the rounding of what goes from layer
    to layer, as in the gradient of a bias before a norm, which is zero but for that. Then they may be off by three
    times what exact layers with rounded results are, float32 also by three times what PyTorch's is. (In a trial with
    700 models Taper's float32 was off by more than 4e-6 in 25, by at most 1.5 times PyTorch's error in each.)
    """
    rng, known = random.Random(1), layer_types()
    met, modes, good = Counter({kind: 0 for kind in known}), Counter(), True
    worst, pytorch = {dtype: (0.0, "") for dtype in LIMITS}, (0.0, "")
    count = max(count, len(known))
    for i in range(count):
        config, module, xs, dys, mode, batch = draw(rng, set(known), min(known, key=met.__getitem__))
        kinds = list(types_of(config["layers"]))
        met.update(kinds)
        modes.update([mode, batch])
        where = f"model {i} ({', '.join(kinds)}, {mode}, {batch}), "
        truth = run_pytorch(module, xs, dys, mode, torch.float64)
        own, name = largest_error(run_pytorch(module, xs, dys, mode, torch.float32), truth)
        pytorch = max(pytorch, (own, where + name))
        allowed = {torch.float64: LIMITS[torch.float64], torch.float32: max(LIMITS[torch.float32], 3 * own)}
        for dtype in LIMITS:
            try:
                ours = run_taper(folder, config, module, xs, dys, mode, dtype)
                if set(ours) != set(truth):
                    raise RuntimeError(f"tensors differ: {sorted(ours)} and {sorted(truth)}")
                value, name = largest_error(ours, truth)
            except RuntimeError as problem:
                print(f"{where}{dtype}: {problem}\n{json.dumps(config)}")
                good = False
                break
            worst[dtype] = max(worst[dtype], (value, where + name))
            if value > allowed[dtype]:
                allowed[dtype] = 3 * amplified(module, xs, dys, mode, truth) * torch.finfo(dtype).eps * 2**23
            if value > allowed[dtype]:
                print(f"{where}{name} in {dtype}: error {value:.2g}, PyTorch's in float32 {own:.2g}")
                good = False
    for dtype, limit in LIMITS.items():
        value, where = worst[dtype]
        print(f"{count} random models in {dtype}: worst error {value:.2g} of the largest value (limit {limit:g}); {where}")
    print(f"PyTorch's own float32: worst error {pytorch[0]:.2g}; {pytorch[1]}")
    print("models: " + ", ".join(f"{name} {modes[name]}" for name in sorted(modes)))
    print(f"all {len(known)} types of layers met: " + ", ".join(f"{name} {met[name]}" for name in sorted(met)))
    return good


class Forum(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv1d(12, 32, 3, padding=1)
        self.avg_pool = torch.nn.AvgPool1d(25)
        self.fc = torch.nn.Linear(32, 9)

    def forward(self, x):
        return self.fc(self.avg_pool(torch.relu(self.conv1(x))).squeeze(2))


def check_checkpoints(folder):
    config = ROOT / "examples/configs/forum.json"
    taper("train", config, "--epochs", 3, "--out", folder / "run", "--progress", "none")
    module = Forum()
    checkpoint = load_file(folder / "run/checkpoints/last.safetensors")
    module.load_state_dict({name: t for name, t in checkpoint.items() if name in module.state_dict()})
    x = torch.randn(7, 12, 25)
    save_file({"input": x}, folder / "x.safetensors")

    def logits(weights):
        taper("run", config, "--weights", weights, "--input", folder / "x.safetensors", "--output", folder / "y.safetensors")
        return load_file(folder / "y.safetensors")["output"]

    ours = error(logits(folder / "run/checkpoints/last.safetensors"), module(x).detach())
    fresh = Forum()
    save_file(fresh.state_dict(), folder / "fresh.safetensors")
    theirs = error(logits(folder / "fresh.safetensors"), fresh(x).detach())
    print(f"logits of Taper's checkpoint in PyTorch: error {ours:.2g}; of PyTorch's weights in Taper: {theirs:.2g} (limit 1e-6)")
    return max(ours, theirs) <= 1e-6


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    TAPER = str(Path(sys.argv[1]).resolve())
    torch.manual_seed(1)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        warnings.simplefilter("ignore")  # PyTorch's about its own speed
        good = check_random_models(Path(name), int(sys.argv[2]) if len(sys.argv) > 2 else 100)
        good &= check_checkpoints(Path(name))
    sys.exit(0 if good else 1)
