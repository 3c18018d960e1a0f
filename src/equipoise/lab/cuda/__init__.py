"""The engine on a graphics card."""
