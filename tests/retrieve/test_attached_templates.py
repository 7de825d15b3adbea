"""How a foreign index is read: query and text templates, proposals, options, changes."""

from __future__ import annotations

import json
from itertools import product

import pytest

from foreign_index import MAPPING, TEMPLATES, products
from secondlook.errors import (
    EngineProblem,
    IndexProblem,
    UnknownName,
    VanishedDocuments,
    WrongArgument,
)
from secondlook.retrieve.attached import AttachedIndex
from secondlook.retrieve.attached_mapping import IndexMapping, IndexState
from secondlook.retrieve.attached_proposal import oddities, propose, refuse_unknown_fields
from secondlook.retrieve.attached_query import QueryTemplate, StoredTemplate
from secondlook.retrieve.attached_reader import IndexReader, PointInTime
from secondlook.retrieve.attached_settings import AttachedSettings
from secondlook.retrieve.attached_text import TextTemplate
from secondlook.retrieve.attached_watch import card_of
from secondlook.retrieve.folder import write_card
from secondlook.retrieve.search_options import SearchOptions, searched_with
from secondlook.types import Document, Query
from secondlook.workflows.attach import attach_index

NONE = SearchOptions()
MATCH = {"query": {"match": {"name": "{{query}}"}}}
SHOP = IndexMapping.of_mapping({"products-1": {"mappings": MAPPING}})
SOURCES = [source for _, source in products(40)]


def rendered(body, text="cats", k=5, options=NONE, defaults=None):
    return json.loads(QueryTemplate(body, defaults).render(text, k, options))


@pytest.mark.parametrize(
    "text",
    [
        'say "cats"',
        "back\\slash",
        '"}}, "size": 9',
        "{{query}}",
        "new\nline",
        "ünï 🦓",
        "",
        "\ud83e",
    ],
)
def test_no_text_of_a_query_can_change_the_body(text):
    body = {
        "query": {"bool": {"must": {"match": {"a": "{{query}}"}}, "filter": {"term": {"b": "x"}}}},
        "min_score": 0.1,
    }
    found = rendered(body, text)
    assert found["query"]["bool"]["must"]["match"]["a"] == text
    assert found["query"]["bool"]["filter"] == {"term": {"b": "x"}}
    assert (found["size"], found["min_score"]) == (5, 0.1)
    inside = rendered({"query": {"query_string": {"query": 'title:"{{query}}"^2'}}}, text)
    assert inside["query"]["query_string"]["query"] == f'title:"{text}"^2'


def test_values_keep_their_types_and_defaults_stand_in():
    body = {
        "query": {"match": {"name": "{{query}}"}},
        "post_filter": {"terms": {"brand": "{{ brands }}"}},
        "knn": {"k": "{{size}}", "label": "top {{size}} of {{shop}}"},
    }
    options = SearchOptions(parameters={"brands": ["a", "b"]})
    found = rendered(body, k=7, options=options, defaults={"shop": "ours"})
    assert found["post_filter"] == {"terms": {"brand": ["a", "b"]}}
    assert found["knn"] == {"k": 7, "label": "top 7 of ours"}
    template = QueryTemplate(body, {"shop": "ours"})
    assert template.parameters == ("brands", "shop")
    with pytest.raises(WrongArgument, match="needs a value for 'brands'"):
        template.render("cats", 1, NONE)
    with pytest.raises(UnknownName, match="did you mean 'brands'"):
        template.render("cats", 1, SearchOptions(parameters={"brand": "a"}))
    with pytest.raises(WrongArgument, match="takes a text or a number"):
        template.render("cats", 1, SearchOptions(parameters={"brands": [], "shop": ["a"]}))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"query": {"match_all": {}}}, "has no"),
        ({"query": {"match": {"{{query}}": "x"}}, "a": "{{query}}"}, "not for a key"),
        ({"query": {"match": {"a": "{{#toJson}}query{{/toJson}}"}}}, "Mustache"),
    ],
)
def test_templates_that_cannot_work_are_refused(body, problem):
    with pytest.raises(WrongArgument, match=problem):
        QueryTemplate(body)


