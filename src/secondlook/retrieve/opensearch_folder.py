"""The folder of an index on a cluster: where that is, and what may stand beside the card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from secondlook.errors import IndexProblem
from secondlook.retrieve.cluster import OpenSearchSettings
from secondlook.retrieve.folder import CARD, read_card
from secondlook.retrieve.vector_files import is_of_vectors

if TYPE_CHECKING:
    from pathlib import Path


def settings_in(folder: Path) -> OpenSearchSettings:
    """What the card says of the index; raises IndexProblem where that makes no sense."""
    stored = read_card(folder).settings
    stored.pop("verify_certs", None)  # of older folders; how to check is the user's to say
    try:
        return OpenSearchSettings.model_validate(stored)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise IndexProblem(
            f"{folder / CARD} cannot be read ({problem['loc'][0]}: {problem['msg']}); make it "
            f"anew: secondlook index CORPUS {folder} --engine opensearch --replace"
        ) from error


def claim(folder: Path) -> None:
    """Before hours of loading: the card will go into this folder, and nothing else is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    strangers = [path for path in folder.iterdir() if path.name != CARD and not is_of_vectors(path)]
    if strangers or ((folder / CARD).exists() and read_card(folder).engine != "opensearch"):
        raise IndexProblem(f"{folder} holds something else; name another folder for this index")
