"""Studies of a service: ask and tell over HTTP."""

from equipoise.client.remote import RemoteStudy, RemoteTicket
from equipoise.client.service import Service, connect

__all__ = ["RemoteStudy", "RemoteTicket", "Service", "connect"]
