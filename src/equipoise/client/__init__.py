"""Studies of a service elsewhere, with the face of those here."""
