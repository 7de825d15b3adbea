"""Files that make a search engine ask a ranker: OpenSearch, Elasticsearch, Vespa.

OpenSearch and Elasticsearch ask a server; Vespa runs the exported ranker itself. No file holds a
secret: `apply.sh` takes the key from the environment.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from secondlook.encode.template import Template
from secondlook.errors import BackendProblem
from secondlook.model.checkpoint import open_checkpoint, read_tokenizer
from secondlook.score.export_folder import check_fresh, choose

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tokenizers import Tokenizer

    from secondlook.encode.settings import EncodeSettings

_QUERY = "how do cats land on their feet"
_DEPTH = 50
_QUERY_TOKENS = 64  # of a query in Vespa, where the ranker itself sets no limit
_KEY = "SECONDLOOK_KEY"  # what apply.sh puts the key in place of


def opensearch(model: str, url: str, field: str) -> dict[str, str]:
    """An ML connector to the server's Cohere API, its model, a search pipeline, a query."""
    name, endpoint = _slug(model), f"{url.rstrip('/')}/v2/rerank"
    files: dict[str, dict[str, Any]] = {
        "settings.json": {
            "persistent": {
                "plugins.ml_commons.only_run_on_ml_node": False,
                "plugins.ml_commons.connector.private_ip_enabled": True,
                "plugins.ml_commons.trusted_connector_endpoints_regex": [
                    f"^{re.escape(endpoint)}$"
                ],
            }
        },
        "connector.json": _connector(model, endpoint),
        "model-group.json": {"name": name, "description": "Rankers of secondlook"},
        "model.json": {
            "name": name,
            "function_name": "remote",
            "model_group_id": "MODEL_GROUP_ID",
            "connector_id": "CONNECTOR_ID",
        },
        "pipeline.json": {
            "description": "The re-ranking",
            "response_processors": [
                {
                    "rerank": {
                        "ml_opensearch": {"model_id": "MODEL_ID"},
                        "context": {"document_fields": [field]},
                    }
                }
            ],
        },
        "query.json": {
            "query": {"match": {field: _QUERY}},
            "size": _DEPTH,
            "ext": {"rerank": {"query_context": {"query_text": _QUERY}}},
        },
    }
    return _written(files) | {"apply.sh": _APPLY_OPENSEARCH.replace("NAME", name)}


def _connector(model: str, endpoint: str) -> dict[str, Any]:
    """What OpenSearch sends to the server, and how it reads the answer."""
    return {
        "name": _slug(model),
        "description": "A secondlook server",
        "version": "1",
        "protocol": "http",
        "parameters": {"model": model},
        "credential": {"key": _KEY},
        "actions": [
            {
                "action_type": "predict",
                "method": "POST",
                "url": endpoint,
                "headers": {
                    "Authorization": "Bearer ${credential.key}",
                    "Content-Type": "application/json",
                },
                "request_body": '{ "model": "${parameters.model}", "query": "${parameters.query}", '
                '"documents": ${parameters.documents} }',
                "pre_process_function": "connector.pre_process.cohere.rerank",
                "post_process_function": "connector.post_process.cohere.rerank",
            }
        ],
    }


def elasticsearch(model: str, url: str, field: str) -> dict[str, str]:
    """A custom inference endpoint to the server's Cohere API, and a retriever that uses it."""
    name = _slug(model)
    files: dict[str, dict[str, Any]] = {
        "inference.json": {
            "service": "custom",
            "service_settings": {
                "url": f"{url.rstrip('/')}/v2/rerank",
                "secret_parameters": {"api_key": _KEY},
                "headers": {
                    "Authorization": "Bearer ${api_key}",
                    "Content-Type": "application/json",
                },
                "request": f'{{"model": {json.dumps(model)}, "query": ${{query}}, '
                '"documents": ${input}}',
                "response": {
                    "json_parser": {
                        "reranked_index": "$.results[*].index",
                        "relevance_score": "$.results[*].relevance_score",
                    }
                },
            },
        },
        "query.json": {
            "retriever": {
                "text_similarity_reranker": {
                    "retriever": {"standard": {"query": {"match": {field: _QUERY}}}},
                    "field": field,
                    "inference_id": name,
                    "inference_text": _QUERY,
                    "rank_window_size": _DEPTH,
                }
            },
            "size": 10,
        },
    }
    return _written(files) | {"apply.sh": _APPLY_ELASTICSEARCH.replace("NAME", name)}


