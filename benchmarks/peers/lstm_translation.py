"""LASER's encoder and decoder in PyTorch, as the peer of `benchmarks.training.translation_speed`.

    PEER/bin/python -m benchmarks.peers.lstm_translation BATCHES.npz SIZES.json

BATCHES has the arrays `N/input_word_ids`, `N/targets` and `N/target_language` of each batch N, ids
padded by 0. Trains on them in their order: the encoder on packed input, the decoder, which reads
token, sentence vector and language at each step, as one `torch.nn.LSTM`, the whole softmax, Adam.
Prints JSON: seconds of the batches, the loss of the first and of the last, and target tokens.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import torch
from torch import nn


class Translator(nn.Module):
    def __init__(self, sizes: dict) -> None:
        super().__init__()
        width, dim, units = sizes["embedding_size"], sizes["hidden_size"], sizes["decoder_size"]
        self.source = nn.Embedding(sizes["vocab_size"], width, padding_idx=0)
        self.encoder = nn.LSTM(
            width, dim // 2, sizes["num_layers"], batch_first=True, bidirectional=True
        )
        self.target = nn.Embedding(sizes["vocab_size"], width)
        self.language = nn.Embedding(sizes["languages"], sizes["language_size"])
        self.start = nn.Linear(dim, 2 * units)
        self.decoder = nn.LSTM(width + dim + sizes["language_size"], units, batch_first=True)
        self.below = nn.Linear(units, sizes["output_size"])
        self.output = nn.Linear(sizes["output_size"], sizes["vocab_size"])
        self._end = sizes["end_token"]
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -sizes["initializer_range"], sizes["initializer_range"])

    def forward(self, ids, targets, languages):
        lengths = (ids != 0).sum(dim=1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.source(ids), lengths, batch_first=True, enforce_sorted=False
        )
        outputs, _ = self.encoder(packed)
        outputs, _ = nn.utils.rnn.pad_packed_sequence(
            outputs, batch_first=True, padding_value=float("-inf")
        )
        vectors = outputs.max(dim=1)[0]
        previous = torch.cat([torch.full_like(targets[:, :1], self._end), targets[:, :-1]], dim=1)
        context = torch.cat([vectors, self.language(languages)], dim=1)
        context = context[:, None].expand(-1, targets.shape[1], -1)
        hidden, cell = self.start(vectors)[None].chunk(2, dim=2)
        states, _ = self.decoder(
            torch.cat([self.target(previous), context], dim=2),
            (hidden.contiguous(), cell.contiguous()),
        )
        logits = self.output(self.below(states[targets != 0]))
        return nn.functional.cross_entropy(logits, targets[targets != 0])


def main() -> None:
    arrays = np.load(sys.argv[1], allow_pickle=False)
    with open(sys.argv[2], encoding="utf-8") as file:
        sizes = json.load(file)
    count = len({name.partition("/")[0] for name in arrays})
    batches = [
        [
            torch.from_numpy(arrays[f"{number}/{name}"].astype(np.int64))
            for name in ("input_word_ids", "targets", "target_language")
        ]
        for number in range(count)
    ]
    torch.manual_seed(1)
    model = Translator(sizes)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []

    def step(batch):
        optimizer.zero_grad()
        loss = model(*batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(float(loss))

    step(batches[0])  # First touches its memory.
    start = time.perf_counter()
    for batch in batches:
        step(batch)
    seconds = time.perf_counter() - start
    tokens = sum(int((batch[1] != 0).sum()) for batch in batches)
    print(
        json.dumps(
            {"seconds": seconds, "first": losses[0], "last": losses[-1], "target_tokens": tokens}
        )
    )


if __name__ == "__main__":
    main()
