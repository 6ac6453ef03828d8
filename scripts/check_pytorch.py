"""Holds the program `taper` against PyTorch, through files alone.

    python3 scripts/check_pytorch.py build/release/src/cli/taper [number of models]

1. Random models of all layers through `taper run`: outputs, all gradients and running statistics, in float64 and
   float32, training and evaluation.
2. A checkpoint that `taper train` wrote is loaded into the same PyTorch module by name, and weights that PyTorch saved
   are loaded by Taper; the logits must agree to 1e-6 of the largest.

Needs torch, numpy and safetensors. Prints the worst error of each part and exits 1 when one is too large.
"""

import copy
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from golden.module_case import Model
from golden.random_models import random_model
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {torch.float64: 1e-11, torch.float32: 2e-6}


def taper(*arguments):
    done = subprocess.run([TAPER, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(f"taper {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")


def error(ours, theirs, scale=0.0):
    """The largest difference, relative to the largest value; to a thousandth of `scale` where all are smaller."""
    if ours.shape != theirs.shape:
        sys.exit(f"shapes differ: {list(ours.shape)} and {list(theirs.shape)}")
    if theirs.numel() == 0:
        return 0.0
    return ((ours - theirs).abs().max() / theirs.abs().max().clamp_min(max(1e-3, 1e-3 * scale))).item()


def layer_types():
    done = subprocess.run([TAPER, "layers", "--json"], capture_output=True, text=True, check=True)
    return {entry["name"] for entry in json.loads(done.stdout)}


def give_statistics(module):
    """Running statistics that are not what every module starts with."""
    for name, buffer in module.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_()
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 2)


def run_taper(module, folder, x, dy, mode, dtype):
    weights = {name: t.to(dtype) if t.is_floating_point() else t for name, t in module.state_dict().items()}
    save_file({name: t.contiguous() for name, t in weights.items()} or {"none": x[:0]}, folder / "weights.safetensors")
    save_file({"input": x.to(dtype)}, folder / "x.safetensors")
    save_file({"output": dy.to(dtype)}, folder / "dy.safetensors")
    arguments = ["--weights", folder / "weights.safetensors"] if weights else []
    taper("run", folder / "model.json", *arguments, "--input", folder / "x.safetensors", "--grad-output",
          folder / "dy.safetensors", "--dtype", str(dtype).removeprefix("torch."), "--mode", mode, "--output",
          folder / "out.safetensors")
    return load_file(folder / "out.safetensors")


def run_pytorch(module, x, dy, mode, dtype):
    module = copy.deepcopy(module).to(dtype).train(mode == "train")
    x = x.to(dtype, copy=True).requires_grad_()
    y = module(x)
    y.backward(dy.to(dtype))
    results = {"output": y.detach(), "grad.input": x.grad}
    for name, parameter in module.named_parameters():
        results[f"grad.{name}"] = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    if mode == "train":
        results |= {f"buffer.{name}": buffer for name, buffer in module.named_buffers()}
    return {name: t.double() for name, t in results.items()}


def largest_error(ours, theirs):
    scale = max(t.abs().max().item() for t in theirs.values() if t.numel())
    return max((error(ours[name].double(), theirs[name], scale), name) for name in theirs)


def check_random_models(folder, count):
    """Inputs and weights are exact in float32, so PyTorch's float64 is the truth for both types. Float32 may be off by
    `LIMITS`, and where PyTorch's own float32 is further off, because the model amplifies, by three times that.
    """
    rng, known = random.Random(1), layer_types()
    worst, pytorch, used, good = dict.fromkeys(LIMITS, (0.0, "")), (0.0, ""), {}, True
    for i in range(count):
        shape, layers = random_model(rng, known.__contains__)
        for layer in layers:
            used[layer["type"]] = used.get(layer["type"], 0) + 1
        (folder / "model.json").write_text(json.dumps({"input": {"shape": shape}, "layers": layers}))
        module = Model(layers).float()
        give_statistics(module)
        module.double()
        mode = rng.choice(["train", "eval"])
        x = torch.randn(rng.choice([2, 3, 5]), *shape).double()
        with torch.no_grad():
            dy = torch.randn(copy.deepcopy(module)(x).shape).double()
        truth = run_pytorch(module, x, dy, mode, torch.float64)
        own, name = largest_error(run_pytorch(module, x, dy, mode, torch.float32), truth)
        where = f"model {i} ({', '.join(layer['type'] for layer in layers)}, {mode}), "
        pytorch = max(pytorch, (own, where + name))
        for dtype, limit in LIMITS.items():
            ours = run_taper(module, folder, x, dy, mode, dtype)
            if set(ours) != set(truth):
                sys.exit(f"{where}tensors differ: {sorted(ours)} and {sorted(truth)}")
            value, name = largest_error(ours, truth)
            worst[dtype] = max(worst[dtype], (value, where + name))
            if value > max(limit, 3 * own if dtype == torch.float32 else 0):
                print(f"{where}{name} in {dtype}: error {value:.2g}, PyTorch's in float32 {own:.2g}")
                good = False
    for dtype, limit in LIMITS.items():
        value, where = worst[dtype]
        print(f"{count} random models in {dtype}: worst error {value:.2g} of the largest value (limit {limit:g}); {where}")
    print(f"PyTorch's own float32: worst error {pytorch[0]:.2g}; {pytorch[1]}")
    print("layers met: " + ", ".join(f"{name} {used[name]}" for name in sorted(used)))
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
    with tempfile.TemporaryDirectory() as name:
        good = check_random_models(Path(name), int(sys.argv[2]) if len(sys.argv) > 2 else 40)
        good &= check_checkpoints(Path(name))
    sys.exit(0 if good else 1)
