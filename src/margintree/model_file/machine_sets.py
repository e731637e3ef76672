"""Machines without a tree."""

import numpy as np

from margintree.model_file.matrices import (
    COLUMNS,
    put_function,
    put_matrix,
    take_function,
    take_kind,
    take_matrix,
    take_vectors,
)
from margintree.model_file.sections import Input, Output
from margintree.prediction.machine_set import KernelMachines, LinearMachines, MachineSet


def put_machines(out: Output, machines: MachineSet) -> None:
    """Store the machines."""
    if isinstance(machines, LinearMachines):
        out.fact("kind", "linear")
        put_matrix(out.section("weights"), machines.weights)
        out.array("intercepts", machines.intercepts)
        return
    out.fact("kind", "kernel")
    put_function(out.section("function"), machines.function)
    put_matrix(out.section("coefficients"), machines.coefficients)
    out.array("support", machines.support)
    out.array("constants", machines.constants)
    if machines.vectors is not None:
        put_matrix(out.section("vectors"), machines.vectors)


def take_machines(source: Input, n_machines: int, n_features: int, kernel: str) -> MachineSet:
    """Return as many machines as expected."""
    if take_kind(source, ["linear", "kernel"], kernel) == "linear":
        # Their number is compared with the size of an array in the file before memory is allocated for them.
        intercepts = source.finite("intercepts", n_machines)
        return LinearMachines(take_matrix(source.section("weights"), n_features, n_machines, COLUMNS), intercepts)
    function = take_function(source.section("function"), kernel)
    constants = source.finite("constants", n_machines)
    # If the model has its own vectors, these numbers are stored for information only.
    support = source.indices("support", n_features if kernel == "precomputed" else np.iinfo(np.int64).max, None)
    of_coefficients = source.section("coefficients")
    coefficients = take_matrix(of_coefficients, len(support), n_machines, ["csc_array"], is_finite=True)
    vectors = None
    if kernel != "precomputed":
        vectors = take_vectors(source.section("vectors"), function, len(support), n_features)
    return KernelMachines(function, vectors, support, coefficients, constants)
