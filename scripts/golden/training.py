"""Optimisers step by step, and the learning rates of schedulers."""

import itertools

import torch

from .case import describe, generator, values

STEPS = 10
EPOCHS = 12
TINY = 2.0**-40


def optimizer(config, size=5):
    """Ten steps on one parameter; its last two gradients are always 0 and always tiny, which shows what eps does."""
    name = describe(config)
    stream = generator(name)
    parameter = torch.nn.Parameter(values(stream, [size]))
    gradients = values(stream, [STEPS, size])
    gradients[:, -2] = 0.0
    gradients[:, -1] *= TINY
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in config.items() if key != "type"}
    optimiser = getattr(torch.optim, config["type"])([parameter], foreach=False, **options)
    initial, steps = parameter.tolist(), []
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimiser.step()
        steps.append(parameter.tolist())
    return {"name": name, "optimizer": config, "initial": initial, "gradients": gradients.tolist(), "values": steps}


def optimizers():
    sgd = {"type": "SGD", "lr": 0.125}
    for options in (
        {}, {"momentum": 0.9}, {"momentum": 0.9, "dampening": 0.25}, {"momentum": 0.9, "nesterov": True},
        {"weight_decay": 0.0625}, {"momentum": 0.5, "weight_decay": 0.0625},
        {"momentum": 0.9, "dampening": 0.25, "weight_decay": 0.0625},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.0625}, {"maximize": True},
        {"momentum": 0.9, "weight_decay": 0.0625, "maximize": True},
    ):
        yield optimizer({**sgd, **options})
    for kind in ("Adam", "AdamW"):
        yield optimizer({"type": kind})
        for options in (
            {}, {"betas": [0.5, 0.75]}, {"betas": [0.0, 0.999]}, {"eps": 0.0625}, {"weight_decay": 0.0},
            {"weight_decay": 0.25}, {"amsgrad": True}, {"amsgrad": True, "betas": [0.8, 0.5]}, {"maximize": True},
            {"betas": [0.7, 0.8], "eps": 1e-3, "weight_decay": 0.125, "amsgrad": True, "maximize": True},
        ):
            yield optimizer({"type": kind, "lr": 0.03125, **options})
    for options in (
        {}, {"alpha": 0.75}, {"eps": 0.0625}, {"weight_decay": 0.25}, {"momentum": 0.9}, {"centered": True},
        {"alpha": 0.5, "eps": 1e-3, "weight_decay": 0.125, "momentum": 0.5, "centered": True}, {"maximize": True},
    ):
        yield optimizer({"type": "RMSprop", "lr": 0.03125, **options})
    for options in (
        {}, {"lr_decay": 0.25}, {"weight_decay": 0.25}, {"initial_accumulator_value": 0.5}, {"eps": 0.0625},
        {"lr_decay": 0.125, "weight_decay": 0.125, "initial_accumulator_value": 0.25}, {"maximize": True},
    ):
        yield optimizer({"type": "Adagrad", "lr": 0.125, **options})


def combinations(kind, **choices):
    """Every config of one value for each key; None leaves the key out."""
    for row in itertools.product(*choices.values()):
        yield {"type": kind, **{key: value for key, value in zip(choices, row) if value is not None}}


def optimizer_grid():
    switches = {"maximize": (None, True)}
    for config in combinations(
        "SGD", lr=(0.0625,), momentum=(None, 0.75), dampening=(None, 0.5), nesterov=(None, True),
        weight_decay=(None, 0.125), **switches,
    ):
        if "nesterov" not in config or ("momentum" in config and "dampening" not in config):
            yield optimizer(config, size=3)
    for kind in ("Adam", "AdamW"):
        for config in combinations(
            kind, lr=(0.0625,), betas=(None, [0.5, 0.625]), eps=(None, 0.125), weight_decay=(0.0, 0.5),
            amsgrad=(None, True), **switches,
        ):
            yield optimizer(config, size=3)
    for config in combinations(
        "RMSprop", lr=(0.0625,), alpha=(None, 0.625), eps=(None, 0.125), weight_decay=(None, 0.5),
        momentum=(None, 0.75), centered=(None, True), **switches,
    ):
        yield optimizer(config, size=3)
    for config in combinations(
        "Adagrad", lr=(0.0625,), lr_decay=(None, 0.5), weight_decay=(None, 0.5),
        initial_accumulator_value=(None, 0.75), eps=(None, 0.125), **switches,
    ):
        yield optimizer(config, size=3)


