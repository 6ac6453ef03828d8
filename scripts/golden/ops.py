"""Operations of taper/ops.hpp: output and gradients of the inputs. Arguments have the names they have there."""

import itertools
import math

import torch
import torch.nn.functional as F

from .case import describe, encode, generator, number, values


def raw(tensor):
    """Values chosen by hand."""
    return torch.tensor(tensor, dtype=torch.float64)


def integers(data):
    return torch.tensor(data, dtype=torch.int64)


def over(function):
    """A reduction whose dims may be left out, which means all of them."""
    return lambda x, dims=None, keepdim=False, **rest: function(x, dim=dims, keepdim=keepdim, **rest)


def single(function):
    """A reduction of one dimension or, without `dim`, of all."""
    return lambda x, dim=None, **rest: function(x) if dim is None else function(x, dim, **rest)


def all_dims(x, dims):
    return list(range(x.dim())) if dims is None else dims


def matmul(a, b, transpose_a=False, transpose_b=False):
    return torch.matmul(a.mT if transpose_a else a, b.mT if transpose_b else b)


def pad(x, amounts, mode="zeros", value=0):
    if mode == "zeros":
        return F.pad(x, amounts, value=value)
    return F.pad(x, amounts, mode=mode)


OPS = {
    **{name: getattr(torch, name) for name in (
        "neg", "exp", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "abs", "sign", "sin", "cos", "tanh", "sigmoid",
        "maximum", "minimum", "clamp", "select", "narrow", "permute", "transpose", "flatten",
        "softmax", "log_softmax", "squeeze", "unsqueeze")},
    **{name: getattr(F, name) for name in ("relu", "leaky_relu", "gelu", "silu", "elu", "selu", "softplus")},
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda base, exponent: torch.pow(base, exponent),
    "where": lambda condition, a, b: torch.where(condition != 0, a, b),
    "sum": over(torch.sum),
    "mean": over(torch.mean),
    "var": over(torch.var),
    "std": over(torch.std),
    "amax": lambda x, dims=None, keepdim=False: torch.amax(x, all_dims(x, dims), keepdim),
    "amin": lambda x, dims=None, keepdim=False: torch.amin(x, all_dims(x, dims), keepdim),
    "logsumexp": lambda x, dims=None, keepdim=False: torch.logsumexp(x, all_dims(x, dims), keepdim),
    "norm": lambda x, p=2, dims=None, keepdim=False: torch.linalg.vector_norm(x, float(p), dims, keepdim),
    "max": single(torch.max),
    "min": single(torch.min),
    "prod": single(torch.prod),
    "argmax": single(torch.argmax),
    "argmin": single(torch.argmin),
    "matmul": matmul,
    "reshape": lambda x, shape: x.reshape(shape),
    "expand": lambda x, shape: x.expand(shape),
    "gather": lambda x, index, dim: torch.gather(x, dim, index),
    "index_select": lambda x, index, dim: torch.index_select(x, dim, index),
    "cat": lambda *parts, dim=0: torch.cat(parts, dim),
    "stack": lambda *parts, dim=0: torch.stack(parts, dim),
    "pad": pad,
}


def case(op, inputs, note="", call=None, gradients=True, **args):
    """`inputs` are shapes, to be filled with normal numbers, or tensors; `call` replaces the entry of OPS.

    `gradients` is False where PyTorch's gradient is NaN as an accident of its formula and not a rule to follow.
    """
    shapes = " and ".join(str(list(x.shape) if torch.is_tensor(x) else x) for x in inputs)
    name = describe({"type": op, **args}) + f" on {shapes}" + (f", {note}" if note else "")
    stream = generator(name)
    inputs = [x if torch.is_tensor(x) else values(stream, x) for x in inputs]
    inputs = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    output = (call or OPS[op])(*inputs, **args)
    result = {"name": name, "op": op, "args": {key: number(value) for key, value in args.items()}}
    result["inputs"] = [encode(x) for x in inputs]
    if isinstance(output, tuple):
        output, indices = output
        result["indices"] = encode(indices)
    result["output"] = encode(output)
    result["grad_output"], result["grad_inputs"] = None, [None] * len(inputs)
    if output.requires_grad and gradients:
        grad_output = values(stream, output.shape)
        output.backward(grad_output)
        result["grad_output"] = encode(grad_output)
        result["grad_inputs"] = [encode(x.grad) if x.requires_grad else None for x in inputs]
    return result


