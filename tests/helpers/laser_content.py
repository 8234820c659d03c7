"""The content of LASER's files of weights, with random weights of tiny sizes."""

from __future__ import annotations

import numpy as np
from numpy_lstm import lstm

EMBED, HIDDEN, LAYERS = 6, 5, 2


def laser_content(dictionary, **params):
    """`dictionary`: token -> id, without the special tokens; `params` come on top of our own."""
    params = {
        "num_embeddings": len(dictionary) + 4,
        "padding_idx": 1,
        "embed_dim": EMBED,
        "hidden_size": HIDDEN,
        "num_layers": LAYERS,
        "bidirectional": True,
        "left_pad": False,
        **params,
    }
    return {"params": params, "model": _weights(params), "dictionary": dictionary}


def _weights(params):
    chance = np.random.default_rng(3)
    shapes = {"embed_tokens.weight": (params["num_embeddings"], EMBED)}
    for layer, width in enumerate([EMBED] + [2 * HIDDEN] * (params["num_layers"] - 1)):
        for suffix in ("", "_reverse"):
            shapes[f"lstm.weight_ih_l{layer}{suffix}"] = (4 * HIDDEN, width)
            shapes[f"lstm.weight_hh_l{layer}{suffix}"] = (4 * HIDDEN, HIDDEN)
            for kind in ("ih", "hh"):
                shapes[f"lstm.bias_{kind}_l{layer}{suffix}"] = (4 * HIDDEN,)
    return {name: chance.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}


def reference(content, ids):
    """As PyTorch's LSTM: two biases, weights transposed; the maximum over all tokens."""
    model = content["model"]
    hidden = model["embed_tokens.weight"][ids].astype(np.float64)
    for layer in range(content["params"]["num_layers"]):
        sides = []
        for suffix, way in (("", 1), ("_reverse", -1)):
            w = {k: model[f"lstm.{k}_l{layer}{suffix}"] for k in ("weight_ih", "weight_hh")}
            b = sum(model[f"lstm.bias_{k}_l{layer}{suffix}"] for k in ("ih", "hh"))
            sides.append(lstm(hidden[::way] @ w["weight_ih"].T + b, w["weight_hh"].T)[::way])
        hidden = np.concatenate(sides, axis=1)
    return hidden.max(axis=0)
