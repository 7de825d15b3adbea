"""Cross-encoders as their authors store them, small and random: a folder of each layout."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

import tiny

LENGTH = 120
WITHOUT_SEGMENTS = ["input_ids", "attention_mask"]
LONG = "what is the tide of the cape fear river, in deep sea? "
PAIRS = (
    ("what is bogue", "the tide of the sea. bogue, a fish!"),
    (LONG * 2, "a fish"),  # the query is cut, and by far more than 64 tokens of it fit
    ("tide", LONG * 9),
    (LONG * 9, LONG * 7),
    (LONG * 7, LONG * 9),
    ("", ""),
    ("", "the tide"),
    ("tide", ""),
    ("où est Zürich", "Zürich liegt am Zürichsee — 400\u00a0000 habitants. 東京 не там."),
)
TEMPLATE = """\
<|im_start|>yes or no?<|im_end|>
<|im_start|>{{ messages | selectattr("role", "eq", "system") | map(attribute="content") | first \
| default("rank") }}
<q>: {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}
<d>: {{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first }}\
<|im_end|>
<think>

{# #}"""
"""In the style of Qwen3-Reranker's: nothing but text stands between query and document."""
CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}{% endfor %}"
"""One that has no place for texts."""
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen's tokenizers split texts before their merges."""


def deberta() -> Any:
    return transformers.DebertaV2Config(
        **tiny._SHAPE,
        type_vocab_size=0,
        relative_attention=True,
        position_buckets=16,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        pooler_hidden_size=32,
    )


def classifier(path: Path, kind: str = "bert", logits: int = 1, **tokenizer_config: Any) -> Path:
    """A classifier of transformers."""
    torch.manual_seed(3)
    made = deberta() if kind == "deberta-v2" else tiny.config(kind)
    made.initializer_range, made.num_labels = 0.3, logits
    made.max_position_embeddings = LENGTH + 2
    model = transformers.AutoModelForSequenceClassification.from_config(made).eval()
    tiny.save(model, path, **{"model_max_length": LENGTH} | tokenizer_config)
    if kind == "xlm-roberta":
        tiny.sentence_pieces().save(str(path / "tokenizer.json"))
        names = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>"}
        tiny.write_json(
            path / "tokenizer_config.json",
            {f"{name}_token": token for name, token in names.items()}
            | {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "model_input_names": WITHOUT_SEGMENTS,
                "model_max_length": LENGTH,
            },
        )
    return path


def modular(
    path: Path,
    kind: str = "modernbert",
    pooling: Any = "cls",
    logits: int = 1,
    activation: type[torch.nn.Module] | None = None,
    seed: int = 3,
) -> Path:
    """Encoder, pooling, a wide layer, a norm, and the layer that scores: Ettin's layout."""
    shutil.copytree(_modular(kind, pooling, logits, activation, seed), path)
    return path


@cache
def _modular(kind: str, pooling: Any, logits: int, activation: Any, seed: int) -> Path:
    """Made once in a session, and removed at its end."""
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import CrossEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Dropout, LayerNorm, Pooling

    torch.manual_seed(seed)
    made = tiny.config(kind, max_position_embeddings=LENGTH + 2)
    encoder = transformers.AutoModel.from_config(made).eval()
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    start = tiny.save(encoder, place / "start", model_max_length=LENGTH)
    last = None if activation is None else activation()
    wide = 32 * (1 if isinstance(pooling, str) else len(pooling))
    modules = [
        Transformer(str(start)),
        Pooling(32, pooling),
        Normalize(),
        Dropout(0.1),
        Dense(wide, 24, activation_function=torch.nn.GELU(), use_residual=True),
        LayerNorm(24),
        Dense(24, logits, activation_function=last, module_output_name="scores"),
    ]
    for module in modules[-3:]:
        for weight in module.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    there = CrossEncoder(modules=modules, device="cpu")
    there.save_pretrained(str(place / "saved"))
    return place / "saved"


def byte_pairs() -> Tokenizer:
    """Qwen's kind: bytes and a few merges, of which some reach over the seam of a template."""
    merges = [("y", "e"), ("ye", "s"), ("n", "o"), ("Ġ", "t"), ("i", "d"), ("id", "e")]
    merges += [("Ġt", "ide"), ("t", "h"), ("th", "e"), ("?", "Ċ"), ("Ċ", "Ċ"), ("Ġ", "w")]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*alphabet, *("".join(pair) for pair in merges)]
    made = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    made.add_tokens([AddedToken("<think>", special=False, normalized=False)])
    return made


def decoder(
    path: Path,
    *,
    causal: bool,
    template: str = TEMPLATE,
    length: int = LENGTH,
    kind: str = "qwen3",
    **changes: Any,
) -> Path:
    """A language model that says yes or no, or the classifier that was made of one."""
    torch.manual_seed(3)
    config: Any = {"qwen3": transformers.Qwen3Config, "qwen2": transformers.Qwen2Config}[kind]
    made = config(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=48,
        vocab_size=288,
        max_position_embeddings=1024,
        tie_word_embeddings=causal,
        num_labels=1,
        **changes,
    )
    made.initializer_range = 0.3
    made.pad_token_id = None if causal else 268
    auto = transformers.AutoModelForCausalLM if causal else None
    auto = auto or transformers.AutoModelForSequenceClassification
    auto.from_config(made).eval().save_pretrained(path)
    tokenizer = byte_pairs()
    assert tokenizer.token_to_id("<|endoftext|>") == 268
    tokenizer.save(str(path / "tokenizer.json"))
    tiny.write_json(
        path / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_input_names": WITHOUT_SEGMENTS,
            "model_max_length": length,
            "pad_token": "<|endoftext|>",
            "eos_token": "<|im_end|>",
        },
    )
    if template:
        (path / "chat_template.jinja").write_text(template)
    return path


LAYOUTS: dict[str, Any] = {
    "bert": lambda path: classifier(path),
    "bert, two logits": lambda path: classifier(path, logits=2),
    "xlm-roberta": lambda path: classifier(path, "xlm-roberta"),
    "modernbert": lambda path: classifier(path, "modernbert"),
    "deberta-v2": lambda path: classifier(path, "deberta-v2"),
    "electra": lambda path: classifier(path, "electra", model_input_names=WITHOUT_SEGMENTS),
    "distilbert": lambda path: classifier(path, "distilbert"),
    "modular": lambda path: modular(path),
    "modular, mean, bert": lambda path: modular(path, "bert", "mean"),
    "qwen3, causal": lambda path: decoder(path, causal=True),
    "qwen3, classifier": lambda path: decoder(path, causal=False),
    "qwen2, causal": lambda path: decoder(path, causal=True, kind="qwen2"),
}
NAMED = tuple(name for name in LAYOUTS if name not in ("modular, mean, bert", "qwen2, causal"))
"""Those that people use most."""
