"""The command `equipoise report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.base.inputs import printable
from equipoise.cli.options import Json
from equipoise.cli.output import check_writable, console, print_json, replace_file, writing


def report(
    store: Annotated[
        str, typer.Argument(help="The file or PostgreSQL URL of a study; add #name if the database holds several.")
    ],
    html: Annotated[Path | None, typer.Option(help="Write the report as a web page to this .html file.")] = None,
    png: Annotated[Path | None, typer.Option(help="Write the charts to this .png file.")] = None,
    as_json: Json = False,
) -> None:
    """Show a study that was saved in a store, even while it is running."""
    from equipoise import chart
    from equipoise import report as reports
    from equipoise.store.log import located

    for option, path in (("--html", html), ("--png", png)):
        if path and path.suffix.lower() != (wanted := f".{option[2:]}"):
            raise ValueError(f"{option} must be a file whose name ends in {wanted}, got {str(path)!r}")
    check_writable(html, png, inputs=[Path(located(store)[0])])
    if html or png:
        chart.require()
    found = reports.read(store)
    if html or png:
        view = reports.view(found)
        if png:
            with writing(png):
                reports.png(view, png)
        if html:
            replace_file(html, reports.page(view))
    written = [path for path in (html, png) if path]
    if as_json:
        print_json(reports.to_dict(found))
        return
    screen = console()
    screen.print(reports.table(found.result, printable(found.name)))
    for sentence in reports.facts(found):
        screen.print(sentence, markup=False)
    for path in written:
        print(f"Wrote {path}")
