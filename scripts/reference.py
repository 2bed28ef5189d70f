"""Pages of the documentation that are made from the source: every command with its flags, every public name of Python.

A hook of mkdocs: `reference/commands.md` and `reference/python.md` are made when the site is built, and lie nowhere.

    python scripts/reference.py commands        print a page
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
from typing import Any

NOT_FOR_USERS = ("cli", "board", "networks")


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for name, page in (("commands", commands), ("python", python)):
        files.append(File.generated(config, f"reference/{name}.md", content=page()))
    return files


# --- commands ---------------------------------------------------------------------------------------------------------


def commands() -> str:
    """Every command: what it does, and a table of its flags."""
    from earmark.cli import BELOW, VERBS, parser_of

    intro = "Flags, keys of a config file and parameters of Python have the same names and the same meaning."
    parts = ["# Every command\n", "*For people at the command line.*\n", f"{intro}\n"]
    for verb in sorted((*VERBS, *BELOW)):
        parts += _command(parser_of(verb)[0])
    return "\n".join(parts)


def _command(parser: argparse.ArgumentParser) -> list[str]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    parts = [f"## {parser.prog}\n", f"{_plain(parser.description or '')}\n"]
    lines = [line for action in parser._actions if action not in below for line in _flag(parser, action)]
    if lines:
        parts += ["| Flag | Meaning |", "|---|---|", *lines, ""]
    for action in below:
        for sub in dict.fromkeys(action.choices.values()):
            parts += _command(sub)
    return parts


def _flag(parser: argparse.ArgumentParser, action: argparse.Action) -> list[str]:
    if action.help == argparse.SUPPRESS or action.dest == "help":
        return []
    value = parser._get_formatter()._format_args(action, (action.metavar or action.dest.upper()))  # type: ignore[arg-type]
    if action.choices is not None:
        value = " or ".join(map(str, action.choices))
    words = " ".join(filter(None, (", ".join(action.option_strings), "" if action.nargs == 0 else value)))
    text = (action.help or "") % {"default": action.default, "prog": parser.prog}
    return [f"| `{words}` | {_plain(text).replace('|', chr(92) + '|')} |"]


# --- Python -----------------------------------------------------------------------------------------------------------


def python() -> str:
    """Every public name of every room, with its signature and docstring."""
    import earmark

    found = [name for _, name, is_room in pkgutil.iter_modules(earmark.__path__) if is_room or name == "errors"]
    rooms = ["earmark", *(f"earmark.{name}" for name in found if name not in NOT_FOR_USERS)]
    parts = ["# Every public name\n", "*For people who program with Earmark.*\n"]
    parts += ["What is not listed here may change without notice.\n"]
    for room in rooms:
        module = importlib.import_module(room)
        names = [name for name in getattr(module, "__all__", ()) if not name.startswith("_")]
        if names:
            parts += [f"## {room}\n", f"{_text(inspect.getdoc(module) or '')}\n"]
        for name in names:
            parts += _entry(name, getattr(module, name))
    return "\n".join(parts)


def _entry(name: str, thing: Any) -> list[str]:
    """A function, a class with its public methods, or a value."""
    parts = [f"### {name}\n"]
    if not callable(thing) or not hasattr(thing, "__module__"):
        return [*parts, f"`{textwrap.shorten(repr(thing), 200)}`\n"]
    parts += [f"```text\n{_signature(name, thing)}\n```\n"]
    documented = _text(_own_doc(thing))
    parts += [f"{documented}\n"] if documented else []
    if inspect.isclass(thing):
        for method, function in vars(thing).items():
            plain = getattr(function, "__func__", function)
            if not method.startswith("_") and inspect.isfunction(plain) and plain.__doc__:
                parts += [f"**`{_signature(method, plain).replace('self, ', '').replace('self', '')}`**\n"]
                parts += [f"{_text(inspect.getdoc(plain) or '')}\n"]
    return parts


def _own_doc(thing: Any) -> str:
    """A docstring that somebody wrote: not an inherited one, nor the one that a dataclass makes up."""
    text = None if inspect.isclass(thing) and "__doc__" not in vars(thing) else inspect.getdoc(thing)
    return "" if not text or text.startswith(f"{getattr(thing, '__name__', '')}(") else text


def _signature(name: str, thing: Any) -> str:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parameters = [_parameter(parameter) for parameter in signature.parameters.values()]
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = signature.return_annotation
    end = "" if returned in (signature.empty, None, "None") else f" -> {_kind(returned)}"
    line = f"{name}({', '.join(parameters)}){end}"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(parameters) + f",\n){end}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    kind = "" if parameter.annotation is parameter.empty else f": {_kind(parameter.annotation)}"
    shown = repr(parameter.default)
    default = "" if parameter.default is parameter.empty else f" = {'...' if shown.startswith('<') else shown}"
    return f"{stars}{parameter.name}{kind}{default}"


def _kind(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _text(doc: str) -> str:
    """A docstring as Markdown: sections such as Args become lists, examples and drawings become blocks of code."""
    blocks = []
    for block in re.split(r"\n\s*\n", doc):
        lines = block.splitlines()
        section = re.fullmatch(r"(Args|Returns|Raises|Attributes):", lines[0]) if lines else None
        if section:
            blocks.append(f"**{section[1]}**\n\n" + _items("\n".join(lines[1:])))
        elif lines and (lines[0].startswith((">>>", "    ")) or any(re.search(r"\S {3,}\S", line) for line in lines)):
            blocks.append("```text\n" + textwrap.dedent(block) + "\n```")
        else:
            blocks.append(_plain(block))
    return "\n\n".join(blocks)


def _items(text: str) -> str:
    """`name: words` lines, which may go on below, as a list."""
    items = re.split(r"\n(?=\S)", textwrap.dedent(text))
    named = [re.match(r"([\w*, ]+):\s+(.*)", item, re.DOTALL) for item in items]
    return "\n".join(
        f"- `{match[1]}`: {_plain(' '.join(match[2].split()))}" if match else f"- {_plain(' '.join(item.split()))}"
        for item, match in zip(items, named, strict=True)
    )


def _plain(text: str) -> str:
    """Text whose angle and square brackets are not taken for markup outside of code."""
    parts = re.split(r"(`[^`]*`)", text.strip())
    return "".join(part if part.startswith("`") else re.sub(r"([<\[*_])", r"\\\1", part) for part in parts)


if __name__ == "__main__":
    sys.stdout.write({"commands": commands, "python": python}[sys.argv[1]]())
