"""The command line, one file per command."""


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, even during imports."""
    try:
        from margintree.cli.app import app

        app()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
