"""The checkpoint folder: found, read, and written at once. Nothing here needs torch.

It is a plain Hugging Face model (`config.json`, `model.safetensors`, `tokenizer.json`) beside
`secondlook.json`. A cross-encoder without `secondlook.json` is read too: `imported` says how.
"""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from tokenizers import Tokenizer

from secondlook.data.durable import half_of, left_beside, remove_halves, sync, write_at_once
from secondlook.data.lock import locked
from secondlook.errors import CheckpointProblem, UnknownName
from secondlook.model.families import FAMILIES, description
from secondlook.model.imported import longest_input, settings_of
from secondlook.model.normalizer import normalize_as_configured
from secondlook.model.saved_files import head_files, read_json, saved_files
from secondlook.model.settings import RankerSettings
from secondlook.recipe import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

S = TypeVar("S", bound=Settings)

CARD = "secondlook.json"
TYPES = "types.safetensors"
"""The classifier of query types, where the ranker has one."""
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_SAFE_NAME = re.compile(r"\w[\w.-]*\.safetensors")
_DOWNLOADED = ["*.safetensors", "*.json", "*.txt", "*.jinja"]
_KNOWN_ATTENTION = ("eager", "sdpa", "flash_attention_2")
"""What transformers has itself; it takes any other name for code on the hub, and loads that."""
_CONFIG_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "model_type": (str, "a name"),
    "max_position_embeddings": (int, "a whole number"),
    "pad_token_id": (int, "a whole number"),
    "architectures": (list, "a list"),
    "id2label": (dict, "an object"),
    "sentence_transformers": (dict, "an object"),
}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A ranker's folder and what it says of itself."""

    folder: Path
    settings: RankerSettings
    config: Mapping[str, Any]
    """`config.json`."""

    @property
    def pad_id(self) -> int:
        """The id that fills up short sequences; nothing attends to it."""
        return self.config.get("pad_token_id") or 0


def open_checkpoint(source: str | Path) -> Checkpoint:
    """Read the settings of a ranker: a folder, or a hub id that is fetched first.

    Raises CheckpointProblem where there is none, or only one that brings its own code.
    """
    folder = locate(source)
    config = read_config(folder)
    if (folder / CARD).is_file():
        settings = read_settings(folder / CARD, RankerSettings)
    else:
        settings = _imported_settings(folder, config, base_name(source))
    limit = position_limit(config)
    if limit is not None and settings.encode.max_length > limit:
        raise CheckpointProblem(
            f"{folder}: max_length is {settings.encode.max_length} and the encoder has positions "
            f"for {limit} tokens; lower max_length in {CARD}"
        )
    return Checkpoint(folder, settings, config)


def locate(source: str | Path) -> Path:
    """The local folder of a checkpoint or base; a hub id is downloaded, safe files only."""
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    for left in left_beside(folder, ".previous"):
        raise CheckpointProblem(
            f"there is no {folder}, but an interrupted save left the one before at {left}; "
            f"rename it back: mv {left} {folder}"
        )
    if isinstance(source, Path) or not _HUB_ID.fullmatch(source):
        raise CheckpointProblem(f"{source} is neither a folder nor a hub id like org/name")
    return _download(source)


def _download(hub_id: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(hub_id, allow_patterns=_DOWNLOADED))
    except (OSError, ValueError) as error:  # refused, unreachable, not cached; no hub id
        reason = str(error).strip().splitlines()[0]
        raise CheckpointProblem(
            f"{hub_id} is no folder here, and could not be fetched from the hub ({reason}); check "
            "the name and the connection, or give the folder of a copy"
        ) from error


def read_config(folder: Path) -> dict[str, Any]:
    """`config.json`; raises CheckpointProblem where the model can only run by code of its own."""
    config = read_json(folder / "config.json")
    if "auto_map" in config and config.get("model_type") not in FAMILIES:
        raise CheckpointProblem(
            f"{folder} needs code that comes with the model (`auto_map` in config.json), and such "
            "code is never run here; take a model of an architecture that transformers has itself"
        )
    for name in _attention_names(config):
        if name not in _KNOWN_ATTENTION:
            raise CheckpointProblem(
                f"{folder / 'config.json'} asks for the attention {name!r}, which would be code "
                f"from the hub; take one of {', '.join(_KNOWN_ATTENTION)}, or remove the line"
            )
    _check_types(folder / "config.json", config)
    return config


