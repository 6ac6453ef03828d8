"""RNN, LSTM, GRU and their cells, with all their results: the output and the last states."""

import itertools

import torch

from .module_case import layer

KINDS = (
    {"type": "RNN"},
    {"type": "RNN", "nonlinearity": "relu"},
    {"type": "LSTM"},
    {"type": "GRU"},
)
STEPS, BATCH, FEATURES, HIDDEN = 5, 3, 7, 2


def with_states(module, x):
    """The input and the states that are there, and all results under names."""
    inputs, *states = x.values()
    given = [s for s in states if s is not None]
    if not given:
        result = module(inputs)
    else:
        result = module(inputs, tuple(given) if len(states) == 2 else given[0])
    if torch.is_tensor(result):
        return result
    first, last = result
    if "Cell" in type(module).__name__:
        return {"h": first, "c": last}
    return {"output": first, **(dict(zip(("h_n", "c_n"), last)) if isinstance(last, tuple) else {"h_n": last})}


def case(kind, shape, states=True, mode="train", hidden=HIDDEN, **options):
    """`shape` is the input's; the states' follows from it."""
    config = {**kind, "input_size": shape[-1], "hidden_size": hidden, **options}
    sizes = (options.get("proj_size") or hidden, hidden)
    cell = kind["type"].endswith("Cell")
    if cell:
        state = list(shape[:-1])
    else:
        count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        batch = [shape[0 if options.get("batch_first") else 1]] if len(shape) == 3 else []
        state = [count, *batch]
    names = ("h", "c") if cell else ("h_0", "c_0")
    names = names[: 2 if kind["type"].startswith("LSTM") else 1]
    given = {name: [*state, size] if states else None for name, size in zip(names, sizes)}
    return layer(config, {"input": shape, **given}, mode, call=with_states)


def sequences(kinds):
    first, time = [BATCH, STEPS, FEATURES], [STEPS, BATCH, FEATURES]
    for kind in kinds:
        for both, batch_first, bias, states in itertools.product((False, True), repeat=4):
            shape = first if batch_first else time
            yield case(
                kind, shape if bias else shape[:-1] + [1], states, bidirectional=both, batch_first=batch_first,
                bias=bias,
            )
        for both, batch_first in itertools.product((False, True), repeat=2):
            for bias, states in ((True, True), (batch_first, not batch_first)):
                yield case(
                    kind, first[:-1] + [1] if batch_first else time[:-1] + [1], states, num_layers=2,
                    bidirectional=both, batch_first=batch_first, bias=bias,
                )
        yield case(kind, [3, 2, 1], num_layers=3)
        yield case(kind, [2, 3, 1], num_layers=3, bidirectional=True, batch_first=True)
        yield case(kind, [3, 2, 5], states=False, num_layers=3, bias=False)
        yield case(kind, [3, 2, 1], states=False, num_layers=3, bidirectional=True, bias=False)
        for both, states, batch_first in itertools.product((False, True), repeat=3):
            yield case(kind, [5, 3], states, bidirectional=both, batch_first=batch_first)
        yield case(kind, [5, 3], num_layers=2, bidirectional=True)
        yield case(kind, [5, 3], states=False, num_layers=2, bias=False)
        yield case(kind, [5, 0, 3])
        yield case(kind, [0, 5, 3], states=False, batch_first=True, bidirectional=True)
        yield case(kind, [5, 0, 3], states=False, num_layers=2)
        yield case(kind, [1, 3, 5])
        yield case(kind, [3, 1, 5], batch_first=True, bidirectional=True)
        yield case(kind, [1, 5], states=False)
        yield case(kind, [3, 5, 2], hidden=1)
        yield case(kind, [2, 3, 1], hidden=7)
        yield case(kind, [11, 1, 3], hidden=5, states=False)
        yield case(kind, [2, 19, 1], hidden=3)
        yield case(kind, [19, 2, 1], hidden=3, batch_first=True, bidirectional=True)
        yield case(kind, [3, 2, 5], num_layers=2, dropout=0.5, mode="eval")
        yield case(kind, [3, 2, 5], states=False, num_layers=2, dropout=0.25, bidirectional=True, mode="eval")
        yield case(kind, [3, 2, 5], num_layers=2, dropout=1)
        yield case(kind, [3, 2, 5], num_layers=2, dropout=0)


def projections():
    def project(shape, states=True, mode="train", **options):
        return case(KINDS[2], shape, states, mode, **{"hidden": 3, "proj_size": 2, **options})

    small = {"hidden": 2, "proj_size": 1}
    for both, batch_first in itertools.product((False, True), repeat=2):
        yield project([2, 3, 1], not both, bidirectional=both, batch_first=batch_first, bias=both == batch_first)
    yield project([2, 3, 1], num_layers=2)
    yield project([3, 2, 1], num_layers=2, bidirectional=True, batch_first=True, **small)
    yield project([2, 3, 1], states=False, num_layers=2, bidirectional=True, bias=False, **small)
    yield project([3, 5], bidirectional=True, **small)
    yield project([5, 3], states=False, num_layers=2, **small)
    yield project([5, 0, 3], **small)
    yield project([1, 3, 5], states=False)
    yield project([2, 3, 1], hidden=5, proj_size=4)
    yield project([3, 2, 5], **small)
    yield project([3, 2, 5], hidden=2, proj_size=0)
    yield project([3, 2, 1], num_layers=2, dropout=0.5, mode="eval", **small)
    yield project([3, 2, 1], num_layers=2, dropout=1, **small)


def cells():
    kinds = (
        {"type": "RNNCell"}, {"type": "RNNCell", "nonlinearity": "relu"}, {"type": "LSTMCell"}, {"type": "GRUCell"},
    )
    for kind in kinds:
        for shape, bias, states in itertools.product(([5, 3], [3], [0, 3]), (True, False), (True, False)):
            yield case(kind, shape, states, bias=bias)
        yield case(kind, [2, 1], hidden=5)
        yield case(kind, [17, 3], hidden=2)


FILES = {
    "layers_rnn": lambda: sequences(KINDS[:2]),
    "layers_lstm": lambda: sequences(KINDS[2:3]),
    "layers_lstm_projected": projections,
    "layers_gru": lambda: sequences(KINDS[3:]),
    "layers_rnn_cell": cells,
}
