"""MultiheadAttention with its averaged weights: every option, mask and layout."""

import itertools

import torch
from torch import nn

from .case import describe, generator, values
from .module_case import run

INFINITY = float("inf")


def causal(queries, keys):
    return torch.ones(queries, keys, dtype=torch.bool).triu(1)


def attend(config):
    def call(module, x):
        tensors = list(x.values()) if isinstance(x, dict) else [x]
        query, key, value = tensors[:3] if len(tensors) > 1 else tensors * 3
        padding, mask = (tensors[3:] + [None, None])[:2]
        padding, mask = (m.bool() if m is not None and not m.is_floating_point() else m for m in (padding, mask))
        if config.get("is_causal"):
            first = query.dim() == 3 and config.get("batch_first")
            own = causal(query.shape[1 if first else 0], key.shape[1 if first else 0])
            if mask is None:
                mask = own
            elif mask.is_floating_point():
                mask = mask + torch.zeros(own.shape, dtype=mask.dtype).masked_fill(own, -INFINITY)
            else:
                mask = mask | own
        output, weights = module(query, key, value, key_padding_mask=padding, attn_mask=mask)
        return {"output": output, "attn_weights": weights}

    return call


def case(embed, heads, shape, mode="train", note="", **options):
    """`shape` is that of the query alone, or {name: shape or tensor or None} in the order of `forward_all`."""
    config = {"type": "MultiheadAttention", "embed_dim": embed, "num_heads": heads, **options}
    several = isinstance(shape, dict)
    shown = (
        ", ".join(f"{key} {list(s.shape) if torch.is_tensor(s) else s}" for key, s in shape.items())
        if several else shape
    )
    name = f"{describe(config)} on {shown}{note}" + ("" if mode == "train" else " in eval mode")
    stream = generator(name)
    make = lambda s: s.clone() if torch.is_tensor(s) else s if s is None else values(stream, s)
    x = {key: make(s) for key, s in shape.items()} if several else make(shape)
    module = nn.MultiheadAttention(**{k: v for k, v in config.items() if k not in ("type", "is_causal")})
    return run({"name": name, "layer": config}, module, x, stream, mode, attend(config))


def three(query, key, value=None, **masks):
    return {"query": query, "key": key, "value": value or key, **masks}


def padding(name, *shape):
    """1 where a key is not seen; the first key always is."""
    mask = (torch.rand(shape, generator=generator(name)) < 0.4).long()
    mask[..., 0] = 0
    return mask


def penalty(name, *shape):
    """What is added to the scores, some of it -inf; the first key is always seen."""
    mask = values(generator(name), shape)
    mask[padding(name, *shape).bool()] = -INFINITY
    return mask


