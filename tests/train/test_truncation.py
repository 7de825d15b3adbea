"""Training says how many of its texts are longer than the ranker reads."""

from __future__ import annotations

from dataclasses import replace

import tiny
from invented import invent
from secondlook.encode.settings import EncodeSettings, WindowSettings
from secondlook.progress import Unwatched
from secondlook.train.groups import write_groups
from secondlook.train.recipe import read_recipe
from secondlook.train.run import job, train
from secondlook.train.truncation import texts_cut

RECIPE = """
base = "base"
[encode]
max_length = 24
[data]
train = ["train.parquet"]
[[phases]]
phase = "pointwise"
epochs = 1
batch = 4
"""


class Told(Unwatched):
    def __init__(self):
        self.messages = []

    def say(self, message):
        self.messages.append(message)


def with_a_long_text(groups, words):
    """The first document of every group is so many words long."""
    return [
        replace(
            group,
            documents=(
                replace(group.documents[0], text="sea " * words),
                *(replace(one, text="sea", title="") for one in group.documents[1:]),
            ),
        )
        for group in groups
    ]


def test_cut_texts_are_counted_with_what_they_lose(tmp_path, joint):
    write_groups(tmp_path / "long.parquet", with_a_long_text(invent(200), 124), about={})
    write_groups(tmp_path / "short.parquet", with_a_long_text(invent(200), 1), about={})
    encode = EncodeSettings(max_length=24)
    told = texts_cut(joint.tokenizer, encode, [tmp_path / "long.parquet"])
    assert told.startswith("17% of the training texts are longer than the ranker reads")
    lost = int(told.split("cut short by ")[1].split()[0])
    assert 124 - 24 < lost < 124, "the query and the separators need room too"
    assert texts_cut(joint.tokenizer, encode, [tmp_path / "short.parquet"]) is None
    assert texts_cut(joint.tokenizer, encode, []) is None
    windows = encode.model_copy(update={"windows": WindowSettings(length=8, stride=8)})
    assert texts_cut(joint.tokenizer, windows, [tmp_path / "long.parquet"]) is None


def test_it_is_said_once_and_stands_on_the_card(tmp_path):
    tiny.save(tiny.encoder(), tmp_path / "base")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    write_groups(tmp_path / "train.parquet", with_a_long_text(invent(8), 60), about={})
    told = Told()
    recipe = read_recipe(tmp_path / "recipe.toml")
    train(job(recipe, tmp_path, tmp_path / "ranker", base=tmp_path / "base", watch=told))
    [said] = [message for message in told.messages if "cut short" in message]
    assert said.endswith("; a longer max_length, or windows, under [encode] reads them")
    assert said.split(";")[0] in (tmp_path / "ranker" / "README.md").read_text("utf-8")
