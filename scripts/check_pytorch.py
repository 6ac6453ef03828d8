"""Holds the program `taper` against PyTorch, through files alone.

    python3 scripts/check_pytorch.py build/release/src/cli/taper

1. Random models through `taper run`: outputs and all gradients, in float64 and float32.
2. A checkpoint that `taper train` wrote is loaded into the same PyTorch module by name, and weights that PyTorch saved
   are loaded by Taper; the logits must agree to 1e-6 of the largest.

Needs torch, numpy and safetensors. Prints the worst error of each part and exits 1 when one is too large.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {torch.float64: 1e-12, torch.float32: 2e-6}


def taper(*arguments):
    done = subprocess.run([TAPER, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(f"taper {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")


def error(ours, theirs):
    if ours.shape != theirs.shape:
        sys.exit(f"shapes differ: {list(ours.shape)} and {list(theirs.shape)}")
    if theirs.numel() == 0:
        return 0.0
    return ((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-3)).item()


def random_layers(rng, channels, length):
    """Layers of a small 1-d model, for both sides."""
    ours, theirs = [], []

    def add(kind, **options):
        ours.append({"type": kind, **options})
        theirs.append(getattr(torch.nn, kind)(**options))

    for _ in range(rng.randint(1, 3)):
        out = rng.choice([2, 3, 5])
        kernel, dilation = rng.randint(1, 3), rng.randint(1, 2)
        add("Conv1d", in_channels=channels, out_channels=out, kernel_size=kernel, dilation=dilation,
            stride=rng.randint(1, 2), padding=rng.randint(0, 2), bias=rng.random() < 0.8,
            padding_mode=rng.choice(["zeros", "reflect", "replicate", "circular"]))
        channels = out
        add(rng.choice(["ReLU", "Tanh", "SiLU", "GELU", "ELU", "Softplus", "Sigmoid", "LeakyReLU"]))
        if rng.random() < 0.6:
            window = rng.randint(2, 3)
            add("AvgPool1d", kernel_size=window, stride=rng.randint(1, 3), padding=rng.randint(0, window // 2),
                ceil_mode=rng.random() < 0.5, count_include_pad=rng.random() < 0.5)
    pooled = rng.randint(1, 5)
    add("AdaptiveAvgPool1d", output_size=pooled)
    add("Flatten")
    add("Linear", in_features=channels * pooled, out_features=rng.choice([1, 3, 7]))
    return ours, torch.nn.Sequential(*theirs)


def check_random_models(folder, count):
    rng = random.Random(1)
    worst = dict.fromkeys(LIMITS, 0.0)
    for i in range(count):
        channels, length = rng.choice([1, 2, 3]), rng.randint(29, 41)
        layers, module = random_layers(rng, channels, length)
        (folder / "model.json").write_text(json.dumps({"input": {"shape": [channels, length]}, "layers": layers}))
        for dtype, limit in LIMITS.items():
            module.to(dtype)
            x = torch.randn(rng.choice([0, 1, 5]), channels, length, dtype=dtype, requires_grad=True)
            y = module(x)
            dy = torch.randn_like(y)
            module.zero_grad()
            y.backward(dy)
            save_file({k: v.contiguous() for k, v in module.state_dict().items()}, folder / "weights.safetensors")
            save_file({"input": x.detach()}, folder / "x.safetensors")
            save_file({"output": dy}, folder / "dy.safetensors")
            taper("run", folder / "model.json", "--weights", folder / "weights.safetensors", "--input",
                  folder / "x.safetensors", "--grad-output", folder / "dy.safetensors", "--dtype",
                  str(dtype).removeprefix("torch."), "--output", folder / "out.safetensors")
            out = load_file(folder / "out.safetensors")
            expected = {"output": y.detach(), "grad.input": x.grad}
            expected |= {f"grad.{name}": p.grad for name, p in module.named_parameters()}
            if set(out) != set(expected):
                sys.exit(f"model {i}: tensors differ: {sorted(out)} and {sorted(expected)}")
            worst[dtype] = max(worst[dtype], *(error(out[name], expected[name]) for name in expected))
    for dtype, limit in LIMITS.items():
        print(f"{count} random models in {dtype}: worst error {worst[dtype]:.2g} of the largest value (limit {limit:g})")
    return all(worst[dtype] <= limit for dtype, limit in LIMITS.items())


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
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    TAPER = str(Path(sys.argv[1]).resolve())
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        good = check_random_models(Path(name), 40)
        good &= check_checkpoints(Path(name))
    sys.exit(0 if good else 1)