def brings_code(folder: Path) -> bool:
    """Whether the folder names code of its own, which is never run."""
    return "auto_map" in read_json(folder / "config.json")


def _attention_names(config: Mapping[str, Any]) -> Iterator[object]:
    """The attention that a configuration asks for, and every configuration inside it."""
    for key, value in config.items():
        if key.endswith("attn_implementation") and value is not None:
            yield from value.values() if isinstance(value, dict) else [value]
        elif isinstance(value, dict):
            yield from _attention_names(value)


def _check_types(path: Path, config: Mapping[str, Any]) -> None:
    """Raise CheckpointProblem where something that is read here is of another type."""
    for key, (kinds, noun) in _CONFIG_TYPES.items():
        value = config.get(key)
        if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            raise CheckpointProblem(
                f"{path}: {key} must be {noun}, and is {json.dumps(value)[:40]}; fetch the model "
                "anew"
            )


def read_tokenizer(folder: Path) -> Tokenizer:
    """`tokenizer.json`, without the truncation and padding some bases store: lengths are ours."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointProblem(
            f"{folder} holds no tokenizer.json; write it once with "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        )
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise CheckpointProblem(f"{path} is damaged ({error}); fetch the model anew") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    normalize_as_configured(tokenizer, folder, ours=(folder / CARD).is_file())
    return tokenizer


def read_settings(path: Path, kind: type[S]) -> S:
    """What a checkpoint's own file says; raises CheckpointProblem where it cannot be understood."""
    try:
        return kind.model_validate(read_json(path))
    except (ValidationError, UnknownName) as error:
        raise CheckpointProblem(f"{path} cannot be read: {error}") from error


def open_trained(source: str | Path, verb: str, card: str, kind: type[S]) -> tuple[Path, S]:
    """The folder that `VERB train` made, or a hub id's, and what it says of itself in `card`."""
    folder = locate(source)
    read_config(folder)
    if not (folder / card).is_file():
        noun = card.removesuffix(".json")
        raise CheckpointProblem(
            f"{folder} is no {noun}; train one: secondlook {verb} train CORPUS QUERIES QRELS "
            f"--base {source} -o {noun.upper()}"
        )
    return folder, read_settings(folder / card, kind)


def weight_files(folder: Path) -> list[Path]:
    """The safetensors of the model; raises CheckpointProblem for pickled or damaged ones."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return [undamaged(folder / name) for name in _named_in(index)]
    if (folder / "model.safetensors").is_file():
        return [undamaged(folder / "model.safetensors")]
    pickled = sorted(folder.glob("*.bin"))
    if pickled:
        raise CheckpointProblem(
            f"{folder} has its weights in {pickled[0].name}, a pickle, which can run any code when "
            "it is loaded and is never loaded here; take a copy with model.safetensors, or convert "
            "it where you trust it: AutoModel….from_pretrained(…).save_pretrained(…)"
        )
    raise CheckpointProblem(f"{folder} holds no weights (model.safetensors)")


def _named_in(index: Path) -> list[str]:
    """The files that hold the weights; raises CheckpointProblem for any but safetensors beside."""
    listed = read_json(index).get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise CheckpointProblem(f'{index} has no "weight_map"; fetch the model anew')
    for name in listed.values():
        if not isinstance(name, str) or not _SAFE_NAME.fullmatch(name):
            raise CheckpointProblem(
                f"{index} names {name!r} as weights; only .safetensors files of the same folder "
                "are loaded: take a copy of the model that has them"
            )
    return sorted(set(listed.values()))


def undamaged(path: Path) -> Path:
    """The same file of weights, whose header fits its length; else raises CheckpointProblem."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy"):
            return path
    except (SafetensorError, OSError) as error:
        raise CheckpointProblem(
            f"{path} is damaged or was not copied to its end ({error}); fetch it anew"
        ) from error


