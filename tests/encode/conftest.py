"""Small tokenizers of the families the encoder has to know, built on the spot."""

from __future__ import annotations

from string import ascii_lowercase, digits

import pytest
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from secondlook.encode.markers import add_markers
from secondlook.encode.settings import MarkerSettings

WORDS = (
    *("bog", "ghost", "ghosts", "town", "urban", "area", "meaning", "definition", "of", "what"),
    *("is", "the", "an", "a", "fake", "query", "passage", "smaller", "than", "city", "with"),
    *("fixed", "boundary", "that", "in", "location", "numeric", "person", "description", "entity"),
    *",.;:'!?-",
)
PIECES = ("ue", "us")


def wordpiece() -> Tokenizer:
    """BERT's kind: lower-cased WordPiece, `[CLS] a [SEP] b [SEP]`, some [unusedN]."""
    special = ["[PAD]", *(f"[unused{n}]" for n in range(10)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = ascii_lowercase + digits
    names = [*special, *WORDS, *letters, *(f"##{piece}" for piece in (*PIECES, *letters))]
    vocabulary = {name: number for number, name in enumerate(dict.fromkeys(names))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def byte_pairs(post_processor: str) -> Tokenizer:
    """RoBERTa's kind and ModernBERT's: cased byte-level BPE, which differ in the frame."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = (
        ["<s>", "<pad>", "</s>", "<unk>"] if post_processor == "roberta" else ["[CLS]", "[SEP]"]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    if post_processor == "roberta":
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    else:
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B [SEP]",
            special_tokens=[("[CLS]", 0), ("[SEP]", 1)],
        )
    return tokenizer


def mpnet() -> Tokenizer:
    """MPNet's kind: WordPiece in RoBERTa's frame, with segments."""
    tokenizer = wordpiece()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B:1 </s>:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")],
    )
    return tokenizer


FAMILIES = {
    "bert": wordpiece,
    "mpnet": mpnet,
    "roberta": lambda: byte_pairs("roberta"),
    "modernbert": lambda: byte_pairs("modernbert"),
}


@pytest.fixture(scope="session", params=FAMILIES)
def family(request):
    """A tokenizer of each family; tests leave it as it is."""
    return FAMILIES[request.param]()


@pytest.fixture
def bert():
    return wordpiece()


@pytest.fixture
def roberta():
    return byte_pairs("roberta")


@pytest.fixture(scope="session")
def marked_bert():
    """BERT's kind, its vocabulary grown by the markers."""
    tokenizer = wordpiece()
    add_markers(tokenizer, MarkerSettings())
    return tokenizer
