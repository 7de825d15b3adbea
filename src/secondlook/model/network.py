"""A ranker in memory: its network, tokenizer and settings; from a checkpoint, and back into one."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from safetensors import safe_open

from secondlook.encode.markers import add_markers
from secondlook.encode.settings import EncodeSettings
from secondlook.errors import CheckpointProblem, MissingExtra

try:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import AutoModel, AutoModelForSequenceClassification
    from transformers.utils import logging
except ImportError as error:
    raise MissingExtra("torch", "loading a ranker's network") from error

from secondlook.model.biencoder import read_biencoder
from secondlook.model.card import card
from secondlook.model.checkpoint import (
    CARD,
    TYPES,
    base_name,
    brings_code,
    locate,
    max_length,
    open_checkpoint,
    read_config,
    read_tokenizer,
    replacing,
    weight_files,
    write_settings,
)
from secondlook.model.frozen import Frozen
from secondlook.model.imported import files_for_a_prompt
from secondlook.model.joint import Joint, fold_two_logits
from secondlook.model.settings import FrozenSettings, Lineage, RankerSettings, WarmSettings
from secondlook.model.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tokenizers import Tokenizer
    from transformers import PreTrainedModel

CrossEncoder = Joint | Warm | Frozen

EXTRA = "secondlook.safetensors"
"""What the warm and the frozen form have beside their encoder."""
_TRAVELLING = ("tokenizer_config.json", "special_tokens_map.json", TYPES)
_ACTIVATIONS = {
    "identity": "linear.Identity",
    "sigmoid": "activation.Sigmoid",
    "tanh": "activation.Tanh",
}
_OF_A_LAYER = re.compile(r"\blayers?\.\d")
_HEADS = ("classifier.weight", "classifier.out_proj.weight")
"""The last layer of the families' heads."""


@dataclass(frozen=True, slots=True)
class Model:
    """What a checkpoint holds, in memory."""

    network: CrossEncoder
    tokenizer: Tokenizer
    settings: RankerSettings
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Small files by name that are written back as they were."""


def load_model(source: str | Path, *, untrained_head: bool = False) -> Model:
    """Load a ranker from a folder or hub id, in float32 and ready to score.

    A head that was never trained is refused unless asked for; two logits become one; pickled
    weights and code that comes with the model are never loaded.
    """
    checkpoint = open_checkpoint(source)
    folder, settings = checkpoint.folder, checkpoint.settings
    if not settings.trained and not untrained_head:
        raise _untrained(folder)
    files = _read_files(folder)
    network: CrossEncoder
    if settings.frozen is not None:
        encoder = load_encoder(folder)
        network = Frozen(encoder, settings.frozen, strm=settings.encode.strm)
        _load_own(network, folder / EXTRA)
    elif settings.warm is None:
        classifier, trained = _load_classifier(folder, untrained_head=untrained_head)
        settings = settings.model_copy(update={"trained": trained and settings.trained})
        if not (trained or (folder / CARD).is_file()):  # no authors' reading to follow
            plain = EncodeSettings.model_validate({"max_length": settings.encode.max_length})
            settings = settings.model_copy(update={"encode": plain})
        network = Joint(classifier, strm=settings.encode.strm)
    else:
        network = _warm(load_encoder(folder), settings.encode, settings.warm)
        _load_own(network, folder / EXTRA)
        files |= read_biencoder(folder).files
    tokenizer = read_tokenizer(folder)
    known, embedded = tokenizer.get_vocab_size(), checkpoint.config.get("vocab_size")
    if embedded is not None and known > embedded:
        raise CheckpointProblem(
            f"{folder}: its tokenizer knows {known} tokens and its embeddings {embedded}; they are "
            "not of one model, fetch it anew"
        )
    return Model(network.eval(), tokenizer, settings, files)


def new_joint(base: str | Path, encode: Mapping[str, Any] | None = None) -> Model:
    """A joint ranker from an encoder; its head is new and random unless the base has one.

    `encode` are settings that differ from the base's, or from the defaults.
    """
    model = load_model(base, untrained_head=True)
    if not isinstance(model.network, Joint):
        raise CheckpointProblem(
            f"{base} is of the {model.settings.form} form; a joint ranker starts from an encoder"
        )
    changed = EncodeSettings.model_validate(model.settings.encode.model_dump() | dict(encode or {}))
    classifier = model.network.classifier
    _add_markers(classifier, model.tokenizer, changed)
    return Model(
        Joint(classifier, strm=changed.strm).eval(),
        model.tokenizer,
        model.settings.model_copy(update={"encode": changed}),
        model.files,
    )


def new_warm(
    base: str | Path, *, separate_layers: int = 0, encode: Mapping[str, Any] | None = None
) -> Model:
    """A warm ranker that begins as the bi-encoder `base`, and is as good as that untrained.

    Pooling and prompts are read from sentence-transformers' files; `encode` are settings that
    differ from what these say. No scale for its scores is stored: `score.warm.make_warm` makes
    the whole ranker, with one.
    """
    folder = locate(base)
    biencoder = read_biencoder(folder)
    taken_over = {
        "form": "warm",
        "max_length": max_length(folder, read_config(folder)),
        "query_prompt": biencoder.query_prompt,
        "document_prompt": biencoder.document_prompt,
    }
    settings = RankerSettings(
        encode=EncodeSettings.model_validate(taken_over | dict(encode or {})),
        warm=WarmSettings(pooling=biencoder.pooling, separate_layers=separate_layers),
        lineage=Lineage(base=base_name(base)),
    )
    assert settings.warm is not None
    encoder, tokenizer = load_encoder(folder), read_tokenizer(folder)
    _add_markers(encoder, tokenizer, settings.encode)
    network = _warm(encoder, settings.encode, settings.warm)
    files = _read_files(folder) | dict(biencoder.files)
    return Model(network.eval(), tokenizer, settings, files)


def new_frozen(start: Model, frozen: FrozenSettings) -> Model:
    """A ranker over the features of `start`'s encoder; what is above them is new and random."""
    network = start.network
    if isinstance(network, Frozen):
        raise CheckpointProblem("the ranker is of the frozen form already")
    settings = RankerSettings(
        encode=start.settings.encode.model_copy(update={"form": "frozen"}),
        frozen=frozen,
        trained=False,
        lineage=start.settings.lineage,
    )
    made = Frozen(network.encoder, frozen, strm=settings.encode.strm)
    files = {name: content for name, content in start.files.items() if name in _TRAVELLING}
    return Model(made.eval(), start.tokenizer, settings, files)


