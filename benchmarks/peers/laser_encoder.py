"""LASER's encoder in PyTorch, as the peer of `benchmarks.models.laser`.

    PEER/bin/python -m benchmarks.peers.laser_encoder make DICTIONARY.json OUT.pt
    PEER/bin/python -m benchmarks.peers.laser_encoder time WEIGHTS.pt IDS.npz OUT.npy

`make` saves random weights of the published sizes in the published layout. `time` embeds texts as
LASER's code does: sorted by length, in batches of at most 12,000 tokens, padding included, packed;
it prints the seconds. IDS has `flat` and `lengths`, with the end token of each text.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import torch

_TOKENS_PER_BATCH = 12_000
_SIZES = {"embed_dim": 320, "hidden_size": 512, "num_layers": 5, "bidirectional": True}


class Encoder(torch.nn.Module):
    def __init__(self, num_embeddings, padding_idx, embed_dim, hidden_size, num_layers, **_):
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(num_embeddings, embed_dim, padding_idx)
        self.lstm = torch.nn.LSTM(embed_dim, hidden_size, num_layers, bidirectional=True)

    def forward(self, ids, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.embed_tokens(ids).transpose(0, 1), lengths
        )
        outputs, _ = self.lstm(packed)
        outputs, _ = torch.nn.utils.rnn.pad_packed_sequence(outputs, padding_value=float("-inf"))
        return outputs.max(dim=0)[0]


def make(dictionary_file: str, out: str) -> None:
    with open(dictionary_file, encoding="utf-8") as file:
        dictionary = json.load(file)
    params = {"num_embeddings": max(dictionary.values()) + 1, "padding_idx": 1, **_SIZES}
    torch.manual_seed(1)
    model = Encoder(**params).state_dict()
    torch.save({"params": params, "model": model, "dictionary": dictionary}, out)


@torch.no_grad()
def embed(encoder: Encoder, texts: list[np.ndarray]) -> np.ndarray:
    order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
    vectors = np.empty((len(texts), 2 * _SIZES["hidden_size"]), np.float32)
    start = 0
    while start < len(order):
        longest = len(texts[order[start]])
        rows = order[start : start + max(1, _TOKENS_PER_BATCH // longest)]
        ids = torch.ones(len(rows), longest, dtype=torch.long)
        for place, row in enumerate(rows):
            ids[place, : len(texts[row])] = torch.from_numpy(texts[row])
        vectors[rows] = encoder(ids, [len(texts[row]) for row in rows]).numpy()
        start += len(rows)
    return vectors


def time_embed(weights: str, ids_file: str, out: str) -> None:
    content = torch.load(weights, weights_only=True)
    encoder = Encoder(**content["params"])
    encoder.load_state_dict(content["model"])
    encoder.eval()
    ids = np.load(ids_file)
    texts = np.split(ids["flat"].astype(np.int64), np.cumsum(ids["lengths"])[:-1])
    embed(encoder, texts[:64])
    start = time.perf_counter()
    vectors = embed(encoder, texts)
    print(time.perf_counter() - start)
    np.save(out, vectors)


if __name__ == "__main__":
    {"make": make, "time": time_embed}[sys.argv[1]](*sys.argv[2:])
