"""doc2query: a sequence-to-sequence model of transformers that asks what a passage answers."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from secondlook.encode.tokens import text_only
from secondlook.errors import CheckpointProblem, MissingExtra, UnusableTokenizer
from secondlook.model.checkpoint import (
    base_name,
    locate,
    open_trained,
    position_limit,
    read_config,
    read_tokenizer,
    replacing,
    write_settings,
)
from secondlook.model.settings import Lineage
from secondlook.recipe import Settings

try:
    import torch
    from transformers import (
        AutoModelForCausalLM,
        AutoModelForSeq2SeqLM,
        EncoderDecoderModel,
        LogitsProcessor,
        LogitsProcessorList,
    )
except ImportError as error:
    raise MissingExtra("torch", "expanding documents") from error

from secondlook.model.loading import load, load_encoder, quiet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokenizers import Tokenizer
    from torch import Tensor

CARD = "expander.json"
_LONGEST, _LONGEST_QUERY = 512, 64  # tokens, where a model does not say what it was trained on


class ExpanderSettings(Settings):
    """What an expander says of itself in `expander.json`."""

    version: Literal[1] = 1
    max_length: int
    """Tokens of a passage that it reads; the rest is left out."""
    max_query_length: int
    """Tokens of a query, special ones counted."""
    lineage: Lineage


@dataclass(frozen=True, slots=True)
class ExpanderModel:
    """What an expander's folder holds, in memory."""

    network: Any
    """A PreTrainedModel, which mypy loses track of."""
    tokenizer: Tokenizer
    settings: ExpanderSettings

    def __post_init__(self) -> None:
        # "[SEP]" in a text is no separator
        object.__setattr__(self, "tokenizer", text_only(self.tokenizer))

    @property
    def pad_id(self) -> int:
        """Fills up short sequences."""
        return int(self.network.config.pad_token_id or 0)

    def passages(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of passages, with the special tokens the model knows them by."""
        return self._ids(texts, self.settings.max_length)

    def queries(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of queries as the decoder is to give them: without what it starts from."""
        start = self.network.config.decoder_start_token_id
        found = self._ids(texts, self.settings.max_query_length)
        return [ids[1:] if ids[:1] == [start] else ids for ids in found]

    def _ids(self, texts: Sequence[str], limit: int) -> list[list[int]]:
        found = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        # the last special token stays: it ends a passage, and a query
        return [ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]] for ids in found]


def new_expander(base: str | Path, max_length: int, max_query_length: int) -> ExpanderModel:
    """An expander from a seq2seq model, or from an encoder that becomes both halves of one.

    Then the decoder's attention to the passage is new; it begins as its attention to itself.
    """
    folder = locate(base)
    config = read_config(folder)
    limit = position_limit(config) or max(max_length, max_query_length)
    settings = ExpanderSettings(
        max_length=min(max_length, limit),
        max_query_length=min(max_query_length, limit),
        lineage=Lineage(base=base_name(base)),
    )
    tokenizer = read_tokenizer(folder)
    whole = config.get("is_encoder_decoder")
    network = _seq2seq(folder) if whole else _doubled(folder, tokenizer)
    return ExpanderModel(network.eval(), tokenizer, settings)


def load_expander(source: str | Path) -> ExpanderModel:
    """A trained expander from a folder or hub id; never from pickles, nor with code of its own.

    A plain seq2seq model, such as others' doc2query, is taken at its word that it was trained.
    """
    folder = locate_expander(source)
    if not (folder / CARD).is_file():
        return new_expander(source, _LONGEST, _LONGEST_QUERY)
    _, settings = open_trained(source, "expand", CARD, ExpanderSettings)
    return ExpanderModel(_seq2seq(folder).eval(), read_tokenizer(folder), settings)


def locate_expander(source: str | Path) -> Path:
    """The folder of an expander, before its weights are read. Raises CheckpointProblem."""
    found = locate(source)
    if (found / CARD).is_file() or not read_config(found).get("is_encoder_decoder"):
        open_trained(source, "expand", CARD, ExpanderSettings)  # which says what it is not
    return found