def save_model(model: Model, folder: Path) -> None:
    """Write the whole checkpoint, at once; one that was there before is replaced."""
    with replacing(folder) as half, quiet():
        network = model.network
        if isinstance(network, Joint):
            # sentence-transformers reads from here what to apply to the logit
            network.classifier.config.sentence_transformers = {
                "activation_fn": f"torch.nn.modules.{_ACTIVATIONS[model.settings.activation]}"
            }
            network.classifier.save_pretrained(half)
        else:
            network.encoder.save_pretrained(half)
            save_file(_own(network), half / EXTRA)
        for name, content in model.files.items():
            (half / name).parent.mkdir(exist_ok=True)
            (half / name).write_bytes(content)
        model.tokenizer.save(str(half / "tokenizer.json"))
        if isinstance(network, Joint):
            _limit_tokenizer(half / "tokenizer_config.json", model.settings.encode.max_length)
            for name, told in files_for_a_prompt(model.settings).items():
                (half / name).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        (half / "README.md").write_text(card(model.settings), encoding="utf-8")
        write_settings(half, model.settings)


def _limit_tokenizer(path: Path, tokens: int) -> None:
    """So that other libraries cut where we do."""
    config = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    config["model_max_length"] = tokens
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _load_classifier(folder: Path, *, untrained_head: bool) -> tuple[PreTrainedModel, bool]:
    """The classifier with one logit, and whether all of it was stored."""
    logits = _stored_logits(folder)
    if logits is not None and logits > 2:
        raise CheckpointProblem(
            f"{folder} tells {logits} classes apart and is no ranker; a ranker has one logit, or "
            "two (irrelevant, relevant)"
        )
    model, missing = load(AutoModelForSequenceClassification, folder, num_labels=logits or 1)
    inside = f"{model.base_model_prefix}."
    lost = [name for name in missing if name.startswith(inside) and "pooler" not in name]
    if lost:
        raise CheckpointProblem(f"{folder} is incomplete: it lacks {lost[0]}; fetch it anew")
    if missing and not untrained_head:
        raise _untrained(folder)
    if logits == 2:
        fold_two_logits(model)
    return model, not missing