def positive(shape, name):
    return values(generator(name), shape).abs()


SATURATING = [-800.0, -90.0, -20.0, -3.0, -1.0, -(2.0**-30), 0.0, 2.0**-30, 1.0, 3.0, 20.0, 90.0, 800.0]
BROADCASTS = (
    ([3, 5], [3, 5]), ([2, 3, 5], [5]), ([3, 1], [2, 1, 5]), ([], [3, 5]), ([1], [7]), ([0, 3], [3]), ([2, 1], [1, 0]),
)


def elementwise():
    for op in (
        "neg", "exp", "abs", "sign", "sin", "cos", "tanh", "sigmoid", "relu", "gelu", "silu", "elu", "selu", "softplus",
        "reciprocal", "leaky_relu", "log", "log1p", "sqrt", "rsqrt",
    ):
        if op in ("log", "log1p", "sqrt", "rsqrt"):
            yield case(op, [positive([3, 5], op)], note="positive numbers")
        else:
            yield case(op, [[3, 5]])
        if op not in ("sin", "cos", "log", "log1p", "sqrt", "rsqrt", "reciprocal"):
            yield case(op, [raw(SATURATING)], note="far out and at 0")
    yield case("log1p", [raw([-0.5, -(2.0**-40), 2.0**-40, 2.0**-10, 1000.0])], note="near 0")
    for op in ("log", "sqrt", "rsqrt", "reciprocal"):
        yield case(op, [raw([0.0, 0.25, math.inf])], note="0 and infinity")
    yield case("log", [raw([-1.0])], note="a negative number")
    for op in ("exp", "abs", "relu", "tanh", "sigmoid"):
        yield case(op, [raw([math.nan, math.inf, -math.inf])], note="NaN and infinities")
        yield case(op, [[0, 3]])
    yield case("leaky_relu", [[3, 5]], negative_slope=0.25)
    yield case("gelu", [[3, 5]], approximate="tanh")
    yield case("gelu", [raw(SATURATING[1:-1])], approximate="tanh", note="far out and at 0")
    yield case("elu", [[3, 5]], alpha=0.5)
    yield case("softplus", [[3, 5]], beta=2.0)
    yield case("softplus", [raw([-5.0, 3.5, 4.0, 4.5, 30.0])], beta=0.5, threshold=2.0, note="around the threshold")
    for bounds in ({"min": -0.5, "max": 0.75}, {"min": 0.25}, {"max": -0.25}, {"min": 1.0, "max": -1.0}):
        yield case("clamp", [[3, 5]], **bounds)
    yield case("clamp", [raw([-0.5, 0.75, math.nan, 5.0])], min=-0.5, max=0.75, note="at the bounds and NaN")


def binary():
    for op in ("add", "sub", "mul", "div", "maximum", "minimum"):
        for a, b in BROADCASTS:
            yield case(op, [a, b])
    for op in ("add", "sub", "mul", "div"):
        yield case(op, [[3, 5]], b=2.5)
    for op in ("sub", "div"):
        yield case(op, [[3, 5]], note="the number on the left", call=lambda x, a, op=op: OPS[op](a, x), a=2.5)
    for op in ("maximum", "minimum"):
        a, b = raw([1.0, 2.0, math.nan, 3.0, math.nan]), raw([1.0, 3.0, 1.0, math.nan, math.nan])
        yield case(op, [a, b], note="equals and NaN")
    yield case("div", [raw([1.0, -1.0, 0.0]), raw([0.0, 0.0, 2.0])], note="a divisor of 0")
    for a, b in BROADCASTS[:5]:
        yield case("pow", [positive(a, "pow"), values(generator(str(b)), b)], note="positive bases")
    for exponent in (2, 3, 1, 0, -1, 0.5, 2.5):
        yield case("pow", [positive([3, 5], f"pow {exponent}")], exponent=exponent, note="positive bases")
    for exponent in (2, 3, -2):
        yield case("pow", [[3, 5]], exponent=exponent, note="bases of both signs")
    yield case("pow", [raw([0.0, 2.0, -3.0])], exponent=0, note="base 0")
    yield case("pow", [raw([0.0, 2.0, -3.0])], exponent=2, note="base 0")
    yield case("pow", [raw([0.0, 0.0, 2.0, 2.0]), raw([0.0, 2.0, 0.0, 3.0])], note="base 0 and exponent 0")
    yield case("where", [integers([[1, 0, 1], [0, 0, 7]]), [2, 3], [2, 3]])
    yield case("where", [integers([[1], [0]]), [3], [2, 1]])
    yield case("where", [integers([0, 1, 1]), [5, 1], []])


