"""Builder of graphs of standard ONNX operators."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

OPSET = 17
# Version of the format: the oldest one that has all operators, so that older runtimes can read the file.
IR_VERSION = 8
# Limit of protocol buffers.
MOST_BYTES = 2**31 - 2**20


class Graph:
    """Builder of an ONNX graph: adding an operator returns the name of its result."""

    def __init__(self, *, is_single: bool = False) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._n_bytes = 0
        self._is_single = is_single
        # The rows in double precision.
        self.rows = self.cast("X", "DOUBLE") if is_single else "X"

    def cast(self, array: str | npt.ArrayLike, kind: str) -> str:
        """Convert an array, or a constant, to a type by its name in ONNX."""
        from onnx import TensorProto

        return self.add("Cast", array, to=TensorProto.DataType.Value(kind))

    def constant(self, array: npt.ArrayLike) -> str:
        """Add an array."""
        from onnx import numpy_helper

        array = np.asarray(array)
        self.check_room(array.nbytes)
        self._n_bytes += array.nbytes
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def check_room(self, n_bytes: int) -> None:
        """Raise an error for an array that is too large for the file, if possible before it is created."""
        if self._n_bytes + n_bytes > MOST_BYTES:
            raise ValueError(
                "The weights of all machines as dense matrices take more than the 2 GB that an ONNX file holds. Use "
                "margintree.save_model, whose files are sparse."
            )

    def add(self, operator: str, *inputs: str | npt.ArrayLike, output: str | None = None, **attributes: Any) -> str:
        """Add an operator with one result; its inputs are names of arrays, or constants."""
        return self.add_many(operator, inputs, [output or f"value_{len(self._nodes)}"], **attributes)[0]

    def add_many(
        self, operator: str, inputs: Sequence[str | npt.ArrayLike], outputs: list[str], **attributes: Any
    ) -> list[str]:
        """Add an operator with several results."""
        from onnx import helper

        names = [given if isinstance(given, str) else self.constant(given) for given in inputs]
        self._nodes.append(helper.make_node(operator, names, outputs, **attributes))
        return outputs

    def model(self, estimator: Any, *, has_probabilities: bool) -> Any:
        """Return the model with its inputs and outputs."""
        from onnx import TensorProto, helper

        n_features, n_classes = int(estimator.n_features_in_), len(estimator.classes_)
        label = helper.np_dtype_to_tensor_dtype(plain_labels(estimator.classes_).dtype)
        outputs = [helper.make_tensor_value_info("label", label, ["n_rows"])]
        if has_probabilities:
            shape: list[str | int | None] = ["n_rows", n_classes]
            outputs.append(helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, shape))
        kind = TensorProto.FLOAT if self._is_single else TensorProto.DOUBLE
        inputs = [helper.make_tensor_value_info("X", kind, ["n_rows", n_features])]
        graph = helper.make_graph(self._nodes, type(estimator).__name__, inputs, outputs, self._constants)
        return helper.make_model(
            graph,
            producer_name="margintree",
            producer_version=version("margintree"),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )


def plain_labels(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels of a type that ONNX has."""
    kind = classes.dtype.kind
    if kind in "iu":
        if classes[-1] > np.iinfo(np.int64).max:
            raise ValueError(
                f"ONNX has integer labels up to 2^63 - 1; the largest class is {classes[-1]}. Renumber the classes."
            )
        return classes.astype(np.int64)
    if kind in "bf":
        return classes.astype(np.float64 if kind == "f" else np.bool_)
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object)
    raise ValueError(f"ONNX has no labels of type {classes.dtype}; fit with numbers or text.")