def build(config, optimiser):
    options = {key: value for key, value in config.items() if key != "type"}
    if config["type"] == "SequentialLR":
        options["schedulers"] = [build(inner, optimiser) for inner in config["schedulers"]]
    return getattr(torch.optim.lr_scheduler, config["type"])(optimiser, **options)


def scheduler(config, lr=0.5, metrics=None):
    """Value k is the rate in use during step k: k calls of the scheduler came before it."""
    name = f"{describe(config)} from {lr}"
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    schedule = build(config, optimiser)
    rates = []
    for epoch in range(EPOCHS):
        rates.append(float(optimiser.param_groups[0]["lr"]))
        optimiser.step()
        if epoch + 1 < EPOCHS:
            schedule.step(*([] if metrics is None else [metrics[epoch]]))
    case = {"name": name, "scheduler": config, "lr": lr, "values": rates}
    return case if metrics is None else {**case, "metrics": metrics}


def schedulers():
    for options in (
        {"step_size": 3}, {"step_size": 5, "gamma": 0.5}, {"step_size": 1, "gamma": 0.75}, {"step_size": 13},
    ):
        yield scheduler({"type": "StepLR", **options})
    for options in (
        {"milestones": [2, 7]}, {"milestones": [3, 5, 11], "gamma": 0.5}, {"milestones": [4, 4], "gamma": 0.5},
        {"milestones": []}, {"milestones": [50]},
    ):
        yield scheduler({"type": "MultiStepLR", **options})
    for gamma in (0.9, 0.5, 1.0):
        yield scheduler({"type": "ExponentialLR", "gamma": gamma})
    for options in ({"T_max": 12}, {"T_max": 5}, {"T_max": 7, "eta_min": 0.125}, {"T_max": 40}, {"T_max": 1}):
        yield scheduler({"type": "CosineAnnealingLR", **options})
    for options in (
        {}, {"start_factor": 0.25, "total_iters": 7}, {"start_factor": 1.0, "end_factor": 0.125, "total_iters": 11},
        {"start_factor": 0.5, "end_factor": 0.75, "total_iters": 3}, {"total_iters": 20},
    ):
        yield scheduler({"type": "LinearLR", **options})
    for options in (
        {}, {"pct_start": 0.5}, {"anneal_strategy": "linear"}, {"div_factor": 5.0, "final_div_factor": 100.0},
        {"three_phase": True}, {"three_phase": True, "pct_start": 0.4, "anneal_strategy": "linear"},
    ):
        fixed = {"max_lr": 0.5, "total_steps": EPOCHS, "cycle_momentum": False}
        yield scheduler({"type": "OneCycleLR", **fixed, **options})
    losses = [1.0, 0.5, 0.75, 0.625, 0.5, 0.5, 0.499, 0.75, 0.75, 0.75, 0.25]
    for options in (
        {"patience": 2}, {"patience": 0, "factor": 0.5}, {"patience": 1, "factor": 0.5, "cooldown": 2},
        {"patience": 1, "mode": "max"}, {"patience": 1, "threshold": 0.01, "threshold_mode": "abs"},
        {"patience": 0, "factor": 0.5, "min_lr": 0.1},
    ):
        yield scheduler({"type": "ReduceLROnPlateau", **options}, metrics=losses)
    warm_up = {"type": "LinearLR", "start_factor": 0.25, "total_iters": 3}
    for rest in (
        {"type": "CosineAnnealingLR", "T_max": 8}, {"type": "ExponentialLR", "gamma": 0.5},
        {"type": "StepLR", "step_size": 2},
    ):
        yield scheduler({"type": "SequentialLR", "schedulers": [warm_up, rest], "milestones": [4]})


def all_optimizers():
    yield from optimizers()
    yield from optimizer_grid()


FILES = {"optimizers": all_optimizers, "schedulers": schedulers}