def reductions():
    plain = [2, 3, 5]
    for op in ("sum", "mean", "var", "std", "amax", "amin", "logsumexp", "norm"):
        yield case(op, [plain])
        for dims, keepdim in (
            ([0], False), ([1], True), ([-1], False), ([0, 2], False), ([2, 1], True), ([0, 1, 2], True),
        ):
            yield case(op, [plain], dims=dims, keepdim=keepdim)
        yield case(op, [[7]])
    for op in ("var", "std"):
        for correction in (0, 2, 0.5):
            yield case(op, [plain], dims=[1, 2], correction=correction)
        yield case(op, [plain], correction=0)
        yield case(op, [raw([1000.25, 1000.5, 1001.0, 999.75])], note="a spread much smaller than the mean")
    yield case("std", [raw([[2.0, 2.0, 2.0], [1.0, 2.0, 4.0]])], dims=[1], note="equal numbers")
    for p in (1, 3, 0.5, math.inf):
        yield case("norm", [plain], p=p, dims=[1], keepdim=False)
        yield case("norm", [[3, 5]], p=p)
    for p in (1, 2, math.inf):
        yield case("norm", [raw([[0.0, 0.0], [3.0, -4.0]])], p=p, dims=[1], note="a row of zeros")
    for op in ("amax", "amin", "max", "min", "argmax", "argmin"):
        args = {"dims": [1]} if op.startswith("am") else {"dim": 1}
        yield case(op, [raw([[1.0, 3.0, 3.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0, 2.0]])], **args, note="equals")
        nan_rows = raw([[1.0, math.nan, 3.0], [math.nan, math.nan, 2.0]])
        yield case(op, [nan_rows], note="NaN", gradients="dim" in args, **args)
        yield case(op, [raw([3.0, 1.0, 3.0, 1.0])], note="equals")
    for op in ("max", "min", "prod", "argmax", "argmin"):
        yield case(op, [plain])
        for dim, keepdim in ((0, False), (1, True), (-1, False), (2, True)):
            yield case(op, [plain], dim=dim, keepdim=keepdim)
    zeros = raw([[2.0, 0.0, 3.0], [0.0, 5.0, 0.0], [2.0, 3.0, 7.0]])
    yield case("prod", [zeros], note="one zero, two zeros and none", dim=1)
    yield case("prod", [raw([2.0, 0.0, 3.0])], note="one zero")
    yield case("logsumexp", [raw([[1000.0, 999.0], [-math.inf, 2.0]])], note="large and infinite numbers", dims=[1])
    infinite = raw([[-math.inf, -math.inf], [math.inf, 1.0]])
    yield case("logsumexp", [infinite], note="an infinite result", gradients=False, dims=[1])
    for op in ("sum", "mean"):
        yield case(op, [[0, 3]], dims=[1])
    yield case("sum", [[0, 3]])
    yield case("sum", [[0, 3]], dims=[0])
    yield case("prod", [[0, 3]], dim=0)
    yield case("sum", [[]])
    for op in ("softmax", "log_softmax"):
        for shape, dim in ((plain, 0), (plain, 1), (plain, -1), ([7], 0), ([3, 1], 1), ([0, 3], 1)):
            yield case(op, [shape], dim=dim)
        yield case(op, [raw([[1000.0, 999.0, -1000.0], [-1000.0, -999.0, -1000.0]])], dim=1, note="large numbers")
    yield case("softmax", [raw([[1.0, -math.inf, 2.0]])], dim=1, note="a masked score")


