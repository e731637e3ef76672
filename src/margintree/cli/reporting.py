"""How commands report errors: one message, no traceback, and an exit code for scripts.

0 is success, 1 a model or rows that cannot be used, 2 a wrong command line, 130 Ctrl-C.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

BAD_INPUT = 1
INTERRUPTED = 130


def terminal() -> Console:
    """Return the console for messages: standard error, so that standard output has only results."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """Return a text with its control characters escaped: a file must not control the terminal that shows it."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def shown(text: object) -> str:
    """Return a text, such as a file name, that the console shows literally, without escapes or markup."""
    return escape(printable(str(text)))


@contextmanager
def reported(console: Console) -> Iterator[None]:
    """Turn errors of rows, models and files into a message and exit code 1, and print each warning as one line."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: console.print(f"[yellow]Warning[/yellow]: {shown(message)}")
        try:
            yield
        except BrokenPipeError:
            # The reader of our output has closed it, as head does.
            raise typer.Exit(BAD_INPUT) from None
        except (ValueError, TypeError, OSError, AttributeError, MemoryError) as error:
            console.print(f"[red]Error[/red]: {escape(_message(error))}")
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
    return printable("\n".join([text, *getattr(error, "__notes__", [])]))
