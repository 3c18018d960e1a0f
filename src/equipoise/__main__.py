"""Run the command line, as `equipoise` and as `python -m equipoise`."""

from __future__ import annotations

import sys

from equipoise.base import interrupts


def main() -> None:
    """Run the command line and exit; Ctrl-C while it is still being loaded ends it as it does later."""
    try:
        interrupts.listen()
        from equipoise.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        interrupts.over = True  # no call, within which another signal could raise
        print("equipoise: stopped", file=sys.stderr)
        sys.exit(130)
    finally:
        interrupts.over = True


if __name__ == "__main__":
    main()
