"""
Charts: plain rows in, an Altair chart out.

Rows are mappings of texts and numbers. Altair is imported when a chart is drawn; everything else works without it.
"""

from equipoise.chart.arms import allocation, drift, intervals, precision
from equipoise.chart.board import board
from equipoise.chart.curves import Noise, RegretScale, Series, X, Y, beside, lines, regret, spend
from equipoise.chart.files import drawable, javascript, javascript_version, require, save, save_all, start, suffix, svg
from equipoise.chart.style import COLOURS, GREY, PAGE, PRINT, Theme

__all__ = [
    "COLOURS",
    "GREY",
    "PAGE",
    "PRINT",
    "Noise",
    "RegretScale",
    "Series",
    "Theme",
    "X",
    "Y",
    "allocation",
    "beside",
    "board",
    "drawable",
    "drift",
    "intervals",
    "javascript",
    "javascript_version",
    "lines",
    "precision",
    "regret",
    "require",
    "save",
    "save_all",
    "spend",
    "start",
    "suffix",
    "svg",
]