def test_filters_go_around_the_query_or_where_the_template_says():
    red = {"term": {"colour": "red"}}
    narrowed = rendered(TEMPLATES["decay"], options=SearchOptions((red,)))
    own = rendered(TEMPLATES["decay"])
    assert narrowed["query"] == {"bool": {"must": [own["query"]], "filter": [red]}}
    placed = {"query": {"bool": {"must": MATCH["query"], "filter": "{{filters}}"}}}
    assert rendered(placed)["query"]["bool"]["filter"] == []
    found = rendered(placed, options=SearchOptions((red,)))
    assert found["query"]["bool"]["filter"] == [red]
    with pytest.raises(WrongArgument, match="no query to put filters around"):
        rendered({"knn": {"v": "{{query}}"}}, options=SearchOptions((red,)))
    with pytest.raises(WrongArgument, match="takes parameters, not filters"):
        StoredTemplate("shop").render("cats", 5, SearchOptions((red,)))


def test_filters_of_a_knn_search_go_around_the_query_as_well():
    red = {"term": {"colour": "red"}}
    knn = {"field": "v", "query_vector": [1, 0], "k": 5, "filter": "{{filters}}"}
    found = rendered({**MATCH, "knn": knn}, options=SearchOptions((red,)))
    own = {"match": {"name": "cats"}}
    assert found["query"] == {"bool": {"must": [own], "filter": [red]}}
    assert found["knn"]["filter"] == [red]
    without = rendered({**MATCH, "knn": knn})
    assert (without["query"], without["knn"]["filter"]) == (own, [])


def test_a_knn_search_that_filters_would_not_narrow_is_refused_with_filters():
    body = {**MATCH, "knn": {"field": "v", "query_vector": [1, 0], "k": 5}}
    assert rendered(body)["knn"]["k"] == 5
    with pytest.raises(WrongArgument, match=r'write "filter": "\{\{filters\}\}" into knn'):
        rendered(body, options=SearchOptions(({"term": {"colour": "red"}},)))


def test_a_placeholder_may_have_a_name_in_any_language():
    body = {"query": {"bool": {"must": MATCH["query"], "filter": {"term": {"Größe": "{{größe}}"}}}}}
    assert QueryTemplate(body).parameters == ("größe",)
    found = rendered(body, options=SearchOptions(parameters={"größe": 42}))
    assert found["query"]["bool"]["filter"] == {"term": {"Größe": 42}}


@pytest.mark.parametrize("braces", ["{{my-param}}", "{{ user.brand }}", "of {{a b}}", "{{}}"])
def test_braces_that_are_no_placeholder_are_refused(braces):
    body = {"query": {"bool": {"must": MATCH["query"], "filter": {"term": {"brand": braces}}}}}
    with pytest.raises(WrongArgument, match="is no placeholder"):
        QueryTemplate(body)
    assert rendered({**MATCH, "highlight": {"pre_tags": [braces]}})  # which is not sent


def test_what_changes_no_ranking_is_not_sent():
    body = {**MATCH, "aggs": {"b": {}}, "size": 50, "from": 20, "highlight": {}, "min_score": 1}
    template = QueryTemplate(body)
    assert set(json.loads(template.render("cats", 5, NONE))) == {
        *MATCH, "min_score", "size", "track_total_hits",
    }  # fmt: skip
    assert template.ignored == ("aggs", "size", "from", "highlight")


@pytest.mark.parametrize(
    ("sort", "by_score"),
    [
        (None, True),
        ("_score", True),
        ([{"_score": "desc"}, "a"], True),
        ([{"price": "asc"}], False),
    ],
)
def test_whether_hits_are_ordered_by_score_is_known(sort, by_score):
    assert QueryTemplate({**MATCH, **({"sort": sort} if sort else {})}).by_score is by_score


