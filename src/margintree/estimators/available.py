"""Methods that are available only for some values of an estimator's parameters."""

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any


class available_if:  # noqa: N801
    """scikit-learn's ``available_if``, but the user sees the error message of the check.

    scikit-learn replaces the message of the check by "This 'X' has no attribute 'y'".

    Parameters
    ----------
    check : callable
        Gets the estimator; returns True, or raises an AttributeError that says what to do.

    Examples
    --------
    >>> def is_open(door):
    ...     raise AttributeError("The door is locked. Unlock it first.")
    >>> class Door:
    ...     @available_if(is_open)
    ...     def enter(self): ...
    >>> hasattr(Door(), "enter")
    False
    >>> Door().enter()
    Traceback (most recent call last):
    ...
    AttributeError: The door is locked. Unlock it first.
    """

    def __init__(self, check: Callable[[Any], bool]) -> None:
        self._check = check

    def __call__(self, method: Callable[..., Any]) -> Any:
        """Decorate a method."""
        update_wrapper(self, method)
        self._method = method
        return self

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Callable[..., Any]:
        """Return the method of an instance that has it, or the plain function of the class."""
        if instance is None:
            return self._method
        if not self._check(instance):
            raise AttributeError(f"This {type(instance).__name__} has no attribute {self._method.__name__!r}.")
        return MethodType(self._method, instance)