def _imported_settings(folder: Path, config: Mapping[str, Any], base: str) -> RankerSettings:
    """Settings for a cross-encoder that was not made here, as its authors meant it."""
    try:
        return settings_of(saved_files(folder, config), position_limit(config), base)
    except ValueError as error:
        raise CheckpointProblem(f"{folder} {error}") from error
    except (AttributeError, TypeError) as error:  # a list where an object should be
        raise CheckpointProblem(
            f"{folder} has a tokenizer_config.json or files of sentence-transformers that cannot "
            f"be understood ({error}); fetch the model anew"
        ) from error


def base_name(source: str | Path) -> str:
    """How the lineage names it: the hub id, or the folder's name without where it lies."""
    path = Path(source).expanduser()
    return path.resolve().name if path.is_dir() else str(source)


def max_length(folder: Path, config: Mapping[str, Any]) -> int:
    """The longest input that sentence-transformers' or the tokenizer's settings allow."""
    return longest_input(saved_files(folder, config), position_limit(config))


def layer_count(config: Mapping[str, Any]) -> int:
    """How many layers the encoder has."""
    return int(config.get("num_hidden_layers") or config["n_layers"])  # DistilBERT's name


def position_limit(config: Mapping[str, Any]) -> int | None:
    """How many tokens the encoder has positions for; None where config.json does not say."""
    positions = config.get("max_position_embeddings")
    if positions is None:
        return None
    if description(config).behind_padding:
        padding = config.get("pad_token_id")
        positions -= (1 if padding is None else padding) + 1
    return int(positions)


def files_fingerprint(folder: Path) -> str:
    """A digest of all that a model's folder says and weighs: every .json and .safetensors file."""
    digest = sha256()
    found = [
        path for pattern in ("*.json", "*.safetensors", "*.jinja") for path in folder.glob(pattern)
    ]
    for path in [*sorted(found), *head_files(folder)]:
        with path.open("rb") as file:
            digest.update(path.name.encode() + b"\0" + file_digest(file, sha256).digest())
    return f"sha256:{digest.hexdigest()}"


def write_settings(folder: Path, settings: Settings, card: str = CARD) -> None:
    """Write them at once: a reader finds the old ones or the new ones, never half."""
    write_at_once(folder / card, settings.model_dump_json(indent=2) + "\n")


@contextmanager
def changing_settings(folder: Path) -> Iterator[RankerSettings]:
    """The settings of a ranker, which nobody else writes in this block; raises OutputInUse."""
    open_checkpoint(folder)  # a folder that holds no ranker is not locked
    with locked(folder):
        yield open_checkpoint(folder).settings


def refuse_to_replace(folder: Path, advice: str = "give another name, or remove it") -> None:
    """Raise CheckpointProblem where something is, before hours are spent on what goes there."""
    if folder.exists() and not _is_empty(folder):
        raise CheckpointProblem(f"{folder} is there already; {advice}")


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """An empty folder to fill, which becomes `folder` at once when the block ends well.

    When it does not, `folder` stays as it was. Only a checkpoint or an empty folder is replaced.
    Raises OutputInUse where another process is writing the same folder.
    """
    folder = folder.resolve()
    if folder.exists() and not _is_empty(folder) and not (folder / "config.json").is_file():
        raise CheckpointProblem(
            f"{folder} is there and is no checkpoint, so it is not replaced; give another name"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder) as hold:
        if hold.first_to_clear(folder):
            remove_halves(folder)
            _recover(folder)
        half = half_of(folder)
        half.mkdir()
        try:
            yield half
            readable = half.stat().st_mode & 0o666  # safetensors are written for their owner only
            for path in half.rglob("*"):
                if path.is_file():
                    path.chmod(readable)
                sync(path)
            sync(half)
            _swap(half, folder, half.with_suffix(".previous"))
        finally:
            shutil.rmtree(half, ignore_errors=True)


def _recover(folder: Path) -> None:
    """Undo what a process left that was killed in `_swap`."""
    for previous in left_beside(folder, ".previous"):
        if folder.exists():
            shutil.rmtree(previous)
        else:
            previous.rename(folder)


def _swap(new: Path, folder: Path, previous: Path) -> None:
    """Two renames, since no folder can be renamed onto a full one; `locate` knows of the gap."""
    if folder.exists():
        folder.rename(previous)
    try:
        new.rename(folder)
    except BaseException:  # a key pressed just now too
        if previous.exists():
            previous.rename(folder)
        raise
    sync(folder.parent)
    shutil.rmtree(previous, ignore_errors=True)