@pytest.mark.parametrize(
    ("template", "source", "text"),
    [
        ("{{name}}. {{description}}", {"name": "Boot", "description": "Warm."}, "Boot. Warm."),
        ("{{name}}. {{description}}", {"name": "Boot"}, "Boot"),
        ("{{name}}. {{description}}", {"description": "Warm."}, "Warm."),
        ("{{name}}. {{description}}", {"name": None, "description": ""}, ""),
        ("{{name}} ({{brand}})", {"name": "Boot", "brand": "acme"}, "Boot (acme)"),
        ("{{name}} ({{brand}})", {"name": "Boot"}, "Boot"),
        ("Brand: {{brand}}, tags: {{tags}}", {"tags": ["a", "b"]}, "tags: a, b"),
        ("{{a.b}}", {"a": {"b": [1, 2.5, True, None]}}, "1, 2.5, true"),
        ("{{a.b}}", {"a.b": "dotted"}, "dotted"),
        ("{{a.b.c}}", {"a": [{"b.c": "x"}, {"b": {"c": "y"}}, {"b": 3}]}, "x, y"),
        ("{{a}}", {"a": {"b": "an object has no text"}}, ""),
        (
            "{{name}}: {{#attributes}}{{name}}: {{value}}{{/attributes}}",
            {
                "name": "Boot",
                "attributes": [{"name": "size", "value": 40}, {"value": "red"}, {"name": "sole"}],
            },
            "Boot: size: 40, red, sole",
        ),
        ("{{#a}}{{#b}}{{c}}{{/b}}{{/a}}", {"a": {"b": [{"c": 1}, {"c": 2}]}}, "1, 2"),
    ],
)
def test_texts_are_made_of_fields_lists_and_objects(template, source, text):
    assert TextTemplate.parse(template).text(source) == text


@pytest.mark.parametrize("template", ["", "no field", "{{#a}}{{b}}", "{{a}}{{/a}}"])
def test_text_templates_that_cannot_work_are_refused(template):
    with pytest.raises(WrongArgument):
        TextTemplate.parse(template)


def test_a_text_template_names_its_fields():
    template = TextTemplate.parse("{{name}} {{#attributes}}{{name}} {{value}}{{/attributes}}")
    assert template.paths == ("name", "attributes.name", "attributes.value")


def test_a_shop_is_read_by_its_mapping_and_documents():
    proposal = propose(SHOP, SOURCES)
    assert proposal["title"] == "{{name}}"
    assert proposal["text"].startswith("{{description}}")
    assert proposal["signals"] == ("price", "released")
    about = proposal["query"]["query"]["multi_match"]
    assert about["fields"] == ["description", "name"]  # neither nested ones nor sub-fields
    assert propose(IndexMapping(("i",), {}), []) == {"signals": ()}


def test_capabilities_of_fields_stand_in_for_the_mapping():
    caps = {
        "indices": ["products-1"],
        "fields": {
            "_id": {"_id": {"type": "_id"}},
            "name": {"text": {"type": "text"}},
            "name.raw": {"keyword": {"type": "keyword"}},
            "attributes": {"nested": {"type": "nested"}},
            "attributes.value": {"text": {"type": "text"}},
            "price": {"float": {"type": "float"}, "long": {"type": "long"}},
        },
    }
    mapping = IndexMapping.of_capabilities(caps)
    assert mapping.indices == ("products-1",)
    assert mapping.fields["name.raw"].subfield
    assert mapping.fields["attributes.value"].nested
    assert not mapping.fields["name"].subfield
    assert (mapping.conflicts, mapping.whole) == (("price",), False)
    assert propose(mapping, SOURCES)["title"] == "{{name}}"


def settings(**changes):
    about = {
        "urls": ("http://localhost:9200",),
        "name": "products",
        "query": MATCH,
        "text": "{{name}}. {{description}}",
        "seen": IndexState.of(SHOP, 40),
    }
    return AttachedSettings(**(about | changes))


def test_what_is_unusual_is_said():
    twice = IndexMapping.of_mapping(
        {"a": {"mappings": MAPPING}, "b": {"mappings": {"properties": {"price": {"type": "long"}}}}}
    )
    body = {**MATCH, "sort": [{"price": "asc"}], "aggs": {}}
    texts = [Document("1", "<p>bold</p>"), Document("2", ""), *[Document("3", "same")] * 2]
    said = " ".join(
        oddities(settings(query=body, text="{{name}} {{extra}}"), twice, [{"name": "a"}] * 4, texts)
    )
    for part in (
        "stands for 2 indices (a, b)", "different types in these indices: price", "1/rank",
        "not sent: aggs", "nested objects are not searched by this query: attributes.value",
        "extra is empty in 4 of 4", "1 of 4 documents looked at have no text",
        "1 of 4 texts hold HTML", "1 of 4 texts repeat",
    ):  # fmt: skip
        assert part in said
    assert "1 of 4 documents looked at have the id of another one" in said
    plain = [Document(str(n), f"text {n}") for n in range(40)]
    query = {
        "query": {
            "nested": {"path": "attributes", "query": {"match": {"attributes.value": "{{query}}"}}}
        }
    }
    assert list(oddities(settings(query=query), SHOP, SOURCES, plain)) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"text": "{{nmae}}"}, "has no field 'nmae', or this user may not read it"),
        ({"id": "description"}, "is of type text, by which no document can be asked for"),
        ({"signals": ("prize",)}, "has no field 'prize'"),
    ],
)
def test_fields_that_are_not_there_are_refused(changes, problem):
    with pytest.raises(IndexProblem, match=problem):
        refuse_unknown_fields(settings(**changes), SHOP, SOURCES)
    unmapped = settings(text="{{extra.field}}")  # which documents hold all the same
    refuse_unknown_fields(unmapped, SHOP, [{"extra": {"field": 1}}])


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "_all"}, {"name": "a/b"}, {"name": "a?b"}, {"query": None},
        {"template": "stored"}, {"parameters": {"unknown": 1}}, {"urls": ()},
    ],
)  # fmt: skip
def test_settings_that_contradict_themselves_are_refused(changes):
    with pytest.raises((ValueError, UnknownName)):
        settings(**changes)


