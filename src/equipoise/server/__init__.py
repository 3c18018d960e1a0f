"""The service: studies over HTTP, for programs, web pages and people."""

from equipoise.server.app import create_app
from equipoise.server.settings import Limits, Rate, Settings

__all__ = ["Limits", "Rate", "Settings", "create_app"]
