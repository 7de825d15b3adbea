"""The reference pages, made from the code whenever the site is built: they cannot fall behind it.

mkdocs loads this file as a hook (mkdocs.yml) and asks it for the pages.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from pydantic import BaseModel


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those that are written."""
    from mkdocs.structure.files import File

    pages = {
        "python-api": python_api_page(),
        "cli": cli_page(),
        "recipes": recipes_page(),
        "api": api_page(),
    }
    for name, page in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=page))
    return files


def python_api_page() -> str:
    """Every public name of the package; mkdocstrings puts signature and docstring in its place.

    A public name without a docstring ends the build.
    """
    import secondlook

    parts = [
        "# Python API",
        "    import secondlook as sl",
        "These names are public: [what that promises](versions.md). All other modules are private.",
    ]
    for title, names in _by_kind(secondlook).items():
        parts.append(f"## {title}")
        parts += [_python_object(secondlook, name) for name in names]
    return "\n\n".join(parts) + "\n"


def _by_kind(package: Any) -> dict[str, list[str]]:  # noqa: ANN401 - a module
    """The public names of a package: functions first, then classes, protocols, errors, aliases."""
    kinds: dict[str, list[str]] = {
        "Functions": [],
        "Classes": [],
        "Protocols": [],
        "Errors": [],
        "Type aliases": [],
    }
    for name in package.__all__:
        if not name.startswith("__"):
            kinds[_kind(getattr(package, name))].append(name)
    return {title: names for title, names in kinds.items() if names}


def _kind(value: object) -> str:
    if inspect.isfunction(value):
        return "Functions"
    if get_origin(value) is not None or not isinstance(value, type):
        return "Type aliases"
    if getattr(value, "_is_protocol", False):
        return "Protocols"
    return "Errors" if issubclass(value, Exception) else "Classes"


def _python_object(package: Any, name: str) -> str:  # noqa: ANN401 - a module
    """A public name for mkdocstrings, which follows it to the module that defines it."""
    value = getattr(package, name)
    if _kind(value) != "Type aliases" and not value.__doc__:
        raise ValueError(f"the public name secondlook.{name} has no docstring")
    return (
        f"::: {package.__name__}.{name}\n    options:\n      heading_level: 3\n"
        f"      heading: sl.{name}\n      toc_label: {name}"
    )


def cli_page() -> str:
    """Every verb with its arguments and options, as `secondlook VERB --help` shows them."""
    import typer

    from secondlook.cli import app

    command = typer.main.get_command(app)
    parts = ["# Command line", "Every verb teaches itself with `--help`; this page is made of it."]
    for name, verb in verbs(command):
        parts += [f"## {name}", f"    secondlook {name} {_usage(verb)}", _help(verb.help)]
        rows = [_parameter(verb, one) for one in verb.params if one.name != "help"]
        parts.append(_table(("", "what", "default"), rows))
    return "\n\n".join(parts) + "\n"


