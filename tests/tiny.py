"""Two-layer networks with random weights, one of each family, and folders that hold them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedConfig, PreTrainedModel

torch.set_num_threads(1)  # networks this small only wait for a second thread

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "a the of in is what who where bog ##ue ##us cape fear river tide deep sea fish ins ##ouci"
VOCABULARY = [*SPECIAL, *WORDS.split(), *"abcdefghijklmnopqrstuvwxyz", *"0123456789.,?!"]
VOCABULARY += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
SIZE = 100

_SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": SIZE,
    "max_position_embeddings": 80,
}
_DISTIL = {
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 48,
    "vocab_size": SIZE,
    "max_position_embeddings": 80,
}
_MODERN = {
    "local_attention": 8,
    "global_attn_every_n_layers": 2,
    "classifier_pooling": "mean",
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "cls_token_id": 2,
    "sep_token_id": 3,
}
CONFIGS = {
    "bert": lambda: transformers.BertConfig(**_SHAPE),
    "distilbert": lambda: transformers.DistilBertConfig(**_DISTIL),
    "electra": lambda: transformers.ElectraConfig(**_SHAPE, embedding_size=16),
    "modernbert": lambda: transformers.ModernBertConfig(**_SHAPE, **_MODERN),
    "mpnet": lambda: transformers.MPNetConfig(**_SHAPE),
    "roberta": lambda: transformers.RobertaConfig(**_SHAPE, type_vocab_size=1),
    "xlm-roberta": lambda: transformers.XLMRobertaConfig(**_SHAPE, type_vocab_size=1),
}
FAMILIES = tuple(CONFIGS)


_ENDS = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 3}
_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
_BART = {
    "d_model": 32,
    "max_position_embeddings": 80,
    **{f"{half}_layers": 2 for half in ("encoder", "decoder")},
    **{f"{half}_ffn_dim": 48 for half in ("encoder", "decoder")},
    **{f"{half}_attention_heads": 4 for half in ("encoder", "decoder")},
    **{f"{part}dropout": 0.1 for part in ("", "attention_", "activation_")},
}
ENCODER_DECODERS = {
    "bart": lambda: transformers.BartConfig(vocab_size=SIZE, bos_token_id=2, **_BART, **_ENDS),
    "t5": lambda: transformers.T5Config(vocab_size=SIZE, **_T5, **_ENDS),
}


def config(family: str, **changes: object) -> PreTrainedConfig:
    """A small configuration whose random weights are large enough for scores to differ."""
    made = CONFIGS[family]()
    made.initializer_range = 0.3
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def classifier(family: str = "bert", *, logits: int = 1, seed: int = 0) -> PreTrainedModel:
    torch.manual_seed(seed)
    made = config(family, num_labels=logits)
    return transformers.AutoModelForSequenceClassification.from_config(made).eval()


def encoder_decoder(family: str) -> PreTrainedModel:
    """A classifier whose encoder and decoder share the embeddings of words."""
    torch.manual_seed(0)
    made = ENCODER_DECODERS[family]()
    made.num_labels = 1
    return transformers.AutoModelForSequenceClassification.from_config(made).eval()


def encoder(family: str = "bert", *, seed: int = 0) -> PreTrainedModel:
    torch.manual_seed(seed)
    return transformers.AutoModel.from_config(config(family)).eval()


def tokenizer() -> Tokenizer:
    """WordPiece over a few words and all letters."""
    made = Tokenizer(
        models.WordPiece({token: i for i, token in enumerate(VOCABULARY)}, unk_token="[UNK]")
    )
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(SPECIAL)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return made


def sentence_pieces() -> Tokenizer:
    """XLM-RoBERTa's kind: Unigram over a few words, punctuation and all letters."""
    words = [word for word in WORDS.split() if "#" not in word and len(word) > 1]
    pieces = ["▁", *(f"▁{word}" for word in words), "ue", "us", *"abcdefghijklmnopqrstuvwxyz.,?!"]
    scored = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -20.0)]
    scored += [(piece, -10.0 + min(len(piece), 8)) for piece in pieces]
    made = Tokenizer(models.Unigram(scored, 3, byte_fallback=False))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return made


def save(model: PreTrainedModel, folder: Path, **tokenizer_config: object) -> Path:
    """A plain Hugging Face folder; what is named differs in `tokenizer_config.json`."""
    model.save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
                "model_max_length": 64,
                "pad_token": "[PAD]",
                "unk_token": "[UNK]",
                "cls_token": "[CLS]",
                "sep_token": "[SEP]",
                "mask_token": "[MASK]",
            }
            | tokenizer_config
        )
    )
    return folder


def half_separate(folder: Path, family: str = "bert", *, seed: int = 0, **encode: object) -> Path:
    """A ranker with one separate layer and one, wide open, that reads both texts."""
    from secondlook.model.network import new_warm, save_model

    base = save(encoder(family, seed=seed), folder.with_name(f"{folder.name}-base"))
    made = new_warm(base, separate_layers=1, encode={"max_length": 60} | encode)
    made.network.gate.data.uniform_(0.5, 2.0)
    made.network.head.weight.data.normal_(std=0.3)
    save_model(made, folder)
    return folder


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))


def read_json(path: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads(path.read_text())
    return content


def batch(*lengths: int, first: int = 4, seed: int = 1) -> dict[str, torch.Tensor]:
    """Random pairs of these lengths, padded, whose words have one to three sub-tokens."""
    draw = torch.Generator().manual_seed(seed)
    shape = len(lengths), max(lengths)
    mask = (torch.arange(shape[1])[None] < torch.tensor(lengths)[:, None]).long()
    starts = torch.rand(shape, generator=draw) < 0.6
    starts[:, first] = True
    return {
        "input_ids": torch.randint(5, SIZE, shape, generator=draw) * mask,
        "attention_mask": mask,
        "token_type_ids": (torch.arange(shape[1])[None] >= first).long() * mask,
        "words": torch.where(mask.bool(), starts.cumsum(1), -1),
        "first": torch.full((len(lengths),), first),
    }
