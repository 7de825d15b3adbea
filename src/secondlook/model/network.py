"""A ranker in memory: its network, tokenizer and settings; from a checkpoint, and back into one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from secondlook.encode.markers import add_markers
from secondlook.encode.settings import EncodeSettings
from secondlook.errors import CheckpointProblem, MissingExtra

try:
    from safetensors.torch import load_file, save_file
except ImportError as error:
    raise MissingExtra("torch", "loading a ranker's network") from error

from secondlook.model.biencoder import read_biencoder
from secondlook.model.card import card
from secondlook.model.checkpoint import (
    CARD,
    TYPES,
    base_name,
    locate,
    max_length,
    open_checkpoint,
    read_config,
    read_settings,
    read_tokenizer,
    replacing,
    undamaged,
    write_settings,
)
from secondlook.model.classifier import load_classifier, stored_logits
from secondlook.model.frozen import Frozen
from secondlook.model.joint import Joint
from secondlook.model.loading import load_encoder, quiet
from secondlook.model.modular import HeadModule, ModularClassifier
from secondlook.model.saved_files import saved_files
from secondlook.model.sentence_transformers_files import (
    activation_path,
    chat_template_file,
    json_files,
)
from secondlook.model.settings import FrozenSettings, Lineage, RankerSettings, WarmSettings
from secondlook.model.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import torch
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel


CrossEncoder = Joint | Warm | Frozen

EXTRA = "secondlook.safetensors"
"""What the warm and the frozen form have beside their encoder."""
_TRAVELLING = ("tokenizer_config.json", "special_tokens_map.json", TYPES)


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

    A head that was never trained is refused unless asked for; two or three logits become one, and
    so do a language model's answers; pickled weights and code that comes with the model are never
    loaded.
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
        classifier, trained = load_classifier(folder, saved_files(folder, checkpoint.config))
        if not trained and not untrained_head:
            raise _untrained(folder)
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
    settings = model.settings
    if changed != settings.encode:  # calibration and fusion were fitted to other scores
        void = {"calibration": None, "fusion": None}
        settings = settings.model_copy(update={"encode": changed} | void)
    return Model(
        Joint(classifier, strm=changed.strm).eval(), model.tokenizer, settings, model.files
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
    config = read_config(folder)
    _refuse_ranker(folder)
    _refuse_cross_encoder(folder, config)
    biencoder = read_biencoder(folder, base_name(base))
    taken_over = {
        "form": "warm",
        "max_length": max_length(folder, config),
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


def _refuse_ranker(folder: Path) -> None:
    """Raise CheckpointProblem where a ranker would lose what it has beside its encoder."""
    if not (folder / CARD).is_file():
        return
    settings = read_settings(folder / CARD, RankerSettings)
    if settings.form != "joint":
        raise CheckpointProblem(
            f"{folder} is a ranker of the {settings.form} form already, and a new warm ranker "
            "would lose its training; train it without the phase `warm`, or begin anew with its "
            f"base, {settings.lineage.base}"
        )


def _refuse_cross_encoder(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise CheckpointProblem where a trained head would be lost."""
    files = saved_files(folder, config)
    scores = files.saved_there
    if not files.modules:
        scores = files.causal or stored_logits(folder, config) is not None
    if scores:
        raise CheckpointProblem(
            f"{folder} is a cross-encoder, whose trained head a warm ranker would lose; it is a "
            f"ranker as it is, and training goes on from it; for a warm ranker take a bi-encoder"
        )


def new_frozen(start: Model, frozen: FrozenSettings) -> Model:
    """A ranker over the features of `start`'s encoder; what is above them is new and random."""
    network = start.network
    if isinstance(network, Frozen):
        raise CheckpointProblem("the ranker is of the frozen form already")
    if start.settings.encode.chat is not None:
        raise CheckpointProblem(
            "a ranker with a chat template has no frozen form, which reads query and document each "
            "as a text of its own; take another base"
        )
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
        for name, content in model.files.items():
            (half / name).parent.mkdir(exist_ok=True)
            (half / name).write_bytes(content)
        model.tokenizer.save(str(half / "tokenizer.json"))
        if isinstance(network, Joint):
            _save_joint(network, model.settings, half)
        else:
            network.encoder.save_pretrained(half)
            save_file(_own(network), half / EXTRA)
        (half / "README.md").write_text(card(model.settings), encoding="utf-8")
        write_settings(half, model.settings)


def _save_joint(network: Joint, settings: RankerSettings, folder: Path) -> None:
    """A cross-encoder as sentence-transformers reads it, so that it scores there as here."""
    classifier = network.classifier
    classifier.config.sentence_transformers = {"activation_fn": activation_path(settings)}
    classifier.save_pretrained(folder)
    _adjust_tokenizer(folder / "tokenizer_config.json", settings.encode)
    modular = classifier.head if isinstance(classifier, ModularClassifier) else ()
    head = [module.saved for module in modular if isinstance(module, HeadModule)]
    for name, told in json_files(settings, head).items():
        (folder / name).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    for name, text in chat_template_file(settings).items():
        (folder / name).write_text(text, encoding="utf-8")


def _adjust_tokenizer(path: Path, encode: EncodeSettings) -> None:
    """So that other libraries cut where we do, and find no chat template but ours."""
    config = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    config["model_max_length"] = encode.max_length
    config.pop("chat_template", None)
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _own(network: Warm | Frozen) -> dict[str, torch.Tensor]:
    """The weights that are not the encoder's."""
    weights = network.state_dict().items()
    return {name: weight for name, weight in weights if not name.startswith("encoder.")}


def _load_own(network: Warm | Frozen, path: Path) -> None:
    stored = load_file(undamaged(path)) if path.is_file() else {}
    if "beta" in stored:  # as earlier versions stored the gate: its logarithm
        stored["gate"] = stored.pop("beta").exp()
    shapes = {name: weight.shape for name, weight in stored.items()}
    if shapes != {name: weight.shape for name, weight in _own(network).items()}:
        raise CheckpointProblem(
            f"{path} is missing, or of another encoder; save the ranker anew, or fetch all of it"
        )
    network.load_state_dict(stored, strict=False)


def _warm(encoder: PreTrainedModel, encode: EncodeSettings, warm: WarmSettings) -> Warm:
    return Warm(
        encoder,
        strm=encode.strm,
        pooling=warm.pooling,
        separate_layers=warm.separate_layers,
    )


def _add_markers(
    encoder: PreTrainedModel | ModularClassifier, tokenizer: Tokenizer, encode: EncodeSettings
) -> None:
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
