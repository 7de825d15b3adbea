"""How triples are read. Nothing here needs pyarrow or torch."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from pydantic import Field

from secondlook.data.irds import PREFIX
from secondlook.recipe import Settings


class TriplesSettings(Settings):
    """A file of triples to learn from, as MS MARCO gives them out: by texts or by ids."""

    file: str
    queries: str | None = None
    """Of triples by ids: the queries' texts, and `corpus` those of the passages."""
    corpus: str | None = None
    share: float = Field(1.0, gt=0, le=1)
    """Of the triples, drawn by `seed`; CCNU takes a tenth."""
    by_query: bool = False
    """Whether all triples of a query make one group, so that queries count alike and a step can
    show several of its passages. Without, every triple is a group, as monoBERT reads them."""
    passages: int = Field(10, ge=1)
    """With `by_query`: how many passages that are not relevant a query keeps, drawn by `seed`."""
    seed: int = 7

    def groups_file(self, folder: Path) -> Path:
        """Where the group file made of them is, or will be: beside them, or in `folder` itself."""
        source = folder / (Path(self.file).name if self.file.startswith(PREFIX) else self.file)
        name = blake2b(self.model_dump_json().encode(), digest_size=4).hexdigest()
        return source.with_name(f"{source.name}.{name}.parquet")
