"""The model families: one description each, of everything that differs between them.

A new family is one class here and its row in FAMILIES. Nothing here needs torch to be imported, so
that a checkpoint can be opened without it.

transformers gives every layer the same mask. STRM needs that mask to be ours, and the warm form a
mask of its own in each layer and a stop between two layers; so a `Layered` family says how its
embeddings, its layers and its end are run one at a time. Others are run as a whole only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from secondlook.errors import CheckpointProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor
    from torch.nn import ModuleList
    from transformers import PreTrainedModel

SHUT = -1e4
"""Added to an attention logit, it shuts the position out: e^-10000 is exactly 0 in every floating
type, and being finite (in float16 too, and twice over) it never turns a row of padding into NaN."""


class Family:
    """A family whose networks run as a whole only."""

    behind_padding: ClassVar[bool] = False
    """Whether positions are numbered from behind the padding index."""
    decoder: ClassVar[bool] = False
    """Whether tokens see only those before them, so that the last one is read for the score."""
    head: ClassVar[tuple[str, ...]] = ("classifier", "classifier.out_proj")
    """What the last layer of its classifier may be called."""

    def __init__(self, encoder: PreTrainedModel) -> None:
        self.encoder: Any = encoder

    def logits(self, classifier: Any, read: Mapping[str, Any], real: Tensor) -> Tensor:  # noqa: ANN401 - a PreTrainedModel, which mypy loses track of
        """What its classifier gives, [batch, logits]; `real` is 0 for padding."""
        logits: Tensor = classifier(**read).logits
        return logits


class EncoderDecoder(Family):
    """BART and T5."""

    head = ("classification_head.out_proj",)


class BehindPadding(Family):
    """Positions as in RoBERTa."""

    behind_padding = True


class Decoder(Family):
    """A causal language model: Qwen's and others."""

    decoder = True
    head = ("score",)

    def logits(self, classifier: Any, read: Mapping[str, Any], real: Tensor) -> Tensor:  # noqa: ANN401 - as above
        """Of the last token by the mask: its own forward takes a text's padding token for padding.

        Padding stands on the right, where no token before it sees it.
        """
        states: Tensor = classifier.base_model(**read).last_hidden_state
        last = real * (real.cumsum(1) == real.sum(1, keepdim=True))  # 1 for one token of each row
        logits: Tensor = classifier.score((states * last[:, :, None]).sum(1))
        return logits


class Layered(Family):
    """BERT (MiniLM too): learned positions, layers that map states and mask to states."""

    reads_first_token: ClassVar[bool] = True
    """Whether its classifier reads the first token only, above layers built like BERT's."""

    @property
    def first_position(self) -> int:
        """The index of the first position's embedding."""
        return 0

    @property
    def layers(self) -> ModuleList:
        """The layers, lowest first."""
        layers: ModuleList = self.encoder.encoder.layer
        return layers

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The states below the first layer, all in segment 0: [batch, tokens, hidden]."""
        states: Tensor = self.encoder.embeddings(
            input_ids=ids,
            token_type_ids=ids.new_zeros(ids.shape),
            position_ids=positions + self.first_position,
        )
        return states

    def run(
        self,
        states: Tensor,  # [batch, tokens, hidden]
        positions: Tensor,  # [batch, tokens]
        mask: Callable[[int], Tensor],  # layer → [batch, 1, 1 or tokens, tokens], added to logits
        layers: range,
    ) -> Tensor:
        """The states above these layers."""
        for index in layers:
            states = self.layers[index](states, mask(index))
        return states

    def end(self, states: Tensor) -> Tensor:
        """What the encoder gives out, from the states above its last layer."""
        return states

    def masks(self, mask: Tensor, positions: Tensor) -> Any:  # noqa: ANN401 - a dict of masks for some
        """The mask as the encoder's own forward wants it."""
        return mask


class Electra(Layered):
    """ELECTRA: small ones embed narrower than their layers and project."""

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """As BERT's, then projected."""
        states = super().embed(ids, positions)
        if hasattr(self.encoder, "embeddings_project"):
            states = self.encoder.embeddings_project(states)
        return states


class Roberta(Layered):
    """RoBERTa and XLM-RoBERTa: positions are numbered from behind the padding index."""

    behind_padding = True

    @property
    def first_position(self) -> int:
        """The index of the first position's embedding."""
        padding: int = self.encoder.embeddings.padding_idx
        return padding + 1