@pytest.mark.parametrize("name", ["_all", "_x", "", "-a", "..", "a b"])
def test_a_name_that_no_index_has_is_refused_before_the_cluster_is_asked(tmp_path, name):
    with pytest.raises(WrongArgument, match="is no name of an index"):
        attach_index(tmp_path / "shop", index=name, url="http://nowhere.invalid:9200")
    assert not (tmp_path / "shop").exists()


def test_an_index_is_attached_again_over_vectors_in_the_making(tmp_path):
    write_card(tmp_path, card_of(settings(), IndexState.of(SHOP, 40)))
    (tmp_path / ".vectors.half").mkdir()
    (tmp_path / "vectors").mkdir()
    given = {"index": "products", "url": "no url", "replace": True}
    with pytest.raises(EngineProblem, match="no url"):  # the next check, so that this one passed
        attach_index(tmp_path, **given)
    (tmp_path / "photos").mkdir()
    with pytest.raises(IndexProblem, match="holds something else"):
        attach_index(tmp_path, **given)


def test_a_changed_index_is_told_by_what_has_changed():
    before = IndexState(documents=10, indices=("a",), fields={"name": "text", "price": "long"})
    after = IndexState(documents=12, indices=("b",), fields={"name": "keyword", "new": "text"})
    assert before.changes(before) == []
    assert before.changes(after) == [
        "12 documents, before 10",
        "it stands for b, before for a",
        "new fields: new",
        "fields that are gone, or hidden from this user: price",
        "fields of another type: name",
    ]


@pytest.mark.parametrize(
    "clause",
    [
        {"script": {"script": "1"}},
        {"query_string": {"query": "*"}},
        {"regexp": {"a": ".*"}},
        {"terms": {"a": {"index": "secrets", "id": "1", "path": "x"}}},
        {"bool": {"filter": [{"script": {}}]}},
        {"bool": {"must": {"wildcard": {"a": "*"}}}},
        {"nested": {"path": "a", "query": {"script": {}}}},
        {"nested": {"path": "a", "query": {"term": {"b": 1}}, "inner_hits": {}}},
        {"term": {}, "range": {}},
        "text",
    ],
)
def test_strangers_may_filter_by_plain_conditions_only(clause):
    with pytest.raises(WrongArgument):
        SearchOptions((clause,)).refuse_unsafe()


def test_plain_conditions_and_values_pass():
    term = {"term": {"brand": "acme"}}
    clauses = (
        term,
        {"bool": {"must_not": term, "should": [term], "minimum_should_match": 1}},
        {"nested": {"path": "a", "query": {"range": {"a.b": {"gte": 1}}}}},
        {"terms": {"brand": ["a", "b"]}},
    )
    SearchOptions(clauses, {"a": 1, "b": ["x", 2.0], "c": True}).refuse_unsafe()
    with pytest.raises(WrongArgument, match="takes a value or a list"):
        SearchOptions(parameters={"a": {"match_all": {}}}).refuse_unsafe()


