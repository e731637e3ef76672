"""Parameters of a split as parameters of the estimator that has it: ``split__patience``."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator

from margintree.splits import SPLITS, Split

PREFIX = "split__"


class SplitParametersMixin(BaseEstimator):  # type: ignore[misc]
    """An estimator with a parameter ``split``, a name or an object whose own parameters can be searched.

    Splits are immutable and may be shared, so setting a parameter replaces the split by a modified copy.
    """

    split: str | Split

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the estimator; with ``deep`` those of a split object as well.

        Parameters
        ----------
        deep : bool, default=True

        Returns
        -------
        dict

        Examples
        --------
        >>> from margintree import MarginTreeClassifier
        >>> from margintree.splits import BestFirstSplit
        >>> MarginTreeClassifier(split=BestFirstSplit(patience=5)).get_params()["split__patience"]
        5
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        split = params["split"]
        if deep and is_dataclass(split) and not isinstance(split, type) and not hasattr(split, "get_params"):
            params |= {PREFIX + field.name: getattr(split, field.name) for field in fields(split)}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator, and of its split as ``split__patience``.

        A split given by name becomes an object with the given parameters.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self

        Examples
        --------
        >>> from margintree import MarginTreeClassifier
        >>> MarginTreeClassifier(split="alternating").set_params(split__n_directions=2).split.n_directions
        2
        """
        if hasattr(params.get("split", self.split), "get_params"):
            return super().set_params(**params)  # type: ignore[no-any-return]
        own = {name: value for name, value in params.items() if not name.startswith(PREFIX)}
        nested = {name.removeprefix(PREFIX): value for name, value in params.items() if name not in own}
        super().set_params(**own)
        if nested:
            self.split = _changed(self._split_object(), nested)
        return self

    def _split_object(self) -> Split:
        if isinstance(self.split, type):
            raise TypeError(
                f"split must be a name or an object. Got the class {self.split.__name__}; "
                f"write split={self.split.__name__}()."
            )
        return SPLITS[self.split] if isinstance(self.split, str) else self.split


def _changed(split: Split, values: dict[str, Any]) -> Split:
    """Return a split with other values of some of its parameters."""
    known: list[str] = [field.name for field in fields(split)] if is_dataclass(split) else []
    if unknown := sorted(set(values) - set(known)):
        raise ValueError(
            f"Invalid parameter {unknown[0]!r} for the split {type(split).__name__}. "
            f"Valid parameters are: {', '.join(known) or 'none'}."
        )
    return replace(split, **values)  # type: ignore[type-var]
