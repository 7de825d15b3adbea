"""Drawn groups become numbers, and numbers scores, a few pairs of like length at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from secondlook.encode.features import Features, collate
from secondlook.encode.windows import pooling_weights
from secondlook.score.batching import batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from secondlook.encode.encoder import Encoder
    from secondlook.encode.settings import WindowSettings
    from secondlook.train.draw import Draw, Drawn, Usable
    from secondlook.train.groups import Groups


@dataclass(frozen=True, slots=True, eq=False)
class EncodedGroup:
    """One query's documents as a network reads them."""

    features: tuple[Features, ...]
    windows: tuple[int, ...]
    """How many of the features each document has; one where documents are not windowed."""
    labels: tuple[int, ...]
    """The documents' grades; above 0 is a positive."""
    teacher: tuple[float, ...] | None

    @property
    def tokens(self) -> int:
        """How many tokens, without padding."""
        return sum(len(one) for one in self.features)


class DrawnGroups(Dataset["Drawn"]):
    """The usable groups; an item is asked for by epoch and row, so that no state is kept."""

    def __init__(self, groups: Groups, found: Usable, draw: Draw) -> None:
        self._groups, self._found, self._draw = groups, found, draw

    def __len__(self) -> int:
        return len(self._found.rows)

    def __getitem__(self, place: tuple[int, int]) -> Drawn:
        epoch, row = place
        return self._draw.documents(self._groups[row], epoch)


class Order(Sampler[tuple[int, int]]):
    """Epoch and row of the groups, in the order of the draw."""

    def __init__(self, found: Usable, draw: Draw) -> None:
        self.epoch = 0
        self._found, self._draw = found, draw

    def __len__(self) -> int:
        return len(self._found.rows)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for at in self._draw.order(self._found.query_ids, self.epoch):
            yield self.epoch, self._found.rows[at]


class EncodeGroups:
    """Encodes the groups of a step all at once, with the same encoder that scoring uses."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def __call__(self, groups: Sequence[Drawn]) -> dict[str, list[EncodedGroup]]:
        """The step as the Trainer passes it on."""
        parts = self._encoder.windows([one for group in groups for one in group.documents])
        windows = self._encoder.settings.windows
        if windows is not None and windows.pooling == "first":
            parts = [some[:1] for some in parts]
        queries = [group.query for group in groups for _ in group.documents]
        pairs = [
            (query, one.document)
            for query, some in zip(queries, parts, strict=True)
            for one in some
        ]
        features = iter(self._encoder.encode(pairs))
        counts = iter([len(some) for some in parts])
        made = []
        for group in groups:
            sizes = tuple(next(counts) for _ in group.documents)
            own = tuple(next(features) for _ in range(sum(sizes)))
            made.append(EncodedGroup(own, sizes, group.labels, group.teacher))
        return {"groups": made}


def cut(groups: Sequence[EncodedGroup], tokens: int) -> list[list[EncodedGroup]]:
    """Whole groups side by side, up to so many tokens; one that has more stands alone."""
    parts: list[list[EncodedGroup]] = []
    held = 0
    for group in groups:
        if not parts or held + group.tokens > tokens:
            parts.append([])
            held = 0
        parts[-1].append(group)
        held += group.tokens
    return parts


def score(
    network: Callable[..., Tensor],
    inputs: Sequence[str],
    groups: Sequence[EncodedGroup],
    *,
    pad_id: int,
    positions: int | None,
    forward_tokens: int,
    device: torch.device,
    windows: WindowSettings | None,
) -> list[Tensor]:
    """The scores of each group's documents: [documents] each, as parts of one graph."""
    features = [one for group in groups for one in group.features]
    order = batches([len(one) for one in features], forward_tokens)
    scores = []
    for some in order:
        arrays: dict[str, Any] = collate([features[at] for at in some], pad_id, positions)
        scores.append(
            network(**{name: torch.from_numpy(arrays[name]).to(device) for name in inputs})
        )
    back = torch.from_numpy(np.argsort(np.concatenate(order))).to(device)
    by_group = torch.split(torch.cat(scores)[back], [len(group.features) for group in groups])
    if windows is None:
        return list(by_group)
    return [_pooled(own, group, windows) for own, group in zip(by_group, groups, strict=True)]


def _pooled(scores: Tensor, group: EncodedGroup, settings: WindowSettings) -> Tensor:
    """The documents' scores from those of their windows, as `encode.windows.pool` has it."""
    known = scores.detach().float().cpu().numpy()
    weights, scale = (
        torch.from_numpy(part).to(scores)
        for part in pooling_weights(known, group.windows, settings)
    )
    parts = torch.split(scores * weights, list(group.windows))
    return torch.stack([part.sum() for part in parts]) * scale
