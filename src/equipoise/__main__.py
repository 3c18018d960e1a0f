"""Run the command line, as `equipoise` and as `python -m equipoise`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit; Ctrl-C while it is still being loaded ends it as it does later."""
    try:
        from equipoise.cli import main as command_line
    except KeyboardInterrupt:
        print("equipoise: stopped", file=sys.stderr)
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