def products():
    for a, b in (
        ([5], [5]), ([3, 5], [5]), ([3], [3, 5]), ([2, 3], [3, 5]), ([7, 2, 3], [3, 5]), ([2, 3], [7, 3, 5]),
        ([5], [7, 5, 2]), ([7, 3, 5], [5]), ([7, 2, 3], [7, 3, 5]), ([2, 1, 3, 5], [7, 5, 2]), ([1, 2, 3], [5, 3, 7]),
        ([2, 0], [0, 3]), ([0, 2, 3], [3, 5]), ([0, 3], [3, 5]), ([1, 1], [1, 1]), ([13, 2], [2, 11]),
    ):
        yield case("matmul", [a, b])
    for a, b, transpose_a, transpose_b in (
        ([3, 2], [3, 5], True, False), ([2, 3], [5, 3], False, True), ([3, 2], [5, 3], True, True),
        ([7, 3, 2], [3, 5], True, False), ([7, 2, 3], [5, 3], False, True), ([7, 3, 2], [7, 5, 3], True, True),
    ):
        yield case("matmul", [a, b], transpose_a=transpose_a, transpose_b=transpose_b)


def shapes():
    yield case("reshape", [[2, 3, 5]], shape=[5, -1])
    yield case("flatten", [[2, 3, 5, 7]], start_dim=1, end_dim=2)
    yield case("squeeze", [[3, 1, 5]], dim=1)
    yield case("unsqueeze", [[3, 5]], dim=-1)
    yield case("expand", [[3, 1]], shape=[2, 3, 5])
    yield case("expand", [[3, 1]], shape=[2, -1, 5])
    for dims in ([2, 0, 1], [1, 2, 0], [0, 2, 1], [-1, 0, 1]):
        yield case("permute", [[2, 3, 5]], dims=dims)
    yield case("permute", [[2, 3, 5, 7]], dims=[3, 1, 0, 2])
    for dim0, dim1 in ((0, 1), (0, 2), (-1, -2)):
        yield case("transpose", [[2, 3, 5]], dim0=dim0, dim1=dim1)
    for dim, start, length in ((0, 1, 1), (1, 0, 2), (-1, 2, 3), (2, 5, 0)):
        yield case("narrow", [[2, 3, 5]], dim=dim, start=start, length=length)
    for dim, index in ((0, 1), (1, 0), (-1, -2)):
        yield case("select", [[2, 3, 5]], dim=dim, index=index)
    for dim, index in ((0, [1, 0, 1, 1]), (1, [2, 2]), (-1, [4, 0, 3]), (1, [])):
        yield case("index_select", [[2, 3, 5], integers(index)], note=f"index {index}", dim=dim)
    for shape, dim, index in (
        ([3, 5], 0, [[2, 0, 1, 2, 2], [2, 1, 1, 0, 2]]), ([3, 5], 1, [[4, 0], [1, 1], [3, 4]]),
        ([3, 5], -1, [[4, 0, 0, 0, 1, 2, 3]]), ([2, 3, 5], 1, [[[0, 2, 1], [2, 2, 0]]]),
    ):
        yield case("gather", [shape, integers(index)], note=f"index {index}", dim=dim)
    for parts, dim in (
        ([[2, 3], [5, 3]], 0), ([[2, 3], [2, 1], [2, 5]], 1), ([[2, 3, 5], [2, 3, 7]], -1), ([[0, 3], [2, 3]], 0),
    ):
        yield case("cat", parts, dim=dim)
    for parts, dim in (([[3], [3]], 0), ([[2, 3], [2, 3], [2, 3]], 1), ([[2, 3], [2, 3]], -1)):
        yield case("stack", parts, dim=dim)
    for shape, amounts, options in (
        ([2, 3, 5], [1, 2], {}), ([2, 3, 5], [1, 2, 3, 0], {"value": 1.5}), ([2, 3, 5], [-1, -2], {}),
        ([2, 3, 5], [-1, 2, 1, -2], {"value": -0.5}), ([7], [0, 3], {}), ([2, 3, 5], [0, 0, 0, 0, 1, 2], {}),
        ([2, 3, 5], [2, 4], {"mode": "reflect"}), ([2, 3, 5], [7, 2], {"mode": "replicate"}),
        ([2, 3, 5], [5, 2], {"mode": "circular"}), ([3, 5], [1, 3], {"mode": "reflect"}),
        ([3, 5], [1, 3], {"mode": "replicate"}), ([3, 5], [1, 3], {"mode": "circular"}),
        ([2, 2, 3, 5], [1, 4, 2, 1], {"mode": "reflect"}), ([2, 2, 3, 5], [1, 4, 2, 1], {"mode": "replicate"}),
        ([2, 2, 3, 5], [1, 4, 2, 1], {"mode": "circular"}),
    ):
        yield case("pad", [shape], amounts=amounts, **options)


