"""PyTorch: runs any checkpoint, on CPU, CUDA and MPS; the reference the other back ends agree with.

A warm ranker with separate layers runs them once per document and keeps what they made of it.
"""

from __future__ import annotations

import threading
from platform import machine
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from secondlook.encode.features import Features, collate
from secondlook.errors import BackendProblem
from secondlook.model.first_token import first_token_only
from secondlook.model.states import DocumentStates
from secondlook.model.warm import Warm
from secondlook.score.batching import batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from secondlook.model.network import CrossEncoder

Precision = Literal["fp32", "bf16"]


class TorchBackend:
    """Scores encoded pairs with a network in this process.

    `device` None takes CUDA, then MPS, then the CPU. `token_budget` bounds a batch with its
    padding; `state_bytes` bounds the document states of a warm ranker with separate layers.
    """

    engine: Literal["torch"] = "torch"

    def __init__(
        self,
        network: CrossEncoder,
        *,
        device: str | None = None,
        precision: Precision = "fp32",
        token_budget: int = 16_384,
        state_bytes: int = 512 * 2**20,
    ) -> None:
        self.device = device_of(device)
        if precision == "bf16" and not has_bf16(self.device):
            raise BackendProblem(f"{self.device} has no bf16; take precision fp32")
        self.network = network.eval().to(self.device)
        self.precision = precision
        self.token_budget = token_budget
        self.states = DocumentStates(state_bytes)
        self.network_lock = threading.Lock()
        """Held while the network runs: one call has all cores, or the device's memory, already, and
        whoever looks at attention switches how the whole network computes it."""

    def logits(self, features: Sequence[Features]) -> NDArray[np.float32]:
        """One logit per encoded pair, in the order given, whatever pairs stand beside it."""
        logits = np.empty(len(features), np.float32)
        order = batches([len(one) for one in features], self.token_budget)
        with (
            self.network_lock,
            first_token_only(self.network),
            torch.inference_mode(),
            torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16"),
        ):
            made = [self._score([features[index] for index in batch]) for batch in order]
        for batch, scores in zip(order, made, strict=True):  # the device is waited for only here
            logits[batch] = scores.float().cpu().numpy()
        return logits

    def _score(self, pairs: list[Features]) -> Tensor:
        if isinstance(self.network, Warm) and self.network.separate_layers:
            return self._finish(self.network, pairs)
        batch = self._collate(pairs)
        scores: Tensor = self.network(**{name: batch[name] for name in self.network.inputs})
        return scores

    def _finish(self, network: Warm, pairs: list[Features]) -> Tensor:
        """Score from the states of the two parts, each computed once."""
        queries = self._begin(network, [_part(one, 0, one.first) for one in pairs], None)
        documents = self._begin(
            network, [_part(one, one.first, len(one)) for one in pairs], self.states
        )
        if network.never_meet:
            return network.compare(torch.stack(queries), torch.stack(documents))
        batch = self._collate(pairs)
        shape = *batch["input_ids"].shape, documents[0].shape[-1]
        states = torch.zeros(shape, dtype=documents[0].dtype, device=self.device)
        for row, (query, document) in enumerate(zip(queries, documents, strict=True)):
            states[row, : len(query)] = query
            states[row, len(query) : len(query) + len(document)] = document
        words = batch["words"] if network.strm else None
        return network.finish(states, batch["attention_mask"], batch["first"], words)

    def _begin(
        self, network: Warm, parts: list[Features], kept: DocumentStates | None
    ) -> list[Tensor]:
        """The states of each part above the separate layers. [tokens, hidden] each.

        Where no layer is left, the two vectors that are read of it: [2, hidden].
        """
        keys = [_key(part, words=network.strm) for part in parts]
        distinct = dict(zip(keys, parts, strict=True))
        states = {key: kept.get(key) if kept is not None else None for key in distinct}
        missing = [key for key, found in states.items() if found is None]
        for chosen in batches([len(distinct[key]) for key in missing], self.token_budget):
            new = [missing[index] for index in chosen]
            batch = self._collate([distinct[key] for key in new])
            words = batch["words"] if network.strm else None
            made = network.begin(batch["input_ids"], batch["attention_mask"], words)
            read = (
                network.vectors(made, batch["attention_mask"])
                if network.never_meet
                else [row[: len(distinct[key])] for key, row in zip(new, made, strict=True)]
            )
            for key, row in zip(new, read, strict=True):
                own = row.clone()  # not a view that keeps the batch and its padding alive
                states[key] = own
                if kept is not None:
                    kept.put(key, own)
        return [found for key in keys if (found := states[key]) is not None]

    def _collate(self, pairs: list[Features]) -> dict[str, Tensor]:
        arrays = collate(pairs, self.network.pad_id, self.network.positions)
        return {name: torch.from_numpy(rows).to(self.device) for name, rows in arrays.items()}


def _part(pair: Features, start: int, end: int) -> Features:
    """One side of a pair, as if it stood alone."""
    words = pair.words[start:end] - pair.words[start]
    return Features(pair.ids[start:end], pair.segments[start:end], words, first=0, cut=0)


def _key(part: Features, *, words: bool) -> bytes:
    """Equal for parts that have equal states."""
    return part.ids.tobytes() + (part.words.tobytes() if words else b"")


def device_of(name: str | None) -> torch.device:
    """The device of this name; without a name CUDA, then MPS, then the CPU."""
    if not name and torch.cuda.is_available():
        name = "cuda"
    return torch.device(name or ("mps" if torch.backends.mps.is_available() else "cpu"))


def has_bf16(device: torch.device) -> bool:
    """Whether bf16 can be computed in at all."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return device.type == "mps"


def fast_bf16(device: torch.device) -> bool:
    """Whether bf16 is faster than fp32: CPUs without instructions for it are several times slower.

    oneDNN computes in bf16 on every CPU with AVX-512, by way of float32.
    """
    if device.type == "cpu" and machine() in ("x86_64", "AMD64"):
        able = torch.cpu.get_capabilities()
        return bool(able.get("avx512_bf16") or able.get("amx_bf16"))
    return has_bf16(device)
