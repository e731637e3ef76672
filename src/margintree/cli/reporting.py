"""How commands report errors: one message, no traceback, and an exit code for scripts.

0 is success, 1 a model or rows that cannot be used, 2 a wrong command line, 130 Ctrl-C.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from margintree.inspection.labels import one_line

BAD_INPUT = 1
INTERRUPTED = 130


def terminal() -> Console:
    """Return the console for messages: standard error, so that standard output has only results."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def shown(text: object) -> str:
    """Return a text that the console shows literally: nothing in it is markup or controls the terminal."""
    return escape("\n".join(map(one_line, str(text).split("\n"))))


@contextmanager
def reported() -> Iterator[Console]:
    """Turn errors of rows, models and files into a message and exit code 1, and print each warning as one line."""
    console = terminal()
    # A label that standard output cannot encode must not stop a command.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: console.print(f"[yellow]Warning[/yellow]: {shown(message)}")
        try:
            yield console
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of our output has closed it, as head does.
            raise typer.Exit(BAD_INPUT) from None
        except (ValueError, TypeError, OSError, AttributeError, MemoryError) as error:
            console.print(f"[red]Error[/red]: {shown(_message(error))}")
            raise typer.Exit(BAD_INPUT) from error
        except KeyboardInterrupt:
            console.print("Interrupted; no partial file was left behind.")
            raise typer.Exit(INTERRUPTED) from None


def _message(error: Any) -> str:
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {error}".strip()
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return "\n".join([text, *getattr(error, "__notes__", [])])
