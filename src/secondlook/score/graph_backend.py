"""What the engines that run an exported graph share: one batch per core, each on one thread.

No core then waits for another inside a layer, and a machine that does other work beside this
slows down one batch, not all of them. Where batches come one at a time, all cores run each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.encode.features import collate, padded
from secondlook.score.batching import batches
from secondlook.score.cores import threads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from secondlook.encode.features import Features
    from secondlook.model.checkpoint import Checkpoint
    from secondlook.score.export_folder import Export

_MANY_BATCHES = 256


class GraphBackend(ABC):
    """Scores encoded pairs with the graph of a checkpoint. Threads may share it.

    `token_budget` bounds a batch with its padding. On one thread a token costs the same in batches
    of 256 and of 2,048, and small ones need less padding (docs/decisions/0145).
    """

    def __init__(
        self,
        export: Export,
        checkpoint: Checkpoint,
        *,
        token_budget: int = 512,
        one_at_a_time: bool = False,
    ) -> None:
        self.engine, self.precision = export.engine, export.precision
        self.workers = 1 if one_at_a_time else threads()
        self.batch_threads = threads() if one_at_a_time else 1
        """That run one batch."""
        self.token_budget = token_budget
        self.deal_evenly = True
        """Whether little work is dealt out to all cores; else batches never depend on these."""
        self._pad_id = checkpoint.pad_id
        self._longest = checkpoint.settings.encode.longest_pair
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="secondlook")

    @abstractmethod
    def run(self, batch: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """What the graph gives for one batch. Called from several threads at once."""

    def logits(self, features: Sequence[Features]) -> NDArray[np.float32]:
        """One logit per encoded pair, in the order given, whatever pairs stand beside it."""
        logits = np.empty(len(features), np.float32)
        lengths = [padded(len(one), self._longest) for one in features]

        def score(batch: NDArray[np.intp]) -> None:
            pairs = [features[index] for index in batch]
            logits[batch] = self.run(collate(pairs, self._pad_id, self._longest))

        # a list, so that a worker's exception is raised here
        list(self._pool.map(score, batches(lengths, self._budget(sum(lengths)))))
        return logits

    def _budget(self, tokens: int) -> int:
        """As many batches for each worker, so that none idles at the end.

        Of many batches the last ones cost little, and batches that do not depend on the number of
        cores give the same scores on any machine, to the last bit.
        """
        if not self.deal_evenly or tokens >= _MANY_BATCHES * self.token_budget:
            return self.token_budget
        rounds = ceil(tokens / (self.token_budget * self.workers))
        return ceil(tokens / max(1, rounds * self.workers))
