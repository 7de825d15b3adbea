"""Triples as MS MARCO gives them out become groups, by texts or by ids."""

from __future__ import annotations

import os

import pytest

import tiny
from invented import invent
from secondlook.data import TextTriple
from secondlook.errors import MalformedInput, MissingQuery
from secondlook.train.groups import Groups, write_groups
from secondlook.train.recipe import Recipe
from secondlook.train.run import job, prepare_data, train
from secondlook.train.triples import is_up_to_date, triple_groups, write_triple_groups
from secondlook.train.triples_settings import TriplesSettings

TEXTS = [
    ("what is bogue", "bogue is a river", "the sea is deep"),
    ("where is cape fear", "cape fear is a cape", "a fish"),
    ("what is bogue", "bogue is a river", "bogus is not true"),
    ("what is bogue", "bogue inlet", "the sea is deep"),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "triples.tsv").write_text("".join("\t".join(one) + "\n" for one in TEXTS))
    (tmp_path / "ids.tsv").write_text("q1\tp1\tn1\nq2\tp2\tn2\nq1\tp1\tn2\n")
    (tmp_path / "queries.tsv").write_text("q1\twhat is bogue\nq2\twhere is cape fear\n")
    texts = {"p1": "bogue is a river", "p2": "a cape", "n1": "the sea", "n2": "a fish"}
    (tmp_path / "collection.tsv").write_text("".join(f"{i}\t{t}\n" for i, t in texts.items()))
    return tmp_path


def shown(groups):
    return [(g.query.text, [d.text for d in g.documents], g.labels) for g in groups]


def test_every_triple_is_a_group_as_monobert_reads_them(folder):
    groups = list(triple_groups(TriplesSettings(file="triples.tsv"), folder))
    assert shown(groups) == [(query, [yes, no], (1, -1)) for query, yes, no in TEXTS]
    assert len({group.query.id for group in groups}) == 4  # else equal queries would come together
    assert groups[0].documents[1].id == groups[3].documents[1].id  # the same text


def test_by_query_positives_and_other_passages_come_together(folder):
    settings = TriplesSettings(file="triples.tsv", by_query=True)
    assert shown(triple_groups(settings, folder)) == [
        (
            "what is bogue",
            ["bogue is a river", "bogue inlet", "the sea is deep", "bogus is not true"],
            (1, 1, -1, -1),
        ),
        ("where is cape fear", ["cape fear is a cape", "a fish"], (1, -1)),
    ]


def test_a_query_keeps_a_fair_sample_of_its_other_passages(folder):
    lines = (f"q\tyes\tno {number}\n" for number in range(50))
    (folder / "many.tsv").write_text("".join(lines).replace("q\t", "a query\t"))
    kept = {}
    for seed in range(40):
        settings = TriplesSettings(file="many.tsv", by_query=True, passages=5, seed=seed)
        [group] = triple_groups(settings, folder)
        assert len(group.documents) == 6
        for document in group.documents[1:]:
            place = int(document.text.split()[1]) // 10
            kept[place] = kept.get(place, 0) + 1
    assert sorted(kept) == [0, 1, 2, 3, 4]
    assert min(kept.values()) > 20  # 40 each on average


def test_a_share_is_drawn_and_the_same_again(folder):
    (folder / "many.tsv").write_text("".join(f"a query {n}\tyes\tno\n" for n in range(1000)))
    settings = TriplesSettings(file="many.tsv", share=0.1)
    drawn = shown(triple_groups(settings, folder))
    assert 70 < len(drawn) < 130
    assert shown(triple_groups(settings, folder)) == drawn


def test_ids_are_looked_up(folder):
    settings = TriplesSettings(file="ids.tsv", queries="queries.tsv", corpus="collection.tsv")
    groups = list(triple_groups(settings, folder))
    assert shown(groups)[2] == ("what is bogue", ["bogue is a river", "a fish"], (1, -1))
    assert [document.id for document in groups[2].documents] == ["p1", "n2"]