def load_encoder(folder: Path) -> PreTrainedModel:
    """The bare encoder of a folder, in float32."""
    model, missing = load(AutoModel, folder)
    lost = [name for name in missing if not name.startswith("pooler")]
    if lost:
        raise CheckpointProblem(f"{folder} is incomplete: it lacks {lost[0]}; fetch it anew")
    if missing:
        setattr(model, "pooler", None)  # noqa: B010 - many have none; mypy thinks it a module
    elif isinstance(pooler := getattr(model, "pooler", None), torch.nn.Module):
        pooler.requires_grad_(requires_grad=False)  # kept for others; it gets no gradient here
    return model


def _own(network: Warm | Frozen) -> dict[str, torch.Tensor]:
    """The weights that are not the encoder's."""
    weights = network.state_dict().items()
    return {name: weight for name, weight in weights if not name.startswith("encoder.")}


def _load_own(network: Warm | Frozen, path: Path) -> None:
    stored = load_file(path) if path.is_file() else {}
    if "beta" in stored:  # as earlier versions stored the gate: its logarithm
        stored["gate"] = stored.pop("beta").exp()
    shapes = {name: weight.shape for name, weight in stored.items()}
    if shapes != {name: weight.shape for name, weight in _own(network).items()}:
        raise CheckpointProblem(
            f"{path} is missing, or of another encoder; save the ranker anew, or fetch all of it"
        )
    network.load_state_dict(stored, strict=False)


def load(kind: Any, folder: Path, **config: Any) -> tuple[PreTrainedModel, list[str]]:  # noqa: ANN401 - transformers' auto classes share no type
    """A model of transformers in float32, and what it lacks; no pickles, no code of its own."""
    weight_files(folder)
    with quiet():
        try:
            model, report = kind.from_pretrained(
                folder,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
                **config,
            )
        except Exception as error:  # an odd config.json can raise anything in there
            raise CheckpointProblem(f"{folder} cannot be loaded: {error}") from error
    unknown = [name for name in sorted(report["unexpected_keys"]) if _OF_A_LAYER.search(name)]
    if unknown and brings_code(folder):
        raise CheckpointProblem(
            f"{folder} says it is a plain {model.config.model_type}, but its weights are not "
            f"({unknown[0]}): it needs the code that comes with it (`auto_map` in config.json), "
            "and such code is never run here"
        )
    return model, sorted(report["missing_keys"])


def _stored_logits(folder: Path) -> int | None:
    """How many logits the stored head gives; None where no head is stored."""
    for path in weight_files(folder):
        with safe_open(path, framework="pt") as weights:
            for name in _HEADS:
                if name in weights.keys():  # noqa: SIM118 - it is no dict
                    return int(weights.get_slice(name).get_shape()[0])
    return None


def _warm(encoder: PreTrainedModel, encode: EncodeSettings, warm: WarmSettings) -> Warm:
    return Warm(
        encoder,
        strm=encode.strm,
        pooling=warm.pooling,
        separate_layers=warm.separate_layers,
    )


def _add_markers(encoder: PreTrainedModel, tokenizer: Tokenizer, encode: EncodeSettings) -> None:
    """Markers that are new tokens get new embeddings."""
    if encode.markers is None:
        return
    add_markers(tokenizer, encode.markers)
    if tokenizer.get_vocab_size() > encoder.config.vocab_size:
        encoder.resize_token_embeddings(tokenizer.get_vocab_size())


def _read_files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in _TRAVELLING if (folder / name).is_file()}


def _untrained(folder: Path) -> CheckpointProblem:
    return CheckpointProblem(
        f"{folder} has no trained head, so its scores would be random; train it first, make a warm "
        f"ranker of it (secondlook warm {folder} -o RANKER), or ask for it with untrained_head=True"
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' bars and load reports: what matters in them is raised as an error."""
    untyped: Any = logging
    verbosity, bars = untyped.get_verbosity(), untyped.is_progress_bar_enabled()
    untyped.set_verbosity_error()
    untyped.disable_progress_bar()
    try:
        yield
    finally:
        untyped.set_verbosity(verbosity)
        if bars:
            untyped.enable_progress_bar()