def test_engines_that_take_no_options_say_so():
    index = object()
    assert searched_with(index, NONE) is index
    with pytest.raises(WrongArgument, match="are for attached indexes"):
        searched_with(index, SearchOptions(routing="a"))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/products"), ("DELETE", "/products"), ("POST", "/products/_doc"),
        ("POST", "/products/_bulk"), ("POST", "/products/_refresh"), ("POST", "/_aliases"),
        ("POST", "/products/_update_by_query"), ("POST", "/products/_delete_by_query"),
        ("PUT", "/products/_mapping"), ("PUT", "/_scripts/a"), ("POST", "/_bulk"),
        ("GET", "/products/../_cluster"), ("POST", "/_reindex"), ("DELETE", "/_search/scroll"),
    ],
)  # fmt: skip
def test_a_request_that_writes_cannot_be_sent(method, path):
    class Cluster:
        def ask(self, *_, **__):
            raise ValueError("it was sent")

    with pytest.raises(AssertionError, match="not a reading request"):
        IndexReader(Cluster(), "products").send(method, path)
    with pytest.raises(ValueError, match="it was sent"):
        IndexReader(Cluster(), "products").send("POST", "/products/_search")


class OfManyShards(IndexReader):
    """Documents whose only sort value, `_seq_no`, each shard counts for itself."""

    def __init__(self, shards, documents):
        super().__init__(None, "logs-*")
        pairs = product(range(documents), range(shards))
        self.ids = [(number, f"{number}-{shard}") for number, shard in pairs]
        self.asked = 0

    def search(self, body, **_):
        self.asked += 1
        assert self.asked < 50
        (after,) = body.get("search_after", [-1])
        later = [{"_id": id_, "sort": [number]} for number, id_ in self.ids if number > after]
        return later[: body["size"]]

    def read(self, size):
        pages = self.pages(PointInTime("p"), [], dict, size)
        return [hit["_id"] for page in pages for hit in page]


@pytest.mark.parametrize("shards", [1, 3, 4, 5, 13])
def test_documents_of_as_many_shards_as_a_page_has_hits_are_all_read_once(shards):
    reader = OfManyShards(shards, documents=3)
    assert reader.read(size=4) == [id_ for _, id_ in reader.ids]


def test_more_shards_than_the_largest_page_has_hits_are_refused(monkeypatch):
    monkeypatch.setattr("secondlook.retrieve.attached_reader._LARGEST_PAGE", 10)
    with pytest.raises(EngineProblem, match="cannot be read page by page"):
        OfManyShards(10, documents=2).read(size=4)
    assert len(OfManyShards(9, documents=2).read(size=4)) == 18


class Shop:
    """A cluster with ten products, of each five documents that share its number."""

    route = None

    def __init__(self):
        self.asked = []
        self.stored = [
            {
                "_id": f"{product}-{size}",
                "_index": "products-1",
                "_score": 10.0 - product,
                "_source": {"number": f"P{product}", "name": f"shoe {product}"},
            }
            for product in range(10)
            for size in range(5)
        ]

    def with_patience(self, _):
        return self

    def ask(self, _method, _path, body, **_options):
        body = json.loads(body) if isinstance(body, str) else body
        self.asked.append(body)
        wanted = body["query"].get("terms", {}).get("number")
        hits = [h for h in self.stored if not wanted or h["_source"]["number"] in wanted]
        if "collapse" in body:
            assert body["collapse"] == {"field": "number"}
            hits = list({hit["_source"]["number"]: hit for hit in hits}.values())
        return {"_shards": {"total": 1, "successful": 1}, "hits": {"hits": hits[: body["size"]]}}


def test_every_text_is_found_where_documents_share_an_id():
    mapping = {"properties": {"number": {"type": "keyword"}, "name": {"type": "text"}}}
    state = IndexState.of(IndexMapping.of_mapping({"products-1": {"mappings": mapping}}), 50)
    shop = Shop()
    index = AttachedIndex(settings(id="number", text="{{name}}", seen=state), shop, state)
    (found,) = index.retrieve([Query("1", "shoe")], 50)
    numbers = [hit.doc_id for hit in found.hits]
    assert numbers == [f"P{n}" for n in range(10)]
    assert [document.text for document in index.fetch(numbers)] == [f"shoe {n}" for n in range(10)]
    shop.stored = shop.stored[::5]  # each once
    shop.asked.clear()
    with pytest.raises(VanishedDocuments) as gone:
        index.fetch([*numbers, "P99"])
    assert gone.value.doc_ids == ("P99",)
    assert len(shop.asked) == 1  # all that there is of them came with the first answer