def test_ids_without_texts_are_refused_and_an_unknown_query_is_named(folder):
    with pytest.raises(MalformedInput, match="holds ids; name the files"):
        list(triple_groups(TriplesSettings(file="ids.tsv"), folder))
    (folder / "queries.tsv").write_text("q1\twhat is bogue\n")
    settings = TriplesSettings(file="ids.tsv", queries="queries.tsv", corpus="collection.tsv")
    with pytest.raises(MissingQuery, match="q2"):
        list(triple_groups(settings, folder))
    with pytest.raises(MalformedInput, match="not there"):
        list(triple_groups(TriplesSettings(file="none.tsv"), folder))


def test_the_group_file_is_made_once_for_the_same_settings(folder):
    settings = TriplesSettings(file="triples.tsv")
    path = write_triple_groups(settings, folder)
    written = path.stat().st_mtime_ns
    assert write_triple_groups(settings, folder) == path
    assert path.stat().st_mtime_ns == written
    other = write_triple_groups(TriplesSettings(file="triples.tsv", by_query=True), folder)
    assert (len(Groups([path])), len(Groups([other]))) == (4, 2)


def test_triples_that_were_edited_are_read_again(folder):
    settings = TriplesSettings(file="ids.tsv", queries="queries.tsv", corpus="collection.tsv")
    path = write_triple_groups(settings, folder)
    first = path.read_bytes()
    (folder / "collection.tsv").write_text(
        (folder / "collection.tsv").read_text().replace("a cape", "a cape in the sea")
    )
    assert not is_up_to_date(settings, folder)
    assert write_triple_groups(settings, folder) == path
    assert is_up_to_date(settings, folder)
    assert Groups([path])[1].documents[0].text == "a cape in the sea"
    (folder / "collection.tsv").write_text(
        (folder / "collection.tsv").read_text().replace("a cape in the sea", "a cape")
    )
    os.utime(folder / "collection.tsv", ns=(0, 0))
    write_triple_groups(settings, folder)
    assert path.read_bytes() == first  # when they were made is no part of it


def test_a_group_file_goes_on_without_the_triples_it_was_made_of(folder):
    settings = TriplesSettings(file="triples.tsv")
    path = write_triple_groups(settings, folder)
    (folder / "triples.tsv").unlink()
    assert write_triple_groups(settings, folder) == path


def test_texts_from_a_folder_of_beirs_layout_are_looked_at_as_well(folder):
    (folder / "beir").mkdir()
    texts = {"corpus": {"p1": "bogue", "p2": "cape", "n1": "sea", "n2": "fish"}}
    texts["queries"] = {"q1": "what", "q2": "where"}
    for kind, rows in texts.items():
        lines = [f'{{"_id": "{name}", "text": "{text}"}}\n' for name, text in rows.items()]
        (folder / "beir" / f"{kind}.jsonl").write_text("".join(lines))
    settings = TriplesSettings(file="ids.tsv", queries="beir", corpus="beir")
    write_triple_groups(settings, folder)
    assert is_up_to_date(settings, folder)
    queries = folder / "beir" / "queries.jsonl"
    queries.write_text(queries.read_text().replace("where", "where is it"))
    assert not is_up_to_date(settings, folder)


def test_triples_of_ir_datasets_become_a_group_file_in_the_data_folder(tmp_path, monkeypatch):
    triples = [TextTriple(*texts) for texts in TEXTS]
    monkeypatch.setattr(
        "secondlook.train.triples.read_triples", {"irds:msmarco-passage/train": triples}.get
    )
    path = write_triple_groups(TriplesSettings(file="irds:msmarco-passage/train"), tmp_path / "new")
    assert path.parent == tmp_path / "new"
    assert len(Groups([path])) == 4


def test_a_recipe_learns_from_triples_directly(folder):
    tiny.save(tiny.encoder(), folder / "base")
    write_groups(folder / "dev.parquet", invent(4), about={})
    recipe = Recipe.model_validate(
        {
            "base": "base",
            "data": {"triples": {"file": "triples.tsv"}, "validation": "dev.parquet"},
            "phases": [{"phase": "pointwise", "max_steps": 2, "batch": 2}],
        }
    )
    work = job(recipe, folder, folder / "out", base=folder / "base", device="cpu")
    settings = train(work)
    [phase] = settings.lineage.phases
    assert phase.metrics["queries"] == 4
    assert list(phase.data) == [work.data.train[0].name]
    (folder / "triples.tsv").write_text("\t".join(TEXTS[0]) + "\n")
    prepare_data(work)
    assert len(Groups(work.data.train)) == 1