def save_expander(model: ExpanderModel, folder: Path) -> None:
    """Write the folder, at once: a plain seq2seq model of transformers beside the settings."""
    with replacing(folder) as half, quiet():
        model.network.save_pretrained(half)
        model.tokenizer.save(str(half / "tokenizer.json"))
        write_settings(half, model.settings, CARD)


def sample(
    model: ExpanderModel,
    passages: Sequence[tuple[str, str]],  # ids and texts
    count: int,
    *,
    top_k: int,
    seed: int,
    device: torch.device,
) -> list[list[str]]:
    """So many queries for each passage, drawn from the `top_k` likeliest tokens at each step.

    The draws of a passage depend on its id and the seed only, not on who stands beside it.
    """
    network: Any = model.network
    ids = model.passages([text for _, text in passages])
    input_ids, mask = padded(ids, model.pad_id)
    draws = [
        np.random.default_rng([seed, int.from_bytes(sha256(doc_id.encode()).digest()[:8])])
        for doc_id, _ in passages
    ]
    with torch.inference_mode(), quiet():
        mask = mask.to(device)
        read = network.get_encoder()(input_ids=input_ids.to(device), attention_mask=mask)
        read.last_hidden_state = read.last_hidden_state.repeat_interleave(count, 0)
        made = network.generate(
            encoder_outputs=read,
            attention_mask=mask.repeat_interleave(count, 0),
            do_sample=False,  # the draw is in the processor: the largest of perturbed logits
            num_beams=1,
            max_new_tokens=model.settings.max_query_length,
            logits_processor=LogitsProcessorList([_Draw(draws, count, top_k)]),
        )
    texts = model.tokenizer.decode_batch(made.tolist(), skip_special_tokens=True)
    return [texts[start : start + count] for start in range(0, len(texts), count)]


def padded(rows: Sequence[Sequence[int]], fill: int) -> tuple[Tensor, Tensor]:
    """The rows side by side, filled up on the right, and which places are real."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return ids, mask


class _Draw(LogitsProcessor):
    """Top-k sampling by the Gumbel trick, with random numbers of each passage's own.

    The largest of logits with Gumbel noise is distributed as their softmax. generate()'s own
    sampling draws from one source for a whole batch, so that a batch cut otherwise, as after a
    resume, would ask other queries.
    """

    def __init__(self, draws: Sequence[np.random.Generator], count: int, top_k: int) -> None:
        self._draws, self._count, self._top_k = draws, count, top_k

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """All tokens but those of the `top_k` are shut out, and the drawn one is the largest."""
        best = scores.topk(min(self._top_k, scores.shape[-1]))
        size = self._count, best.values.shape[-1]
        noise = np.concatenate([rng.gumbel(size=size) for rng in self._draws])
        drawn = best.values + torch.from_numpy(noise).to(best.values)
        return torch.full_like(scores, float("-inf")).scatter(1, best.indices, drawn)


def _seq2seq(folder: Path) -> Any:  # noqa: ANN401 - likewise
    network, missing = load(AutoModelForSeq2SeqLM, folder)
    lost = [name for name in missing if "pooler" not in name]
    if lost:
        raise CheckpointProblem(f"{folder} is incomplete: it lacks {lost[0]}; fetch it anew")
    return network


def _doubled(folder: Path, tokenizer: Tokenizer) -> Any:  # noqa: ANN401 - a PreTrainedModel, which mypy loses track of
    """Encoder and decoder from one encoder."""
    encoder = load_encoder(folder)
    decoder, _ = load(AutoModelForCausalLM, folder, is_decoder=True, add_cross_attention=True)
    modules = dict(decoder.named_modules())
    for name, module in modules.items():
        if name.endswith(".crossattention"):
            own = modules[name.removesuffix("crossattention") + "attention"]
            module.load_state_dict(own.state_dict())
    network: Any = EncoderDecoderModel(encoder=encoder, decoder=decoder)
    around = tokenizer.encode("a").ids
    if len(around) < 3:
        raise UnusableTokenizer(
            "the tokenizer puts no special tokens around a text, so there is nothing to begin and "
            "end a query with; take a seq2seq model, or an encoder of the BERT family"
        )
    for config in (network.config, network.generation_config):
        config.decoder_start_token_id, config.eos_token_id = around[0], around[-1]
        config.pad_token_id = encoder.config.pad_token_id or 0
    return network
