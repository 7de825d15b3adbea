"""A cross-encoder that was not made here: settings under which it scores as its authors meant.

The authors' library is sentence-transformers, and its rules are followed: what its `CrossEncoder`
would do with the same folder. What cannot be followed is refused. Nothing here reads files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from secondlook.encode.settings import ChatSettings, EncodeSettings
from secondlook.model.chat_template import QWEN3_RERANKER, frame_of, message_format
from secondlook.model.families import description
from secondlook.model.settings import Lineage, RankerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from secondlook.model.saved_files import SavedFiles

Activation = Literal["identity", "sigmoid", "tanh"]
ACTIVATIONS: dict[str, Activation] = {
    "Identity": "identity",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
}
HEAD_MODULES = ("Pooling", "Dense", "LayerNorm", "Normalize", "Dropout")
"""The modules behind an encoder that are known here."""
LOGIT_SCORE = "LogitScore"
"""The module behind a language model."""
_ENDLESS = 10**9
"""Tokenizers without a limit say 10^30."""
_TEMPLATE_OPTIONS = ("add_generation_prompt", "enable_thinking")
_SPECIAL = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


def settings_of(files: SavedFiles, positions: int | None, base: str) -> RankerSettings:
    """Its settings; raises ValueError for what cannot be done here, to be read after the folder."""
    _refuse_unknown(files)
    prompt = _default_prompt(files)
    chat = _chat(files, prompt, base)
    names = files.tokenizer.get("model_input_names")
    return RankerSettings(
        encode=EncodeSettings.model_validate(
            {
                "max_length": longest_input(files, positions),
                "max_query_length": None,
                "query_prompt": "" if chat else prompt,
                "segments": names is None or "token_type_ids" in names,
                "chat": chat,
            }
        ),
        activation=_activation(files),
        lineage=Lineage(base=base),
    )


def longest_input(files: SavedFiles, positions: int | None) -> int:
    """In tokens: as sentence-transformers' file says, else the tokenizer's; within `positions`."""
    own = files.transformer
    arguments = own.get("processor_kwargs") or own.get("tokenizer_args") or {}
    asked = (own.get("processing_kwargs") or {}).get("text", {}).get("max_length")
    limit = asked or arguments.get("model_max_length") or own.get("max_seq_length")
    limits = (limit or files.tokenizer.get("model_max_length"), positions)
    return int(min((limit for limit in limits if limit and limit < _ENDLESS), default=512))


def logit_count(files: SavedFiles) -> int:
    """How many logits the network gives out."""
    if files.head:
        last = files.head[-1]
        return int(last.config.get("out_features", 1)) if last.kind == "Dense" else 1
    # transformers leaves its default, two, out
    return 1 if files.causal else len(files.config.get("id2label", ("", "")))


def _refuse_unknown(files: SavedFiles) -> None:
    """Raise ValueError for what changes a score and is not known here."""
    kinds = [module.kind for module in files.head]
    known = (LOGIT_SCORE,) if files.causal else HEAD_MODULES
    if unknown := [kind for kind in kinds if kind not in known]:
        raise ValueError(
            f"is a CrossEncoder of sentence-transformers whose score is made by {unknown[0]}; of "
            f"modules behind {'a language model' if files.causal else 'an encoder'} "
            f"{', '.join(known)} are known here, and others are not dropped for a new head"
        )
    if files.tokenizer.get("truncation_side", "right") != "right":
        raise ValueError("cuts long texts at their beginning (truncation_side), unknown here")
    if not files.saved_there:
        return
    own = files.transformer
    if own.get("config_kwargs") or own.get("config_args"):
        raise ValueError(
            "changes its config.json by config_kwargs in sentence_bert_config.json; write the "
            "changes into config.json, and remove them there"
        )
    unread = {
        f"{part}.{name}"
        for part, options in (own.get("processing_kwargs") or {}).items()
        for name in options
        if not (part == "text" and name == "max_length")
        and not (part == "chat_template" and name in _TEMPLATE_OPTIONS)
    }
    if unread:
        raise ValueError(
            f"sets {', '.join(sorted(unread))} (processing_kwargs in sentence_bert_config.json), "
            "which is not known here"
        )
    for reading in (own.get("modality_config") or {}).values():
        outputs = reading.get("method_output_name")
        if reading.get("method") != "forward" or outputs not in ("logits", "last_hidden_state"):
            raise ValueError(
                f"reads {outputs} of {reading.get('method')} (modality_config in "
                "sentence_bert_config.json); logits or last_hidden_state of forward are known here"
            )
    if _default_prompt(files) and any(
        module.kind == "Pooling" and not module.config.get("include_prompt", True)
        for module in files.head
    ):
        raise ValueError("leaves its prompt out of the pooling, which is not known here")


def _default_prompt(files: SavedFiles) -> str:
    """What is put before every query; other prompts are for callers who name one."""
    if not files.saved_there:
        return ""
    prompts = files.model.get("prompts") or {}
    return prompts.get(files.model.get("default_prompt_name")) or ""


def _chat(files: SavedFiles, prompt: str, base: str) -> ChatSettings | None:
    """What the chat template puts around a pair, where pairs are read so."""
    model_type = str(files.config.get("model_type"))
    kind = message_format(files.chat_template, model_type)
    if files.saved_there:
        messages = (files.transformer.get("modality_config") or {}).get("message")
        template = files.chat_template if messages else ""
        kind = (messages or {}).get("format", kind)
    else:
        template = files.chat_template
    decoder = description(files.config).decoder
    named = f"{base} {files.config.get('_name_or_path', '')}".lower()
    published = decoder and "qwen3-reranker" in named
    if template:
        try:
            return _ends_well(frame_of(template, kind, prompt, _template_variables(files)), files)
        except ValueError:
            if not published:
                raise
    if published:
        return frame_of(QWEN3_RERANKER, "flat", prompt, {})
    if decoder:
        raise ValueError(
            f"is a decoder ({model_type}) without a chat template, and would read query and "
            "document as one text, with nothing between them; put the template it was trained with "
            'into chat_template.jinja, with messages of the roles "query" and "document"'
        )
    return None


def _ends_well(chat: ChatSettings, files: SavedFiles) -> ChatSettings:
    """The same; raises ValueError where its last token would be taken for padding."""
    padding = _special_tokens(files).get("pad_token")
    if padding and not files.causal and chat.after.endswith(padding):
        raise ValueError(
            "has a chat template that ends in the padding token, behind which its classifier does "
            "not look; set another pad_token in tokenizer_config.json, as the authors had it"
        )
    return chat


def _template_variables(files: SavedFiles) -> Mapping[str, Any]:
    """What a template may know beside the messages."""
    options = (files.transformer.get("processing_kwargs") or {}).get("chat_template", {})
    return {**_special_tokens(files), **options}


def _special_tokens(files: SavedFiles) -> dict[str, str]:
    """The tokenizer's special tokens, such as `pad_token`, as they are spelled."""
    given = {f"{name}_token": files.tokenizer.get(f"{name}_token") for name in _SPECIAL}
    written = {
        name: token.get("content") if isinstance(token, dict) else token
        for name, token in given.items()
    }
    return {name: token for name, token in written.items() if token is not None}


def _activation(files: SavedFiles) -> Activation:
    """What is applied to the logit where a score is shown.

    Two or three logits become one here, a difference, and are left as they are there: identity.
    """
    if logit_count(files) > 1:
        return "identity"
    named = files.model.get("activation_fn") if files.saved_there else None
    named = named or files.config.get("sentence_transformers", {}).get("activation_fn")
    named = named or files.config.get("sbert_ce_default_activation_function")
    if not named or not named.startswith("torch."):  # code of others is run neither here nor there
        return "sigmoid"
    kind = named.rpartition(".")[2]
    if kind not in ACTIVATIONS:
        raise ValueError(
            f"shows its scores through {named}, and {', '.join(ACTIVATIONS)} are known here; "
            "raw scores do not depend on it: change activation_fn in its config.json (or "
            "config_sentence_transformers.json) to torch.nn.modules.linear.Identity"
        )
    return ACTIVATIONS[kind]
