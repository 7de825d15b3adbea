"""Adaptation: how examples are made, what they cost, and that a network learns from them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.nn import functional

import tiny
from secondlook.data import write_corpus
from secondlook.encode.template import Template
from secondlook.errors import SecondlookError, UnusableTokenizer
from secondlook.model.network import new_joint
from secondlook.model.settings import FusionSettings
from secondlook.train.adapt import run
from secondlook.train.base_heads import put_into, store_heads
from secondlook.train.phase import Place, TrainData
from secondlook.train.pretraining import Pretraining, gather
from secondlook.train.sentences import NO_NEXT, ExampleMaker, Sentences, split
from secondlook.train.settings import AdaptPhase
from secondlook.types import Document

TEXTS = [
    "The sea is deep. The fish is in the sea. What is the tide?",
    "Cape Fear is the cape. The river is in the sea.",
    "Who is in the river? A fish is in the river. The tide is deep. Where is the cape?",
    "bogue is bogus",
]
CORPUS = [Document(f"d{number}", text) for number, text in enumerate(TEXTS)]


def recital(folder, corpus=CORPUS, **changes):
    tokenizer = tiny.tokenizer()
    given = {
        "max_length": 40, "share": 0.15, "whole_words": False, "mask_id": 4,
        "vocabulary": len(tiny.VOCABULARY), "seed": 7,
    }  # fmt: skip
    sentences = Sentences.store(folder, corpus, tokenizer)
    return ExampleMaker(sentences, Template.read(tokenizer, "joint"), **given | changes)


def test_a_real_splitter_knows_what_ends_a_sentence():
    assert split("Dr. Smith paid $3.50 on Jan. 5. He left.It rained. Why?") == [
        "Dr. Smith paid $3.50 on Jan. 5.", "He left.", "It rained.", "Why?",
    ]  # fmt: skip
    assert split("") == []


def test_sentences_are_kept_by_document(tmp_path):
    tokenizer = tiny.tokenizer()
    corpus = [CORPUS[0], Document("empty", "  "), *CORPUS[1:]]
    kept = Sentences.store(tmp_path, corpus, tokenizer)
    assert [len(kept.of(document)) for document in range(len(kept))] == [3, 2, 4, 1]
    second = kept.of(0)[1]
    spelled = [tokenizer.id_to_token(i) for i in kept.tokens(second, second + 1).ids]
    assert spelled == ["the", "fish", "is", "in", "the", "sea", "."]
    again = Sentences.store(tmp_path, iter(()), tokenizer)  # it is there already
    assert again.fingerprint == kept.fingerprint


def test_special_tokens_that_a_text_spells_out_are_text(tmp_path):
    tokenizer = tiny.tokenizer()
    kept = Sentences.store(tmp_path, [Document("d", "a [SEP] is a [MASK]")], tokenizer)
    ids = set(kept.tokens(0, 1).ids.tolist())
    assert not ids & {tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]", "[MASK]")}
    assert tokenizer.encode("[SEP]", add_special_tokens=False).tokens == ["[SEP]"]  # as it was


def test_an_example_is_two_parts_of_which_the_second_follows_or_not(tmp_path):
    made = recital(tmp_path)
    own = made.sentences.of(2)
    whole = " ".join(map(str, made.sentences.tokens(own.start, own.stop).ids))
    seen = set()
    for epoch in range(40):
        example = made.example(2, epoch)
        ids = example.features.ids.copy()
        ids[example.places] = example.hidden
        first, end = example.features.first, len(ids) - 1
        assert (ids[0], ids[first - 1], ids[end]) == (2, 3, 3)
        assert example.features.segments.tolist() == [0] * first + [1] * (end + 1 - first)
        joined = " ".join(map(str, [*ids[1 : first - 1], *ids[first:end]]))
        assert (joined in whole) == (example.follows == 1)
        seen.add(example.follows)
    assert seen == {0, 1}
    alone = made.example(3, 0)
    assert alone.follows == NO_NEXT
    assert alone.features.first == 0


def test_a_second_part_comes_from_the_documents_that_examples_are_made_of(tmp_path):
    texts = ["The sea is deep. The sea is deep.", "A fish in a river. A fish in a river."]
    corpus = [Document(str(number), texts[number % 2]) for number in range(10)]
    made = recital(tmp_path, corpus, documents=range(0, 10, 2))
    examples = [made.example(document, epoch) for document in (0, 4, 8) for epoch in range(20)]
    assert {example.follows for example in examples} == {0, 1}
    seen = set().union(*(example.hidden.tolist() for example in examples))
    assert seen <= {tiny.VOCABULARY.index(word) for word in ("the", "sea", "is", "deep", ".")}
    alone = recital(tmp_path, documents=[2])
    assert {alone.example(2, epoch).follows for epoch in range(20)} == {1}


def test_the_same_document_and_epoch_give_the_same_example(tmp_path):
    made = recital(tmp_path)
    one, same, other = made.example(2, 1), made.example(2, 1), made.example(2, 2)
    assert one.features.ids.tolist() == same.features.ids.tolist()
    assert one.places.tolist() == same.places.tolist()
    assert one.features.ids.tolist() != other.features.ids.tolist()


def test_no_example_is_longer_than_asked_for(tmp_path):
    made = recital(tmp_path, max_length=12)
    examples = [made.example(d, e).features for d in range(4) for e in range(10)]
    assert {len(features) for features in examples} <= set(range(13))
    assert max(len(features) for features in examples) == 12
    for features in examples:  # the rest of a word that was cut is no part of [CLS]
        assert features.words.tolist()[:2] == [0, 1]


def test_the_stated_share_is_hidden_by_the_rule_of_bert(tmp_path):
    corpus = [Document(str(n), "the sea is deep in the river . " * 12) for n in range(20)]
    made = recital(tmp_path, corpus, max_length=64)
    tokens = hidden = masked = kept = 0
    for document in range(20):
        for epoch in range(20):
            example = made.example(document, epoch)
            tokens += len(example.features) - 3
            hidden += len(example.places)
            now = example.features.ids[example.places]
            masked += int((now == 4).sum())
            kept += int((now == example.hidden).sum())
    assert hidden / tokens == pytest.approx(0.15, abs=0.01)
    assert masked / hidden == pytest.approx(0.8, abs=0.03)
    assert kept / hidden == pytest.approx(0.1, abs=0.03)


def test_whole_words_are_hidden_whole(tmp_path):
    corpus = [Document("d", "bogue bogus insouci bogue bogus")]
    made = recital(tmp_path, corpus, whole_words=True)
    for epoch in range(20):
        example = made.example(0, epoch)
        words = example.features.words
        for word in set(words[example.places].tolist()):
            assert set(np.flatnonzero(words == word)) <= set(example.places.tolist())


def test_the_loss_is_that_of_the_hidden_words_and_the_next_sentence(tmp_path, joint):
    """Worked from the logits by hand: -ln of what the right answers got."""
    torch.manual_seed(0)
    network = Pretraining(joint.network).eval()
    made = recital(tmp_path)
    examples = [made.example(document, 5) for document in (0, 2, 3)]
    batch = gather(examples, joint.network)
    with torch.no_grad():
        found = network(**batch)
        states = network.encoder(
            batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]
        ).last_hidden_state
        words = nexts = 0.0
        for row, example in enumerate(examples):
            for place, token in zip(example.places, example.hidden, strict=True):
                state = states[row, place]
                made_of = functional.gelu(network.heads.transform(state))
                made_of = (made_of - made_of.mean()) / (made_of.var(correction=0) + 1e-5).sqrt()
                logits = [
                    float(made_of @ row) for row in network.encoder.get_input_embeddings().weight
                ]
                words -= logits[token] - math.log(sum(map(math.exp, logits)))
            if example.follows != NO_NEXT:
                pooled = torch.tanh(network.heads.pool(states[row, 0]))
                two = network.heads.follows(pooled).tolist()
                nexts -= two[example.follows] - math.log(sum(map(math.exp, two)))
    hidden = sum(len(example.hidden) for example in examples)
    assert float(found["words"]) == pytest.approx(words / hidden, rel=1e-4)
    assert float(found["loss"]) == pytest.approx(words / hidden + nexts / 2, rel=1e-4)


def test_strm_and_the_warm_form_are_adapted_too(tmp_path, base, warm):
    made = recital(tmp_path / "sentences")
    batch = gather([made.example(document, 0) for document in range(4)], warm.network)
    torch.manual_seed(0)
    plain = Pretraining(new_joint(base).network).eval()
    heads = plain.heads.state_dict()
    strm = Pretraining(new_joint(base, {"strm": True}).network).eval()
    strm.heads.load_state_dict(heads)
    with torch.no_grad():
        assert float(plain(**batch)["loss"]) != pytest.approx(float(strm(**batch)["loss"]))
    loss = Pretraining(warm.network)(**batch)["loss"]
    loss.backward()
    assert warm.network.encoder.get_input_embeddings().weight.grad.abs().sum() > 0


PHASE = {
    "corpus": "corpus.jsonl", "batch": 8, "at_once": 4, "max_length": 24, "max_steps": 120,
    "learning_rate": 3e-3, "head_steps": 40, "head_learning_rate": 3e-3, "dropout": 0.0,
    "precision": "fp32", "weight_decay": 0.0,
}  # fmt: skip


@pytest.fixture
def corpus(tmp_path):
    """Twenty documents in which each word can be told from the others."""
    texts = ["The tide is deep. Fish in a river.", "What cape of fear? Who bogue sea where."]
    documents = [Document(str(number), texts[number % 2]) for number in range(20)]
    write_corpus(tmp_path / "corpus.jsonl", documents)
    return TrainData(tmp_path)


def test_twenty_documents_are_learnt(tmp_path, joint, corpus):
    head = joint.network.classifier.classifier.weight.detach().clone()
    settings = AdaptPhase(**PHASE | {"max_steps": 300})
    fused = joint.settings.model_copy(update={"fusion": FusionSettings(weight=0.3)})
    outcome = run(
        settings, replace(joint, settings=fused), corpus, Place(tmp_path / "work", seed=7)
    )
    assert outcome.model.settings.fusion is None  # it was chosen for other scores
    metrics = outcome.metrics
    assert metrics["perplexity"] < 1.5 < 3 < metrics["perplexity at the start"]
    assert outcome.history[-1]["loss"] < outcome.history[0]["loss"]
    assert outcome.model.network is joint.network
    assert torch.equal(joint.network.classifier.classifier.weight, head)
    assert list(outcome.learned_from) == ["corpus.jsonl"]


def test_no_held_out_document_is_shown_in_training(tmp_path, joint, corpus, monkeypatch):
    read, shown, measured = set(), set(), set()
    tokens = Sentences.tokens

    def watched(sentences, first, end):
        read.add(next(d for d in range(len(sentences)) if first in sentences.of(d)))
        return tokens(sentences, first, end)

    def go_through(network, exercise, place, device):
        measured.update(read)
        read.clear()
        for number in range(len(exercise.shown)):
            exercise.shown[number]
        shown.update(read)
        read.clear()
        return []

    monkeypatch.setattr(Sentences, "tokens", watched)
    monkeypatch.setattr("secondlook.train.adapt.teach", go_through)
    run(AdaptPhase(**PHASE), joint, corpus, Place(tmp_path / "work", seed=7))
    measured.update(read)
    assert (len(shown), len(measured)) == (18, 2)
    assert not shown & measured


def test_the_heads_are_warmed_up_without_the_encoder(tmp_path, joint, corpus):
    before = {name: weight.clone() for name, weight in joint.network.state_dict().items()}
    settings = AdaptPhase(**PHASE | {"max_steps": 1, "learning_rate": 1e-12})
    cold = AdaptPhase(**PHASE | {"max_steps": 1, "learning_rate": 1e-12, "head_steps": 0})
    warmed = run(settings, joint, corpus, Place(tmp_path / "warmed", seed=7)).metrics
    unwarmed = run(cold, joint, corpus, Place(tmp_path / "cold", seed=7)).metrics
    assert warmed["perplexity at the start"] < 0.8 * unwarmed["perplexity at the start"]
    after = joint.network.state_dict()
    assert all(torch.allclose(after[name], was, atol=1e-9) for name, was in before.items())


def words_head(base):
    """A base as its authors would publish it: with a head that finds hidden words."""
    torch.manual_seed(3)
    with_head = transformers.BertForMaskedLM(tiny.config("bert"))
    with_head.bert.load_state_dict(tiny.encoder().state_dict(), strict=False)
    return tiny.save(with_head, base), with_head.eval()


def test_the_bases_own_head_for_hidden_words_is_read_as_the_base_reads_it(tmp_path):
    folder, published = words_head(tmp_path / "published")
    store_heads(folder, tmp_path / "work")
    network = Pretraining(new_joint(folder).network).eval()
    trained = put_into(network.heads, tmp_path / "work")
    assert trained == {"transform.weight", "transform.bias", "norm.weight", "norm.bias", "bias"}
    ids = torch.tensor([[2, 8, 4, 9, 3]])
    with torch.no_grad():
        states = network.encoder(ids).last_hidden_state[0]
        found = network.heads.words(states, network.encoder.get_input_embeddings().weight)
        assert torch.allclose(found, published(ids).logits[0], atol=1e-4)


def test_the_names_of_berts_first_checkpoints_are_known(tmp_path):
    folder, _ = words_head(tmp_path / "published")
    weights = load_file(folder / "model.safetensors")
    older = {
        name.replace("transform.LayerNorm.weight", "transform.LayerNorm.gamma").replace(
            "transform.LayerNorm.bias", "transform.LayerNorm.beta"
        ): weight
        for name, weight in weights.items()
    }
    save_file(older, folder / "model.safetensors")
    store_heads(folder, tmp_path / "work")
    assert len(put_into(Pretraining(new_joint(folder).network).heads, tmp_path / "work")) == 5


def test_a_whole_pretraining_model_brings_the_next_sentence_too_and_markers_are_new(tmp_path):
    published = transformers.BertForPreTraining(tiny.config("bert"))
    folder = tiny.save(published, tmp_path / "published")
    store_heads(folder, tmp_path / "work")
    model = new_joint(folder, {"markers": {"max_terms": 3}})
    network = Pretraining(model.network)
    assert put_into(network.heads, tmp_path / "work") == set(network.heads.state_dict())
    known = len(published.cls.predictions.bias)
    assert torch.equal(network.heads.bias[:known], published.cls.predictions.bias)
    assert not network.heads.bias[known:].any()
    ours, theirs = network.heads.follows.weight, published.cls.seq_relationship.weight
    assert torch.equal(ours[1], theirs[0])  # "follows" is BERT's first class


def test_a_head_the_base_brings_is_not_warmed_up(tmp_path, corpus):
    folder, _ = words_head(tmp_path / "published")
    store_heads(folder, tmp_path / "work")
    kept = load_file(next((tmp_path / "work").glob("*.safetensors")))
    settings = AdaptPhase(**PHASE | {"max_steps": 1, "learning_rate": 1e-12, "head_steps": 3})
    run(settings, new_joint(folder), corpus, Place(tmp_path / "work", seed=7))
    warmed = load_file(tmp_path / "work" / "heads.safetensors")
    assert all(torch.equal(warmed[name], weight) for name, weight in kept.items())
    assert "follows.weight" not in kept  # which alone was warmed up


def test_a_base_without_heads_leaves_none(tmp_path, base):
    store_heads(base, tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_documents_of_the_test_set_are_left_out(tmp_path, joint, corpus):
    (tmp_path / "test.qrels").write_text("".join(f"q 0 {n} 1\n" for n in range(0, 20, 2)))
    settings = AdaptPhase(**PHASE | {"max_steps": 1, "leave_out": ["test.qrels"]})
    outcome = run(settings, joint, corpus, Place(tmp_path / "work", seed=7))
    assert outcome.metrics["documents"] == 9  # of ten that are left, one is held out


def test_a_fresh_encoder_begins_with_random_weights(tmp_path, base, corpus):
    model = new_joint(base)
    before = {name: weight.clone() for name, weight in model.network.encoder.state_dict().items()}
    settings = AdaptPhase(**PHASE | {"max_steps": 1, "learning_rate": 1e-12, "fresh": True})
    run(settings, model, corpus, Place(tmp_path / "work", seed=7))
    name = "embeddings.word_embeddings.weight"
    after = model.network.encoder.state_dict()
    assert not torch.allclose(after[name], before[name], atol=1e-3)
    again = new_joint(base)
    run(settings, again, corpus, Place(tmp_path / "again", seed=7))
    assert torch.allclose(again.network.encoder.state_dict()[name], after[name], atol=1e-9)


def test_a_killed_run_goes_on_to_the_same_weights(tmp_path, base, corpus):
    class Killed(Exception):
        pass

    class Killer:
        def __init__(self, at):
            self.at, self.steps = at, 0

        def begin(self, doing, total, *, done=0):
            self.done = done

        def step(self, items, figures):
            self.steps += 1
            if self.steps == self.at:
                raise Killed

        def say(self, message):
            pass

    settings = AdaptPhase(**PHASE | {"max_steps": 20, "head_steps": 10, "save_every": 4})

    def adapted(folder, watch):
        torch.manual_seed(0)
        model = new_joint(base)
        return run(settings, model, corpus, Place(tmp_path / folder, seed=7, watch=watch))

    whole = adapted("whole", Killer(None))
    for at in (6, 8, 14):  # in the warm-up, in the main part, and there again
        with pytest.raises(Killed):
            adapted("killed", Killer(at))
    again = adapted("killed", Killer(None))
    assert again.metrics == whole.metrics
    weights = again.model.network.state_dict()
    for name, weight in whole.model.network.state_dict().items():
        if not name.startswith("classifier.classifier"):  # its random head is not ours
            assert torch.equal(weights[name], weight)


def test_what_cannot_be_adapted_is_refused(tmp_path, joint, corpus):
    write_corpus(tmp_path / "corpus.jsonl", CORPUS)
    with pytest.raises(SecondlookError, match="ten at the least"):
        run(AdaptPhase(**PHASE), joint, corpus, Place(tmp_path / "work", seed=7))
    vocabulary = {token: i for token, i in joint.tokenizer.get_vocab().items() if token != "[MASK]"}
    joint.tokenizer.model = type(joint.tokenizer.model)(vocabulary, unk_token="[UNK]")
    if joint.tokenizer.token_to_id("[MASK]") is None:
        with pytest.raises(UnusableTokenizer, match="no word can be hidden"):
            run(AdaptPhase(**PHASE), joint, corpus, Place(tmp_path / "other", seed=7))