def attention():
    # itself, in every layout
    for batch_first, bias, is_causal in itertools.product((False, True), repeat=3):
        yield case(6, 3, [2, 5, 6], batch_first=batch_first, bias=bias, is_causal=is_causal)
        yield case(4, 2, [5, 4], batch_first=batch_first, bias=bias, is_causal=is_causal)
    for embed, heads in ((6, 1), (6, 2), (6, 6), (5, 1), (5, 5), (1, 1), (9, 3)):
        yield case(embed, heads, [3, 2, embed])
        yield case(embed, heads, [7, embed], is_causal=True)
    # appended keys
    for kv, zero, batch_first in itertools.product((False, True), repeat=3):
        if kv or zero:
            yield case(4, 2, [3, 5, 4], add_bias_kv=kv, add_zero_attn=zero, batch_first=batch_first)
            yield case(4, 2, [3, 4], add_bias_kv=kv, add_zero_attn=zero, batch_first=batch_first, is_causal=True)
            yield case(
                4, 2, three([3, 2, 4], [5, 2, 4] if not batch_first else [3, 5, 4], key_padding_mask=padding(
                    f"{kv}{zero}{batch_first}", *((3, 5) if batch_first else (2, 5)))),
                add_bias_kv=kv, add_zero_attn=zero, batch_first=batch_first,
            )
    # another sequence, and keys and values of other widths
    for batch_first in (False, True):
        query, key = ([2, 3, 6], [2, 5, 6]) if batch_first else ([3, 2, 6], [5, 2, 6])
        yield case(6, 3, three(query, key), batch_first=batch_first)
        yield case(6, 2, three(query, key), batch_first=batch_first, is_causal=True)
        yield case(6, 3, three(query, key), batch_first=batch_first, bias=False)
        for kdim, vdim in ((5, None), (None, 7), (5, 7), (1, 2), (7, 7)):
            query = query[:-1] + [4]
            keys, features = key[:-1] + [kdim or 4], key[:-1] + [vdim or 4]
            extra = {name: size for name, size in (("kdim", kdim), ("vdim", vdim)) if size}
            yield case(4, 2, three(query, keys, features), batch_first=batch_first, **extra)
            if (kdim, vdim) == (5, 7):
                yield case(4, 1, three(query, keys, features), batch_first=batch_first, bias=False, **extra)
                yield case(
                    4, 1, three(query, keys, features), batch_first=batch_first, add_bias_kv=True, add_zero_attn=True,
                    **extra,
                )
    yield case(4, 2, three([3, 4], [5, 4]))
    yield case(4, 2, three([3, 4], [5, 7], [5, 2]), kdim=7, vdim=2)
    yield case(4, 2, three([7, 1, 4], [2, 1, 4]), is_causal=True)
    # masks
    for batch_first, is_causal in itertools.product((False, True), repeat=2):
        query, key = ([2, 3, 4], [2, 5, 4]) if batch_first else ([3, 2, 4], [5, 2, 4])
        options = {"batch_first": batch_first, "is_causal": is_causal}
        tag = f"{batch_first}{is_causal}"
        for kind in (padding, penalty):
            note = " of 0 and 1" if kind is padding else " of numbers"
            keys, flat, deep = (kind(tag + n, *s) for n, s in (("k", (2, 5)), ("f", (3, 5)), ("d", (4, 3, 5))))
            yield case(4, 2, three(query, key, key_padding_mask=keys), note=note, **options)
            yield case(4, 2, three(query, key, key_padding_mask=None, attn_mask=flat), note=note, **options)
            yield case(4, 2, three(query, key, key_padding_mask=None, attn_mask=deep), note=note, **options)
            yield case(4, 2, three(query, key, key_padding_mask=keys, attn_mask=flat), note=note, **options)
            yield case(4, 2, three(query, key, key_padding_mask=keys, attn_mask=deep), note=note, **options)
    for kind in (padding, penalty):
        note = " of 0 and 1" if kind is padding else " of numbers"
        yield case(4, 2, three([3, 4], [5, 4], key_padding_mask=kind("u", 5)), note=note)
        yield case(4, 2, three([3, 4], [5, 4], key_padding_mask=None, attn_mask=kind("v", 3, 5)), note=note)
        yield case(4, 2, three([3, 4], [5, 4], key_padding_mask=kind("w", 5), attn_mask=kind("x", 2, 3, 5)), note=note)
    unseen = torch.tensor([[0, 1, 0, 0, 1], [1, 1, 1, 1, 1]])
    yield case(4, 2, three([3, 2, 4], [5, 2, 4], key_padding_mask=unseen), note=" with a sample that sees no key")
    # edges
    yield case(6, 3, [5, 0, 6])
    yield case(6, 3, [0, 5, 6], batch_first=True, is_causal=True)
    yield case(4, 2, three([0, 3, 4], [5, 3, 4]))
    yield case(4, 2, three([3, 2, 4], [0, 2, 4]))
    yield case(4, 2, [1, 3, 4])
    yield case(4, 2, [5, 2, 4], dropout=0.5, mode="eval")
    yield case(4, 2, [5, 2, 4], dropout=1)
    yield case(4, 2, [5, 2, 4], dropout=0, add_bias_kv=True)


FILES = {"layers_attention": attention}