def vespa(source: Path) -> tuple[dict[str, str], Path]:
    """An application package around the ranker's ONNX export, and where that export is.

    Raises BackendProblem for a ranker that reads pairs as a rank profile cannot build them.
    """
    checkpoint = open_checkpoint(source)
    settings = checkpoint.settings.encode
    segments = checkpoint.config.get("type_vocab_size", 0) > 1
    _check_plain(settings, told_apart=segments)
    export = choose(checkpoint.folder, "onnx", "fp32")
    if export is None:
        raise BackendProblem(
            f"{source} has no ONNX export; make one with: secondlook export {source} --to onnx"
        )
    check_fresh(export, checkpoint)
    if export.files != [export.graph]:
        raise BackendProblem(
            f"{source} has its weights beside its ONNX graph, which is above 1.5 GB: a package for "
            "Vespa holds one file. Take a smaller re-ranker, or secondlook serve"
        )
    tokenizer = read_tokenizer(checkpoint.folder)
    start, separator = _frame(tokenizer)
    whole = settings.max_length
    query = settings.max_query_length or min(_QUERY_TOKENS, whole // 2)
    title = settings.title_separator
    text = (
        "input text"
        if title is None
        else f'(input title || "") . {json.dumps(title)} . (input text || "")'
    )
    schema = _SCHEMA.replace("TEXT", text).replace("SEGMENTS\n", _SEGMENTS if segments else "")
    schema = schema.replace("SEGMENT_INPUT\n", _SEGMENT_INPUT if segments else "")
    values = {
        "START": start,
        "SEPARATOR": separator,
        "QUERY_LENGTH": query,
        # so that no pair is cut at its end, where the separator stands
        "DOCUMENT_LENGTH": whole - query - 3,
        "LENGTH": whole,
        "DEPTH": _DEPTH,
    }
    for word, value in values.items():
        schema = re.sub(rf"\b{word}\b", str(value), schema)
    files = {
        "schemas/doc.sd": schema,
        "services.xml": _SERVICES,
        "models/tokenizer.json": _bare(tokenizer),
        "query.json": _written({"": _vespa_query()})[""],
    }
    return files, export.graph


def _vespa_query() -> dict[str, Any]:
    return {
        "yql": "select * from doc where userQuery()",
        "query": _QUERY,
        "input.query(q)": "embed(tokenizer, @query)",
        "ranking.profile": "second-look",
    }


def _check_plain(settings: EncodeSettings, *, told_apart: bool) -> None:
    more = {
        "the warm form": settings.form != "joint",
        "STRM": settings.strm,
        "markers": settings.markers is not None,
        "query types": settings.query_types,
        "windows": settings.windows is not None,
        "prompts": bool(settings.query_prompt or settings.document_prompt),
        "pairs without segments": told_apart and not settings.segments,
    }
    found = [name for name, there in more.items() if there]
    if found:
        raise BackendProblem(
            f"Vespa's rank profiles cannot build what this ranker reads: {', '.join(found)}. "
            "Serve it (secondlook serve) and rerank Vespa's hits in your application"
        )


def _frame(tokenizer: Tokenizer) -> tuple[int, int]:
    """The ids at the start of a pair and behind each text; Vespa knows one of each."""
    frame = Template.read(tokenizer, "joint")
    start, between, after = (run.ids.tolist() for run in (frame.before, frame.between, frame.after))
    if not (len(start) == 1 and len(between) == 1 and between == after):
        raise BackendProblem(
            "Vespa's rank profiles put one special token between the texts, and this ranker's "
            "tokenizer puts others; serve it (secondlook serve) instead"
        )
    return start[0], between[0]


def _bare(tokenizer: Tokenizer) -> str:
    """The tokenizer without special tokens around a text: the rank profile brings them."""
    told = json.loads(tokenizer.to_str())
    return json.dumps(told | {"post_processor": None, "truncation": None, "padding": None})


def _slug(model: str) -> str:
    """A ranker's name as part of an address."""
    return re.sub(r"[^a-z0-9_.-]", "-", model.lower())


def _written(files: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {name: json.dumps(what, indent=2) + "\n" for name, what in files.items()}


_SEND = """#!/bin/sh
# Sends the files beside this one to the cluster, in order.
#   ENGINE_URL=http://localhost:9200 SECONDLOOK_KEY=… sh apply.sh
# CURL_OPTIONS is for authentication and TLS of your cluster: "--user me:secret --cacert ca.pem".
set -eu
cd "$(dirname "$0")"
cluster=${ENGINE_URL:-http://localhost:9200}
send() {
  curl --fail-with-body --silent --show-error ${CURL_OPTIONS:-} --request "$1" "$cluster$2" \\
    --header 'content-type: application/json' --data-binary @-
}
with_key() {  # by the environment: other users of this machine can see a command line
  awk 'at = index($0, "KEY_PLACE") {
         key = ENVIRON["KEY_PLACE"]
         $0 = substr($0, 1, at - 1) (key == "" ? "none" : key) substr($0, at + length("KEY_PLACE"))
       }
       { print }' "$1"
}
""".replace("KEY_PLACE", _KEY)

_APPLY_OPENSEARCH = (
    _SEND
    + """stop() { printf '%s\\n' "$1" >&2; exit 1; }
id() {  # that the answer $2 has under the name $1
  found=$(printf '%s' "$2" | sed -n 's/.*"'"$1"'" *: *"\\([^"]*\\)".*/\\1/p')
  [ -n "$found" ] || stop "no $1 in the answer: $2"
  printf '%s' "$found"
}

# This replaces the cluster's list of trusted endpoints: add yours to settings.json if it has one.
send PUT /_cluster/settings < settings.json
answer=$(with_key connector.json | send POST /_plugins/_ml/connectors/_create) || stop "$answer"
connector=$(id connector_id "$answer")
if answer=$(send POST /_plugins/_ml/model_groups/_register < model-group.json); then
  group=$(id model_group_id "$answer")
else  # in a second run: the refusal names the group of the first
  group=$(printf '%s' "$answer" | sed -n 's/.*model group with ID: \\([A-Za-z0-9_-]*\\).*/\\1/p')
  [ -n "$group" ] || stop "$answer"
fi
answer=$(sed "s|CONNECTOR_ID|$connector|; s|MODEL_GROUP_ID|$group|" model.json |
  send POST '/_plugins/_ml/models/_register?deploy=true') || stop "$answer"
model=$(id model_id "$answer")
sed "s|MODEL_ID|$model|" pipeline.json | send PUT /_search/pipeline/NAME

echo
echo "Now: curl $cluster/INDEX/_search?search_pipeline=NAME -H 'content-type: application/json'" \\
  "-d @query.json"
"""
)

_APPLY_ELASTICSEARCH = (
    _SEND
    + """
with_key inference.json | send PUT /_inference/rerank/NAME

echo
echo "Now: curl $cluster/INDEX/_search -H 'content-type: application/json' -d @query.json"
"""
)

_SERVICES = """<?xml version="1.0" encoding="utf-8" ?>
<services version="1.0">
  <container id="default" version="1.0">
    <component id="tokenizer" type="hugging-face-tokenizer">
      <model path="models/tokenizer.json"/>
    </component>
    <search/>
    <document-api/>
  </container>
  <content id="content" version="1.0">
    <min-redundancy>1</min-redundancy>
    <documents>
      <document type="doc" mode="index"/>
    </documents>
  </content>
</services>
"""

_SCHEMA = """schema doc {
    document doc {
        field title type string {
            indexing: index | summary
            index: enable-bm25
        }
        field text type string {
            indexing: index | summary
            index: enable-bm25
        }
    }
    # The ranker's tokens, made once when a document is fed.
    field tokens type tensor<float>(d0[DOCUMENT_LENGTH]) {
        indexing: TEXT | embed tokenizer | attribute
    }
    fieldset default {
        fields: title, text
    }
    rank-profile first-look {
        first-phase {
            expression: bm25(title) + bm25(text)
        }
    }
    rank-profile second-look inherits first-look {
        inputs {
            query(q) tensor<float>(d0[QUERY_LENGTH])
        }
        onnx-model ranker {
            file: models/ranker.onnx
            input input_ids: input_ids
            input attention_mask: attention_mask
SEGMENT_INPUT
            output logits: logits
        }
        function input_ids() {
            expression: customTokenInputIds(START, SEPARATOR, LENGTH, query(q), attribute(tokens))
        }
        function attention_mask() {
            expression: tokenAttentionMask(LENGTH, query(q), attribute(tokens))
        }
SEGMENTS
        global-phase {
            rerank-count: DEPTH
            expression: onnx(ranker).logits{d0:0}
        }
    }
}
"""

_SEGMENT_INPUT = "            input token_type_ids: token_type_ids\n"

_SEGMENTS = """        function token_type_ids() {
            expression: tokenTypeIds(LENGTH, query(q), attribute(tokens))
        }
"""
