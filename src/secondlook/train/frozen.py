"""CCNU's ranker, trained by a hinge loss over features that are computed once and kept on disk."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import torch

from secondlook.errors import SecondlookError
from secondlook.model.frozen import Frozen
from secondlook.model.network import new_frozen
from secondlook.score.batching import batches
from secondlook.train import processes, ranking

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor

    from secondlook.model.network import Model
    from secondlook.train.frozen_settings import FrozenPhase
    from secondlook.train.phase import Outcome, Place, TrainData

_KEY = 16  # bytes
_TOKENS_AT_ONCE = 8192


def run(settings: FrozenPhase, start: Model, data: TrainData, place: Place) -> Outcome:
    """As the other phases that learn from groups; the ranker takes the frozen form first."""
    if processes.count() > 1:
        raise SecondlookError(
            "the phase 'frozen' is trained by one process, since all would write one file of "
            "features; start it without torchrun"
        )
    torch.manual_seed(place.seed)
    model = start if isinstance(start.network, Frozen) else new_frozen(start, settings.form)
    assert isinstance(model.network, Frozen)
    place.run.mkdir(parents=True, exist_ok=True)
    model.network.recall = Kept(model.network, place.run / "features.f16")
    try:
        return ranking.run(settings, model, data, place)
    finally:
        model.network.recall = None


class Kept:
    """The features of texts, in half precision, mapped from a file that grows.

    A record is the digest of the text's tokens, their number, and the features: [tokens,
    layers + 1, hidden]. What a killed run kept is found again, a half record at the end is not.
    """

    def __init__(self, network: Frozen, path: Path) -> None:
        self._network, self._path = network, path
        self._shape = len(network.mix), int(network.encoder.config.hidden_size)
        self._places: dict[bytes, tuple[int, int]] = {}  # where features begin, and tokens
        self._size = 0
        path.touch()
        self._mapped = self._map()
        self._find()

    def __call__(self, ids: Tensor, mask: Tensor, words: Tensor | None) -> Tensor:
        """As `Frozen.features`, rounded to half precision: [batch, tokens, layers + 1, hidden]."""
        lengths = mask.sum(1).tolist()
        keys = [
            _digest(ids[row, :length], None if words is None else words[row, :length])
            for row, length in enumerate(lengths)
        ]
        fresh = {key: row for row, key in enumerate(keys) if key not in self._places}
        if fresh:
            self._keep(fresh, ids, mask, words, lengths)
        shape = (*ids.shape, *self._shape)
        found = np.zeros(shape, np.float16)
        for row, key in enumerate(keys):
            found[row, : lengths[row]] = self._read(key)
        return torch.from_numpy(found).to(ids.device)

    def _keep(
        self,
        fresh: dict[bytes, int],
        ids: Tensor,
        mask: Tensor,
        words: Tensor | None,
        lengths: list[int],
    ) -> None:
        keys, rows = list(fresh), list(fresh.values())
        with self._path.open("ab") as file:
            for some in batches([lengths[row] for row in rows], _TOKENS_AT_ONCE):
                chosen = [rows[at] for at in some]
                longest = max(lengths[row] for row in chosen)
                own = None if words is None else words[chosen, :longest]
                with torch.autocast(ids.device.type, enabled=False):
                    made = self._network.features(
                        ids[chosen, :longest], mask[chosen, :longest], own
                    )
                arrays = made.to(torch.float16).cpu().numpy()
                for at, features in zip(some, arrays, strict=True):
                    length = lengths[rows[at]]
                    file.write(keys[at] + np.int64(length).tobytes())
                    file.write(features[:length].tobytes())
                    self._note(keys[at], length)
        self._mapped = self._map()

    def _note(self, key: bytes, length: int) -> None:
        start = self._size + _KEY + 8
        self._places[key] = start, length
        self._size = start + 2 * length * self._shape[0] * self._shape[1]

    def _read(self, key: bytes) -> NDArray[np.float16]:
        start, length = self._places[key]
        shape = length, *self._shape
        return np.ndarray(shape, np.float16, self._mapped, start)

    def _map(self) -> NDArray[np.uint8]:
        if not self._path.stat().st_size:  # nothing cannot be mapped
            return np.empty(0, np.uint8)
        return np.memmap(self._path, np.uint8, "r")

    def _find(self) -> None:
        """Every whole record; the rest is cut off."""
        while self._size + _KEY + 8 <= len(self._mapped):
            head = self._mapped[self._size : self._size + _KEY + 8].tobytes()
            length, before = int(np.frombuffer(head[_KEY:], np.int64)[0]), self._size
            self._note(head[:_KEY], length)
            if self._size > len(self._mapped):
                del self._places[head[:_KEY]]
                self._size = before
                break
        with self._path.open("r+b") as file:
            file.truncate(self._size)
        self._mapped = self._map()


def _digest(ids: Tensor, words: Tensor | None) -> bytes:
    """Equal for texts that have equal features."""
    parts = [ids.cpu().numpy().tobytes()]
    if words is not None:
        parts.append((words - words[0]).cpu().numpy().tobytes())
    return blake2b(b"\0".join(parts), digest_size=_KEY).digest()
