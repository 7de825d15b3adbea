"""Labels, labelled files, and the classifier."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from secondlook.encode.query_types import TYPES, read_labelled, read_type
from secondlook.encode.type_classifier import TypeClassifier
from secondlook.errors import MalformedInput, UnknownName

ASKED = {
    "who wrote the play {}": "person",
    "who was the king of {}": "person",
    "where is {}": "location",
    "in which country lies {}": "location",
    "how many people live in {}": "numeric",
    "how far is it to {}": "numeric",
    "what is the meaning of {}": "description",
    "why does {} matter": "description",
}
NAMES = ["ardenia", "belloq", "corvane", "delmora", "estrin", "farwell", "gandria", "holm"]


def accuracy(classifier, labelled):
    predicted = classifier.predict([query for query, _ in labelled])
    return np.mean([guess == label for guess, (_, label) in zip(predicted, labelled, strict=True)])


@pytest.fixture(scope="module")
def classifier():
    return TypeClassifier.train(
        [(query.format(name), label) for query, label in ASKED.items() for name in NAMES[:4]]
    )


def test_labels_of_ms_marco_and_of_trec_are_the_same_five():
    assert [read_type(label) for label in ("PERSON", "Location", " entity ", "num", "HUM")] == [
        *("person", "location", "entity", "numeric", "person")
    ]
    assert {read_type(label) for label in ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")} == set(
        TYPES
    )
    with pytest.raises(UnknownName, match="query type"):
        read_type("colour")


def test_it_learns_how_a_question_asks_not_what_about(classifier):
    unseen = [(query.format(name), label) for query, label in ASKED.items() for name in NAMES[4:]]
    assert accuracy(classifier, unseen) == 1


def test_any_text_gets_a_type(classifier):
    for text in "", "?", "\ud800", "東京", "x" * 10_000:
        assert classifier.predict([text])[0] in classifier.labels
    assert classifier.predict([]) == []


def test_what_was_saved_predicts_the_same(classifier, tmp_path):
    classifier.save(tmp_path / "types.safetensors")
    loaded = TypeClassifier.load(tmp_path / "types.safetensors")
    queries = [query.format("ardenia") for query in ASKED]
    assert loaded.predict(queries) == classifier.predict(queries)
    assert [path.name for path in tmp_path.iterdir()] == ["types.safetensors"]


def test_files_that_are_no_classifier_are_refused(tmp_path):
    path = tmp_path / "types.safetensors"
    with pytest.raises(MalformedInput, match="secondlook types train"):
        TypeClassifier.load(path)
    path.write_bytes(b"not tensors")
    with pytest.raises(MalformedInput, match="no query-type classifier"):
        TypeClassifier.load(path)
    save_file({"weights": np.zeros((4, 5), np.float32)}, path)
    with pytest.raises(MalformedInput, match="train it anew"):
        TypeClassifier.load(path)
    save_file({"other": np.zeros((4, 5), np.float32)}, path)
    with pytest.raises(MalformedInput, match="no query-type classifier"):
        TypeClassifier.load(path)


def test_labelled_files_of_either_layout_are_read(tmp_path):
    path = tmp_path / "labelled.tsv"
    path.write_text('query-id\ttype\tquery\n1\tPERSON\twho was "he\n', encoding="utf-8")
    assert read_labelled(path) == [('who was "he', "PERSON")]
    path.write_text("coarse\tfine\tquestion\nHUM\tind\tWho ?\n", encoding="utf-8")
    assert read_labelled(path) == [("Who ?", "HUM")]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        (b"type\tquery\nNUM\thow many\n\n", "how many"),
        (b"type\tquery\n\nNUM\thow many", "how many"),
        (b"\xef\xbb\xbftype\tquery\nNUM\thow many\n", "how many"),
        (b"type\tquery\r\nNUM\thow many\r\n", "how many"),
        (b"type\tquery\nNUM\t" + b"how " * 50_000 + b"\n", "how " * 50_000),
    ],
    ids=["blank last line", "blank line", "byte order mark", "CRLF", "long"],
)
def test_blank_lines_byte_order_marks_and_long_queries_are_read(tmp_path, content, query):
    path = tmp_path / "labelled.tsv"
    path.write_bytes(content)
    assert read_labelled(path) == [(query, "NUM")]


def test_a_file_that_is_not_utf_8_is_refused_with_the_line(tmp_path):
    path = tmp_path / "labelled.tsv"
    path.write_bytes("type\tquery\nNUM\thow many\nLOC\twhich café\n".encode("latin-1"))
    with pytest.raises(MalformedInput, match=":3: is not UTF-8"):
        read_labelled(path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", ":1: the first line"),
        ("id\tquery\n", ":1: the first line"),
        ("type\tquery\n", "no labelled queries"),
        ("type\tquery\nNUM\thow many\nNUM\n", ":3: 1 columns, not 2"),
    ],
)
def test_other_files_are_refused_with_the_line(tmp_path, content, problem):
    path = tmp_path / "labelled.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(MalformedInput, match=problem):
        read_labelled(path)


def read_mapped(path):
    return [(query, read_type(label)) for query, label in read_labelled(path)]


@pytest.mark.real
def test_real_questions_reach_the_goals(shared_data):
    folder = shared_data / "query-types"
    training = [
        *read_mapped(folder / "msmarco-qa.train.tsv"),
        *read_mapped(folder / "trec-qc.train.tsv"),
    ]
    classifier = TypeClassifier.train(training)
    assert accuracy(classifier, read_mapped(folder / "msmarco-qa.test.tsv")) >= 0.85
    assert accuracy(classifier, read_mapped(folder / "trec-qc.test.tsv")) >= 0.88


@pytest.mark.slow
def test_trecs_own_six_labels_reach_the_goal_too(shared_data):
    folder = shared_data / "query-types"
    classifier = TypeClassifier.train(read_labelled(folder / "trec-qc.train.tsv"))
    assert accuracy(classifier, read_labelled(folder / "trec-qc.test.tsv")) >= 0.88
