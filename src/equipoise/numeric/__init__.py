"""Arithmetic in compiled code: floats, tuples, moments, the heap."""
