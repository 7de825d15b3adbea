"""Experiment trackers that a training reports to: transformers' own, by its names for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.errors import SecondlookError, UnknownName

if TYPE_CHECKING:
    from collections.abc import Sequence


def refuse_unusable(names: Sequence[str]) -> None:
    """Before anything is computed: a tracker that nobody knows, or that is not installed."""
    if not names:
        return
    from transformers.integrations.integration_utils import (
        INTEGRATION_TO_CALLBACK,
        get_available_reporting_integrations,
    )

    installed = get_available_reporting_integrations()  # type: ignore[no-untyped-call]
    for name in names:
        if name not in INTEGRATION_TO_CALLBACK:
            raise UnknownName("experiment tracker", name, INTEGRATION_TO_CALLBACK)
        own = INTEGRATION_TO_CALLBACK[name].__module__.startswith("transformers.")
        if own and name not in installed:  # what a program has added itself is there
            raise SecondlookError(
                f"{name} is not installed: install its package first, or leave it out"
            )