def verbs(command: Any, above: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer's own
    """All verbs below a command, each with the words that call it."""
    for name, one in command.commands.items():
        if hasattr(one, "commands"):
            yield from verbs(one, f"{above}{name} ")
        else:
            yield above + name, one


def recipes_page() -> str:
    """Every setting of a recipe and of the files a ranker keeps."""
    from secondlook.encode.settings import (
        ChatSettings,
        EncodeSettings,
        MarkerSettings,
        WindowSettings,
    )
    from secondlook.model.settings import FrozenSettings
    from secondlook.train.losses import LOSSES
    from secondlook.train.phases import OTHERS
    from secondlook.train.recipe import DataSettings, Recipe
    from secondlook.train.triples_settings import TriplesSettings

    parts = [
        "# Recipes",
        "A recipe is a TOML file for `secondlook train`; `recipes/` in the repository holds some.",
        "Keys that are not on this page are refused, with the nearest name.",
    ]
    for title, model in (
        ("The recipe", Recipe),
        ("`[data]`", DataSettings),
        ("`[data.triples]`", TriplesSettings),
        ("`[encode]`", EncodeSettings),
        ("`[encode.markers]`", MarkerSettings),
        ("`[encode.windows]`", WindowSettings),
        ("`[encode.chat]`", ChatSettings),
    ):
        parts += _section(title, model)
    parts.append(
        "## Phases\n\nEach is one `[[phases]]` table; they run in the order they stand in."
    )
    for phase in [OTHERS[name] for name in OTHERS.names()]:
        parts += _section(f'`phase = "{phase.model_fields["phase"].default}"`', phase, "###")
    for loss in [LOSSES[name] for name in LOSSES.names()]:
        title = f'`phase = "{loss.model_fields["phase"].default}"`'
        if "loss" in loss.model_fields:
            title += f', `loss = "{loss.model_fields["loss"].default}"`'
        parts += _section(title, loss, "###")
    parts += _section("`[phases.form]` of the phase `frozen`", FrozenSettings, "###")
    return "\n\n".join(parts) + "\n"


def api_page() -> str:
    """Every route of the server, from its OpenAPI description."""
    from secondlook.serve.app import build_app
    from secondlook.serve.serving import Serving

    def no_ranker(source: str) -> Any:  # noqa: ANN401 - never called: there are no sources
        raise AssertionError(source)

    described = build_app(Serving({}, no_ranker)).openapi()
    schemas = described["components"]["schemas"]
    parts = ["# HTTP API", "Made of what `GET /openapi.json` of a running server says."]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            parts += [f"## {method.upper()} {path}", operation.get("description", "")]
            content = operation.get("requestBody", {}).get("content", {})
            parts += [f"Body: {_type(one['schema'])}." for one in content.values()]
            answers = [
                (f"`{code}`", answer["description"], _content(answer))
                for code, answer in operation["responses"].items()
            ]
            parts.append(_table(("status", "when", "body"), answers))
    parts.append("## Shapes")
    for name, schema in schemas.items():
        needed = schema.get("required", ())
        rows = [
            (f"`{key}`", _type(one), "required" if key in needed else _shown(one.get("default")))
            for key, one in schema.get("properties", {}).items()
        ]
        parts += [f"### {name}", schema.get("description", ""), _table(("", "type", ""), rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _usage(verb: Any) -> str:  # noqa: ANN401 - typer's own
    words = []
    for one in verb.params:
        if one.param_type_name == "argument":
            name = (one.metavar or one.name.upper()) + ("…" if one.nargs == -1 else "")
            words.append(name if one.required else f"[{name}]")
        elif one.required:
            words.append(f"{one.opts[0]} {one.metavar or one.name.upper()}")
    return " ".join([*words, "[OPTIONS]"])


def _help(text: str | None) -> str:
    """A verb's docstring as Markdown: what it indents is code, and rich's markup is Markdown's."""
    from secondlook.terminal.help_layout import laid_out

    return "\n".join(
        f"  {line}" if line.startswith("  ") else re.sub(r"\[/?(?:bold|b)\]", "**", line)
        for line in laid_out(text or "", 96).splitlines()
    )


def _parameter(verb: Any, one: Any) -> tuple[str, str, str]:  # noqa: ANN401 - typer's own
    if one.param_type_name == "argument":
        name = f"`{one.metavar or one.name.upper()}`"
    else:
        name = ", ".join(f"`{flag}`" for flag in (*one.opts, *one.secondary_opts))
    what = re.sub(r"\[/?b\]", "`", one.help or "")
    choices = [
        member.value
        for kind in _kinds(get_type_hints(verb.callback).get(one.name))
        for member in kind
    ]
    if choices:
        what += " One of " + ", ".join(f"`{choice}`" for choice in choices) + "."
    if getattr(one, "multiple", False):
        what += " May be repeated."
    if one.required:
        return name, what, "required"
    return name, what, "" if getattr(one, "is_flag", False) else _shown(one.default)


def _kinds(hint: Any) -> Iterator[type[Enum]]:  # noqa: ANN401 - any annotation
    if isinstance(hint, type) and issubclass(hint, Enum):
        yield hint
    for inner in get_args(hint):
        yield from _kinds(inner)


def _section(title: str, model: type[BaseModel], heading: str = "##") -> list[str]:
    said = _said(model)
    rows = []
    for name, field in model.model_fields.items():
        if name == "phase":
            continue
        default = (
            "required"
            if field.is_required()
            else _shown(field.get_default(call_default_factory=True))
        )
        bounds = ", ".join(_bound(one) for one in field.metadata)
        kind = " ".join(filter(None, (_annotation(field.annotation), bounds)))
        rows.append((f"`{name}`", kind, default, said.get(name, "")))
    table = _table(("", "type", "default", ""), rows)
    return [f"{heading} {title}", inspect.cleandoc(model.__doc__ or ""), table]


def _annotation(hint: Any) -> str:  # noqa: ANN401 - any annotation
    if "Annotated" in str(hint):  # the one union of all phases
        return "list of [phases](#phases)"
    plain = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    parts = re.sub(r"\b[a-z]\w*\.", "", plain).split(" | ")
    return " or ".join(f"`{part}`" for part in parts)


def _bound(constraint: Any) -> str:  # noqa: ANN401 - annotated-types' own
    signs = {"gt": "> ", "ge": "≥ ", "lt": "< ", "le": "≤ ", "min_length": "length ≥ "}
    return ", ".join(
        f"{sign}{getattr(constraint, name)}"
        for name, sign in signs.items()
        if hasattr(constraint, name)
    )


def _said(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings below a model's fields, its own and those it inherits."""
    said: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if cls.__module__.startswith("secondlook."):
            tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
            assert isinstance(tree, ast.ClassDef)
            said.update(_docstrings(tree.body))
    return said


def _docstrings(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, after in pairwise(body):
        named = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield field.target.id, inspect.cleandoc(str(after.value.value))


def _type(schema: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def _content(answer: dict[str, Any]) -> str:
    return ", ".join(_type(one.get("schema", {})) for one in answer.get("content", {}).values())


def _shown(default: object) -> str:
    if default is None or default in ((), {}, ""):
        return ""
    if isinstance(default, Enum):
        return f"`{default.value}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if hasattr(default, "model_dump"):
        return "its defaults"
    return f"`{default!r}`" if str(default).isspace() else f"`{default}`"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    filled = [" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in r) for r in rows]
    if not filled:
        return ""
    lines = [" | ".join(header), " | ".join("---" for _ in header), *filled]
    return "\n".join(f"| {line} |" for line in lines)
