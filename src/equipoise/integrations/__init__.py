"""equipoise inside other packages; each module here needs the package it is named after, and is imported on demand."""
