"""The directive `commands`: the command line's reference, from the parsers that the command itself uses."""

from __future__ import annotations

import re
from typing import Any, Final

import typer.main
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from equipoise.cli import app

SECTION = """\
## {name}

{help}

```text
{usage}
```

| argument or option | |
|---|---|
{rows}
"""


# Text in backticks; or an option, whose hyphens would become a dash.
CODE: Final = re.compile(r"`[^`]*`|(?<![\w-])--[a-z][a-z-]*")


class Commands(SphinxDirective):
    """Describe every command: what it does, its usage, arguments and options."""

    def run(self) -> list[nodes.Node]:
        """Return the sections of all commands."""
        return self.parse_text_to_nodes(markdown(), allow_section_headings=True)


def markdown() -> str:
    """Return a section for the command itself and one for each of its subcommands."""
    group: Any = typer.main.get_command(app)
    commands = {"equipoise": group} | {f"equipoise {name}": each for name, each in group.commands.items()}
    return "\n".join(section(name, each) for name, each in commands.items())


def section(name: str, command: Any) -> str:
    """Return the section of one command."""
    context = command.make_context(name, [], resilient_parsing=True)
    records = [record for each in command.get_params(context) if (record := each.get_help_record(context))]
    rows = "\n".join(f"| `{option}` | {_escaped(text)} |" for option, text in records)
    usage = command.get_usage(context).removeprefix("Usage: ")
    return SECTION.format(name=name, help=_literal(command.help), usage=usage, rows=rows)


def _literal(text: str) -> str:
    return CODE.sub(lambda found: f"`{found[0].strip('`')}`", text)


def _escaped(text: str) -> str:
    return _literal(text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
