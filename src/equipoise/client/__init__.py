"""Studies of a service elsewhere, with the face of those here."""

from equipoise.client.remote import RemoteStudy, RemoteTicket
from equipoise.client.service import Service, connect

__all__ = ["RemoteStudy", "RemoteTicket", "Service", "connect"]
