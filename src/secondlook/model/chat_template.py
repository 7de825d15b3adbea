"""What a decoder's chat template puts around a query and a document. Nothing here reads files.

The template is a program in Jinja that comes with the model. It runs in Jinja's sandbox, once, when
the folder is opened: what stands around the texts is all that is kept of it. A template that does
more with a text than to put it somewhere is refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from secondlook.encode.settings import ChatSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

QWEN3_RERANKER = """\
<|im_start|>system
Judge whether the Document meets the requirements based on the Query and the Instruct provided. \
Note that the answer can only be "yes" or "no".<|im_end|>
<|im_start|>user
<Instruct>: {{ messages | selectattr("role", "eq", "system") | map(attribute="content") | first \
| default("Given a web search query, retrieve relevant passages that answer the query") }}
<Query>: {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}
<Document>: {{ messages | selectattr("role", "eq", "document") | map(attribute="content") \
| first }}<|im_end|>
<|im_start|>assistant
<think>

</think>

{# #}"""
"""The prompt that Qwen3-Reranker was published with, for copies whose own template is for chats."""

Format = Literal["flat", "structured"]
"""Whether a message's content is a text, or a list that has one."""
_STRUCTURED = ("content[0]", ".type", "'type'", '"type"', "message.content[")
"""By what sentence-transformers tells a template that wants lists."""
_FLAT_FAMILIES = ("apertus", "deepseek_v3", "gpt_oss", "seed_oss")

_PROBES = (("bogue", "tide"), ("", ""), ("  a b\n", "\n<c> & 'd' \"e\"  "))
_QUERY, _DOCUMENT = "\ue000query\ue001", "\ue000document\ue001"


def message_format(template: str, model_type: str) -> Format:
    """The format that sentence-transformers infers for a template."""
    if model_type not in _FLAT_FAMILIES and any(sign in template for sign in _STRUCTURED):
        return "structured"
    return "flat"


def frame_of(
    template: str, kind: Format, prompt: str, variables: Mapping[str, Any]
) -> ChatSettings:
    """What stands before, between and behind the texts; `prompt` is the system's message.

    `variables` are what the template may know beside the messages: special tokens and options.
    Raises ValueError where the template cannot be followed, to be read after the folder's name.
    """
    render = _compiled(template, kind, prompt, variables)
    whole = render(_QUERY, _DOCUMENT)
    before, found_query, rest = whole.partition(_QUERY)
    between, found_document, after = rest.partition(_DOCUMENT)
    if not (found_query and found_document) or _QUERY in after or _DOCUMENT in after:
        raise ValueError(
            "has a chat template that has no place for a query and, behind it, a document (it may "
            "be one for conversations, not for re-ranking); put the template it was trained with "
            'into chat_template.jinja, with messages of the roles "query" and "document"'
        )
    for query, document in _PROBES:
        if render(query, document) != before + query + between + document + after:
            raise ValueError(
                "has a chat template that changes the texts it is given, which is not known here"
            )
    return ChatSettings(before=before, between=between, after=after)


def template_of(chat: ChatSettings) -> str:
    """A template that gives this frame, for sentence-transformers."""

    def literal(text: str) -> str:
        return "{{ " + json.dumps(text, ensure_ascii=False) + " }}" if text else ""

    def content(role: str) -> str:
        chosen = f'messages | selectattr("role", "eq", "{role}") | map(attribute="content") | first'
        return "{{ " + chosen + " }}"

    parts = (chat.before, chat.between, chat.after)
    before, between, after = map(literal, parts)
    return before + content("query") + between + content("document") + after


def _compiled(template: str, kind: Format, prompt: str, variables: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a function of two texts
    try:
        from jinja2 import TemplateError
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise ValueError(
            "has a chat template, which only jinja2 can read; install it: pip install "
            "'secondlook[torch]'"
        ) from error

    def refuse(message: str) -> None:
        raise TemplateError(message)

    # as transformers has it
    world = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    world.globals["raise_exception"] = refuse

    def message(role: str, text: str) -> dict[str, Any]:
        content: Any = text if kind == "flat" else [{"type": "text", "text": text}]
        return {"role": role, "content": content}

    def render(query: str, document: str) -> str:
        messages = [message("system", prompt)] if prompt else []
        messages += [message("query", query), message("document", document)]
        try:
            known = {"tools": None, "documents": None, "add_generation_prompt": False}
            known |= dict(variables)
            return world.from_string(template).render(messages=messages, **known)
        except Exception as error:  # a template can raise anything
            raise ValueError(f"has a chat template that fails: {error}") from error

    return render
