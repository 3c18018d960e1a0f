"""
Reports of a study: a table in a terminal while it runs and after, one page, a picture, JSON.

Everything comes from a result, or from the log of a store, which may be written to at the same time.
"""

from equipoise.report.charts import png, specs
from equipoise.report.page import page
from equipoise.report.terminal import Live, table
from equipoise.report.view import STATES, short, view
from equipoise.report.watch import Report, Watch, read
from equipoise.report.words import certificate, facts, plain, rows, to_dict

__all__ = [
    "STATES",
    "Live",
    "Report",
    "Watch",
    "certificate",
    "facts",
    "page",
    "plain",
    "png",
    "read",
    "rows",
    "short",
    "specs",
    "table",
    "to_dict",
    "view",
]
