"""The command line, one file per command."""


def main() -> None:
    """Run the command line; Ctrl-C ends it as quietly while it is still being imported as later."""
    try:
        from margintree.cli.app import app

        app()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