class DistilBert(Layered):
    """DistilBERT: no segments."""

    reads_first_token = False  # its layers are built differently

    @property
    def layers(self) -> ModuleList:
        """The layers, lowest first."""
        layers: ModuleList = self.encoder.transformer.layer
        return layers

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The states below the first layer."""
        states: Tensor = self.encoder.embeddings(input_ids=ids, position_ids=positions)
        return states


class MPNet(Roberta):
    """MPNet: RoBERTa's positions, no segments; a bias by distance, the same in every layer."""

    reads_first_token = False  # as DistilBERT's

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The states below the first layer."""
        states: Tensor = self.encoder.embeddings(
            input_ids=ids, position_ids=positions + self.first_position
        )
        return states

    def run(
        self, states: Tensor, positions: Tensor, mask: Callable[[int], Tensor], layers: range
    ) -> Tensor:
        """The states above these layers; distances are between positions, not places."""
        stack = self.encoder.encoder
        distances = positions[:, None, :] - positions[:, :, None]  # [batch, from, to]
        bias = stack.relative_attention_bias(stack.relative_position_bucket(distances))
        bias = bias.permute(0, 3, 1, 2)  # [batch, heads, from, to]
        for index in layers:
            states = self.layers[index](states, mask(index), position_bias=bias)[0]
        return states


class ModernBert(Layered):
    """ModernBERT: rotary positions, and most layers see a window around each position only."""

    reads_first_token = False  # as DistilBERT's, and many pool all tokens

    @property
    def layers(self) -> ModuleList:
        """The layers, lowest first."""
        layers: ModuleList = self.encoder.layers
        return layers

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The states below the first layer."""
        states: Tensor = self.encoder.embeddings(input_ids=ids)
        return states

    def run(
        self, states: Tensor, positions: Tensor, mask: Callable[[int], Tensor], layers: range
    ) -> Tensor:
        """The states above these layers."""
        rotary = {
            kind: self.encoder.rotary_emb(states, positions, kind)
            for kind in sorted(set(self.encoder.config.layer_types))
        }
        for index in layers:
            layer: Any = self.layers[index]
            kind = layer.attention_type
            states = layer(
                states,
                attention_mask=self.masks(mask(index), positions)[kind],
                position_embeddings=rotary[kind],
            )
        return states

    def end(self, states: Tensor) -> Tensor:
        """The last norm."""
        normed: Tensor = self.encoder.final_norm(states)
        return normed

    def masks(self, mask: Tensor, positions: Tensor) -> dict[str, Tensor]:
        """One mask per kind of layer: the window is ours to draw, since we give the mask."""
        distances = (positions[:, None, :] - positions[:, :, None]).abs()
        near = distances <= self.encoder.config.sliding_window
        return {"full_attention": mask, "sliding_attention": mask.where(near[:, None], SHUT)}

    def logits(self, classifier: Any, read: Mapping[str, Any], real: Tensor) -> Tensor:  # noqa: ANN401 - as above
        """As its own forward, which would pool by the mask it is given, where that is ours."""
        if read["attention_mask"] is real:
            return super().logits(classifier, read, real)
        states: Tensor = classifier.model(**read).last_hidden_state
        if classifier.config.classifier_pooling == "cls":
            pooled = states[:, 0]
        else:
            weights = real[:, :, None].to(states.dtype)
            pooled = (states * weights).sum(1) / weights.sum(1)
        logits: Tensor = classifier.classifier(classifier.drop(classifier.head(pooled)))
        return logits


FAMILIES: dict[str, type[Family]] = {
    "albert": Family,
    "bart": EncoderDecoder,
    "bert": Layered,
    "camembert": BehindPadding,
    "deberta": Family,
    "deberta-v2": Family,
    "distilbert": DistilBert,
    "electra": Electra,
    "modernbert": ModernBert,
    "mpnet": MPNet,
    "mt5": EncoderDecoder,
    "qwen2": Decoder,
    "qwen3": Decoder,
    "roberta": Roberta,
    "t5": EncoderDecoder,
    "xlm-roberta": Roberta,
}
"""By `model_type` of config.json. All are part of transformers, so that none needs code of its own;
where one is not listed, its own code would be needed, or it is taken for a plain `Family`."""


def description(config: Mapping[str, Any]) -> type[Family]:
    """What is known of the family of this config.json."""
    return FAMILIES.get(str(config.get("model_type")), Family)


def family(encoder: Any, needed_for: str) -> Layered:  # noqa: ANN401 - a PreTrainedModel, which mypy loses track of
    """How this encoder's layers are run; raises CheckpointProblem where we do not know."""
    kind = encoder.config.model_type
    found = FAMILIES.get(kind, Family)
    if not issubclass(found, Layered):
        layered = [name for name, other in FAMILIES.items() if issubclass(other, Layered)]
        raise CheckpointProblem(
            f"{needed_for} reaches into the encoder's layers, and {kind!r} is none of the families "
            f"we know ({', '.join(layered)}); take a base of one of these, or do without"
        )
    return found(encoder)