SMOOTH = ("neg", "exp", "abs", "sign", "sin", "cos", "tanh", "sigmoid", "relu", "gelu", "silu", "elu", "selu", "softplus",
          "reciprocal", "leaky_relu")
SIDES = itertools.product(([], [3], [1], [2, 3], [2, 1], [2, 1, 3]), ([], [3], [2, 3], [2, 1], [1, 1, 1], [2, 1, 3]))


def shape_grid():
    """The same operations on every kind of shape: of no dimension, empty, and broadcast in every way."""
    for op in SMOOTH:
        for shape in ([], [1], [2, 0], [2, 1, 3, 2]):
            yield case(op, [shape])
    for op in ("log", "log1p", "sqrt", "rsqrt"):
        for shape in ([], [2, 0], [2, 1, 3]):
            yield case(op, [positive(shape, op)], note="positive numbers")
    for index, (a, b) in enumerate(SIDES):
        for op in (("add", "div", "maximum"), ("sub", "mul", "minimum"))[index % 2]:
            yield case(op, [a, b], note="sides")
    for op in ("sum", "mean", "amax", "amin", "logsumexp", "norm", "var", "std"):
        for dims in ([1], [0, 1], [1, 3], [0, 3], [-2, 0], [0, 2, 3]):
            yield case(op, [[2, 3, 1, 2] if op not in ("var", "std") else [2, 3, 2, 2]], dims=dims, keepdim=len(dims) == 2)
    for op in ("max", "min", "prod", "argmax", "argmin"):
        for dim in range(-4, 4):
            yield case(op, [[2, 3, 1, 2]], dim=dim, keepdim=dim % 2 == 0)
    for op in ("softmax", "log_softmax"):
        for dim in range(-4, 4):
            yield case(op, [[2, 3, 1, 2]], dim=dim)
    for left, right in itertools.product(([2], [3, 2], [1, 3, 2], [2, 1, 3, 2]), ([2], [2, 4], [3, 2, 4], [2, 3, 2, 1])):
        yield case("matmul", [left, right])
    for op in ("gather", "index_select"):
        for dim in range(-3, 3):
            size = [2, 3, 4][dim]
            chosen = [size - 1, 0, size - 1]
            index = chosen if op == "index_select" else torch.tensor(chosen).view([-1 if d == dim % 3 else 1 for d in range(3)])
            yield case(op, [[2, 3, 4], torch.as_tensor(index)], dim=dim)
    for dims in itertools.permutations(range(3)):
        yield case("permute", [[2, 3, 4]], dims=list(dims))
    for dim0, dim1 in itertools.product(range(-3, 3), range(3)):
        yield case("transpose", [[2, 3, 4]], dim0=dim0, dim1=dim1)
    for dim in range(-3, 3):
        for start, length in ((0, 1), (1, 1), (0, 2), (2, 0)):
            yield case("narrow", [[2, 3, 4]], dim=dim, start=start, length=length)
        yield case("select", [[2, 3, 4]], dim=dim, index=-1)
        yield case("unsqueeze", [[2, 3]], dim=dim)
        yield case("cat", [[2 if d != dim % 3 else 1 + part for d in range(3)] for part in range(3)], dim=dim)
        yield case("stack", [[2, 3], [2, 3]], note="two", dim=dim)
    for mode in ("zeros", "reflect", "replicate", "circular"):
        for amounts in ([0, 1], [1, 0], [2, 1], [1, 2, 0, 1], [0, 0, 1, 1], [2, 2, 1, 0]):
            yield case("pad", [[1, 2, 2, 3] if len(amounts) > 2 else [2, 1, 3]], amounts=amounts, mode=mode)


def operations():
    for group in (elementwise, binary, reductions, products, shapes, shape_grid):
        yield from group()


FILES = {"ops": operations}
