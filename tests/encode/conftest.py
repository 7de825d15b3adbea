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


def sentence_pieces(frame: str) -> Tokenizer:
    """XLM-RoBERTa's kind and DeBERTa-v3's: cased Unigram over words that begin with "▁".

    Some pieces hold a word and punctuation, as theirs do.
    """
    special = (
        ["<s>", "<pad>", "</s>", "<unk>"]
        if frame == "xlm-roberta"
        else ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    )
    letters = [*ascii_lowercase, *ascii_lowercase.upper(), *digits, *",.;:'!?-()$", "世", "界"]
    pieces = ["▁", *(f"▁{word}" for word in WORDS), *WORDS, *PIECES, *letters]
    pieces += ["▁(", "),", ").", "▁U.S.", "'s", "...", "世界"]
    scores = {piece: -2.0 - len(pieces) / (1 + len(piece)) / 40 for piece in pieces}
    vocabulary = [*((name, 0.0) for name in special), *scores.items()]
    tokenizer = Tokenizer(models.Unigram(vocabulary, special.index(special[3]), False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(special)
    if frame == "xlm-roberta":
        start, end, pair = "<s>", "</s>", "<s> $A </s> </s> $B </s>"
    else:
        start, end, pair = "[CLS]", "[SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}",
        pair=pair,
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in (start, end)],
    )
    return tokenizer


FAMILIES = {
    "bert": wordpiece,
    "mpnet": mpnet,
    "roberta": lambda: byte_pairs("roberta"),
    "modernbert": lambda: byte_pairs("modernbert"),
    "xlm-roberta": lambda: sentence_pieces("xlm-roberta"),
}


@pytest.fixture(scope="session", params=FAMILIES)
def family(request):
    """A tokenizer of each family; tests leave it as it is."""
    return FAMILIES[request.param]()


@pytest.fixture
def bert():
    return wordpiece()


@pytest.fixture(params=["xlm-roberta", "deberta-v3"])
def sentencepiece(request):
    return sentence_pieces(request.param)


@pytest.fixture
def roberta():
    return byte_pairs("roberta")


@pytest.fixture(scope="session")
def marked_bert():
    """BERT's kind, its vocabulary grown by the markers."""
    tokenizer = wordpiece()
    add_markers(tokenizer, MarkerSettings())
    return tokenizer
